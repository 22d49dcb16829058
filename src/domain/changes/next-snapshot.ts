import { isOverdue, quoteFlags } from '../cadence/timed.ts';
import { isProofFlag, withoutRestated } from '../proof/proof-flags.ts';
import { SHORT } from '../quotes/promised.ts';
import { UNKNOWN } from '../subjects/kinds.ts';
import { type Snapshot, stageOf } from '../subjects/record.ts';
import { type SubjectId, subjectKind } from '../subjects/subject.ts';
import type { Accepted } from './decision.ts';
import { formerAfter } from './former.ts';

/** What the commit writes: a snapshot without what only the commit itself can give. */
export type SnapshotDraft = Omit<Snapshot, 'commit' | 'reported'>;

/** The snapshot after a record was accepted, but for its epoch and its events. `event`: an event goes with it. */
export function nextSnapshot(
  before: Snapshot | null,
  accepted: Accepted,
  context: { subject: SubjectId; nowMs: number; event: boolean },
): SnapshotDraft {
  const { subject, nowMs } = context;
  // The stage is the status in any spelling: the events of time come once per stage.
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
      withoutRestated(moved ? keptFlags(before, waiting && wasWaiting) : before.flags, {
        subject,
        record: accepted.record,
      }),
      quoteFlags(subject, accepted.status),
    ),
    unconfirmed: null,
    former: formerAfter(before, accepted, subject),
    emitted: before?.emitted ?? [],
    epoch: before?.epoch ?? 1,
  };
}

/** Since when a subject has been under way, Unix seconds; null for one that is not. */
export function waitingSince(subject: SubjectId, snapshot: Snapshot | null): number | null {
  return snapshot !== null && stageOf(subject, snapshot.status).waiting ? snapshot.pendingSince : null;
}

/**
 * When a transfer was funded, as far as it was seen: the first `updatedAt` at which it was pending, Unix seconds; null for
 * one that was first seen later. Other kinds begin to wait for other reasons.
 */
export function fundedAt(
  subject: SubjectId,
  { pendingSince, updatedAt }: Pick<Snapshot, 'pendingSince' | 'updatedAt'>,
): number | null {
  const kind = subjectKind(subject);
  // Without a time of the upstream's, it is only known when it was looked at.
  return updatedAt !== null && (kind === 'intent' || kind === 'deposit-address') ? pendingSince : null;
}

/** A new status starts with no flags, but a transfer that waits on is not overdue a second time, and what has one life keeps its own. */
function keptFlags(before: Snapshot | null, waitsOn: boolean): string[] {
  return (before?.flags ?? []).filter(
    (flag) =>
      flag.startsWith('quote:') || flag === SHORT || isProofFlag(flag) || (waitsOn && isOverdue(flag)),
  );
}

function withFlags(flags: readonly string[], more: readonly string[]): string[] {
  return [...new Set([...flags, ...more])];
}

/** What stands for the snapshot of a subject that the upstream has not shown, for an event that comes before it does. */
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
    unconfirmed: null,
    former: [],
    emitted: [],
    epoch: 1,
    reported: false,
  };
}
