import { isOverdue, quoteFlags } from '../cadence/timed.ts';
import { isProofFlag, withoutRestated } from '../proof/proof-flags.ts';
import { SHORT } from '../quotes/promised.ts';
import { UNKNOWN } from '../subjects/kinds.ts';
import { type Snapshot, stageOf } from '../subjects/record.ts';
import { type SubjectId, subjectKind } from '../subjects/subject.ts';
import type { Accepted } from './decision.ts';
import { formerAfter } from './former.ts';

/** A snapshot without the members that only the commit can set. */
export type NewSnapshot = Omit<Snapshot, 'commit' | 'reported'>;

/**
 * The snapshot after a record was accepted, without its epoch and its events. `event`: an event is stored with it; `ahead`: the
 * status that v1 gave, where the open source is ahead of it.
 */
export function nextSnapshot(
  before: Snapshot | null,
  accepted: Accepted,
  context: { subject: SubjectId; nowMs: number; event: boolean; ahead?: string | null },
): NewSnapshot {
  const { subject, nowMs } = context;
  // The stage is the status in any spelling: timed events come once per stage.
  const moved = before === null || before.status.toLowerCase() !== accepted.status.toLowerCase();
  const { waiting } = stageOf(subject, accepted.status);
  const wasWaiting = before !== null && stageOf(subject, before.status).waiting;
  const since = wasWaiting ? before.pendingSince : (accepted.updatedAt ?? Math.floor(nowMs / 1_000));
  return {
    version: (before?.version ?? 0) + 1,
    sequence: (before?.sequence ?? 0) + (context.event ? 1 : 0),
    status: accepted.status,
    updatedAt: accepted.updatedAt,
    record: accepted.record,
    observedAtMs: nowMs,
    changedAtMs: moved ? nowMs : before.changedAtMs,
    pendingSince: waiting ? since : (before?.pendingSince ?? null),
    flags: withFlags(
      withoutRestated(moved ? remainingFlags(before, waiting && wasWaiting) : before.flags, {
        subject,
        record: accepted.record,
      }),
      quoteFlags(subject, accepted.status),
    ),
    ahead: context.ahead ?? null,
    unconfirmed: null,
    former: formerAfter(before, accepted, subject),
    emitted: before?.emitted ?? [],
    epoch: before?.epoch ?? 1,
  };
}

/** Time since which a subject has been waiting, Unix seconds; null for one that is not. */
export function waitingSince(subject: SubjectId, snapshot: Snapshot | null): number | null {
  return snapshot !== null && stageOf(subject, snapshot.status).waiting ? snapshot.pendingSince : null;
}

/** Time at which a transfer was funded: the first `updatedAt` while pending, Unix seconds; null when first seen later. */
export function fundedAt(
  subject: SubjectId,
  { pendingSince, updatedAt }: { pendingSince: number | null; updatedAt: number | null },
): number | null {
  const kind = subjectKind(subject);
  // Without the upstream's time, only the time of the poll is known.
  return updatedAt !== null && (kind === 'intent' || kind === 'deposit-address') ? pendingSince : null;
}

/** A new status clears the flags, except those with one life, and `overdue` while the transfer waits on. */
function remainingFlags(before: Snapshot | null, waitsOn: boolean): string[] {
  return (before?.flags ?? []).filter(
    (flag) =>
      flag.startsWith('quote:') || flag === SHORT || isProofFlag(flag) || (waitsOn && isOverdue(flag)),
  );
}

function withFlags(flags: readonly string[], more: readonly string[]): string[] {
  return [...new Set([...flags, ...more])];
}

/** Placeholder snapshot of a subject that the upstream has not shown, for an event that precedes it. */
export function unseenSnapshot(nowMs: number): Snapshot {
  return {
    version: 0,
    sequence: 0,
    commit: 0,
    status: UNKNOWN,
    updatedAt: null,
    record: {},
    observedAtMs: nowMs,
    changedAtMs: nowMs,
    pendingSince: null,
    flags: [],
    ahead: null,
    unconfirmed: null,
    former: [],
    emitted: [],
    epoch: 1,
    reported: false,
  };
}
