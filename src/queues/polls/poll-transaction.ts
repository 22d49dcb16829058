import { performance } from 'node:perf_hooks';
import type { PlannedPoll } from '../../domain/cadence/next-poll.ts';
import { isPollable } from '../../domain/subjects/kinds.ts';
import type { UpstreamRecord } from '../../domain/subjects/record.ts';
import { intentId, type SubjectId } from '../../domain/subjects/subject.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { NOTHING_KNOWN } from '../../store/subjects.ts';
import { commitRecord, planOf } from './commit-record.ts';
import { planForMore } from './further-transfers.ts';
import type { PollParts } from './poll-parts.ts';
import { type Ask, isOver } from './poll-record.ts';
import { type Adapter, AFTER_SUPERSEDED, AT_ONCE, answered, failed } from './polled.ts';
import { reportUnreadable } from './unreadable.ts';

/**
 * Polls transactions: looks for the transfers that one belongs to. Each that is found gets the claims of the transaction, and
 * is polled and reported as itself; the transaction is polled for further ones (see further-transfers.ts).
 */
export function transactionAdapter(parts: PollParts, ask: Ask): Adapter {
  return {
    isOver: (start) => isOver(parts, start),
    poll: async (start, signal) => {
      const { subject, claims } = start;
      const askedAt = performance.now();
      const reading = await ask({ subject, route: null, nowMs: start.nowMs }, signal);
      const nowMs = start.nowMs + Math.round(performance.now() - askedAt);
      reportUnreadable(parts, subject, reading);
      const pollable = new Set(reading.records.flatMap(pollableOf));
      for (const one of pollable) await parts.stores.subjects.claim(one, claims);
      const others = reading.records.filter((record) => pollableOf(record).length === 0);
      const next: (PlannedPoll | null)[] = [];
      for (const record of others) next.push(await follow(parts, start, { record, nowMs }));
      const shown = [...pollable, ...others.map((record) => record.subject)];
      const further = await planForMore(parts, start, shown);
      switch (further.state) {
        case 'unseen':
          return answered(planOf(parts, { ...start, snapshot: null }, start).next() ?? AT_ONCE);
        case 'over':
          return answered(soonest(next));
        case 'watched':
          return answered(soonest([further.next, ...next]));
      }
    },
    failed: async (_start, failure) => failed(failure),
  };
}

/** The subjects to which a record leads that can be requested by themselves. */
function pollableOf(record: UpstreamRecord): SubjectId[] {
  return isPollable(record.subject) ? [record.subject] : record.names.map(intentId);
}

/** The poll that is due first; null where none is. */
function soonest(polls: readonly (PlannedPoll | null)[]): PlannedPoll | null {
  const planned = polls.flatMap((poll) => poll ?? []);
  return planned.toSorted((left, right) => left.virtualSeconds - right.virtualSeconds)[0] ?? null;
}

/** Takes in a record that can be requested by its transaction alone. Returns when that is due next; null when it is over. */
async function follow(
  parts: PollParts,
  start: PollStart,
  { record, nowMs }: { record: UpstreamRecord; nowMs: number },
): Promise<PlannedPoll | null> {
  const { subject } = record;
  const { asOf, price, claims } = start;
  const [known = NOTHING_KNOWN] = await parts.stores.subjects.look([subject]);
  const observation = { asOf, nowMs, price, exact: true, claims };
  const { outcome, snapshot } = await commitRecord(parts, record, known, observation);
  if (outcome === 'superseded') return AFTER_SUPERSEDED;
  return planOf(parts, { subject, snapshot, claims }, { ...start, nowMs }).next();
}
