import { type FurtherPoll, nextForMore } from '../../domain/cadence/further-transfers.ts';
import { endsByConfig } from '../../domain/cadence/next-poll.ts';
import { type SubjectId, subjectKind } from '../../domain/subjects/subject.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { planOf } from './commit-record.ts';
import type { PollParts } from './poll-parts.ts';

/** Notes the transfers that an answer has shown of a subject, and plans the poll for further ones. */
export async function planForMore(
  parts: PollParts,
  start: PollStart,
  shown: readonly SubjectId[],
): Promise<FurtherPoll> {
  const { subject, nowMs, price } = start;
  const { subjects } = parts.stores;
  const { newestAtMs, transfers } = await subjects.noteTransfers(subject, shown);
  const isOpen = await isAnyOpen(parts, start, transfers);
  return nextForMore({ newestAtMs, isOpen }, { nowMs, price, model: parts.learning.model });
}

/**
 * True when a subject of a kind that names several transfers is polled for further ones. A status that the config calls final ends
 * that.
 */
export function namesFurther(
  { rules: { finished } }: PollParts,
  { subject, snapshot }: Pick<PollStart, 'subject' | 'snapshot'>,
): boolean {
  return subjectKind(subject) === 'quote' && snapshot !== null && !endsByConfig(subject, snapshot, finished);
}

/** True when one of some transfers has been shown and not come to its end. Reading them keeps those that have ended. */
async function isAnyOpen(
  parts: PollParts,
  start: PollStart,
  transfers: readonly SubjectId[],
): Promise<boolean> {
  const known = await parts.stores.subjects.look(transfers);
  return known.some(({ snapshot, claims }, index) => {
    const subject = transfers[index];
    if (subject === undefined || snapshot === null) return false;
    return !planOf(parts, { subject, snapshot, claims }, { ...start, imported: null, route: null }).isOver;
  });
}
