import { randomUUID } from 'node:crypto';
import type { DueEvent, PlanInput } from '../../domain/cadence/subject-plan.ts';
import { isOverdue } from '../../domain/cadence/timed.ts';
import type { FlaggedEvent } from '../../domain/changes/decision.ts';
import { fundedAt, type NewSnapshot, waitingSince } from '../../domain/changes/next-snapshot.ts';
import { identify } from '../../domain/events/event.ts';
import type { Promised } from '../../domain/events/event-schema.ts';
import { makeEvent } from '../../domain/events/make-event.ts';
import type { Proof } from '../../domain/proof/proof.ts';
import type { Snapshot } from '../../domain/subjects/record.ts';
import { eventKind, type SubjectId, subjectKind } from '../../domain/subjects/subject.ts';
import type { Signals } from '../../signals.ts';
import type { CheckEnding } from '../../store/checks.ts';
import type { CommitResult, SubjectStore } from '../../store/subjects.ts';
import type { Learning } from './learning.ts';

/** Dependencies for committing events that no response caused. */
export type FlaggedContext = { stores: { subjects: SubjectStore }; learning: Learning; signals: Signals };

/** An entry subject, with its quote's promise, where that is known. */
export type Affected = PlanInput & { snapshot: Snapshot; promised: Promised | null };

/** Commits the events that are due by the clock, each once. Returns the current snapshot. */
export async function commitDue(
  deps: FlaggedContext,
  entry: Affected,
  { due, nowMs }: { due: readonly DueEvent[]; nowMs: number },
): Promise<Snapshot> {
  let { snapshot } = entry;
  for (const { event, claimKeys } of due) {
    const committed = await commitFlagged(deps, { ...entry, snapshot }, { event, claimKeys, nowMs });
    if (committed === null) return snapshot;
    snapshot = committed;
  }
  return snapshot;
}

/**
 * Commits an event that no response caused, with its flag in one step. `claims` are those of the subject; `claimKeys` are the
 * notified ones, null for all. Returns the current snapshot; null when another process was faster.
 */
export async function commitFlagged(
  deps: FlaggedContext,
  entry: Affected,
  happened: { event: FlaggedEvent; claimKeys: string[] | null; nowMs: number },
): Promise<Snapshot | null> {
  const { event, claimKeys, nowMs } = happened;
  const { flag, transition, raw } = event;
  const flags = [...entry.snapshot.flags, flag];
  const { snapshot } = await commitUnasked(deps, entry, {
    transition,
    raw,
    flags,
    flag,
    claimKeys,
    nowMs,
  });
  if (snapshot === null) return null;
  if (isOverdue(flag) && !entry.snapshot.flags.some(isOverdue)) deps.learning.sawOverdue(entry.snapshot);
  return snapshot;
}

/** Change that no response reported: its `flags` after it, `flag` that must not be set yet, ending `check`, and `proof`. */
export type Unasked = {
  transition: FlaggedEvent['transition'];
  raw: FlaggedEvent['raw'];
  flags: string[];
  flag?: string;
  claimKeys: string[] | null;
  nowMs: number;
  check?: CheckEnding;
  proof?: Proof;
};

/** Commits an event that no response caused. The snapshot is the current one, null where nothing was committed. */
export async function commitUnasked(
  deps: FlaggedContext,
  entry: Affected,
  { transition, raw, flags, flag, claimKeys, nowMs, check, proof }: Unasked,
): Promise<{ outcome: CommitResult['outcome']; snapshot: Snapshot | null }> {
  const { subject, snapshot, claims } = entry;
  const { commit, reported, ...present } = snapshot;
  const { epoch } = deps.stores.subjects.epoch.begun;
  const record = { ...snapshot.record, ...raw };
  const identity = identify(
    {
      subject,
      type: transition.type,
      record,
      ...(flag === undefined ? {} : { flag }),
      ...(proof === undefined ? {} : { payment: proof.payment }),
    },
    { emitted: snapshot.emitted, restoredIn: null },
  );
  const next: NewSnapshot = {
    ...present,
    emitted: [...identity.emitted],
    version: snapshot.version + 1,
    sequence: snapshot.sequence + 1,
    flags,
  };
  const event = makeEvent({
    subject: { kind: eventKind(subject), id: subject },
    sequence: next.sequence,
    epoch,
    identity,
    transition,
    record,
    updatedAt: snapshot.updatedAt,
    waitingSince: waitingSince(subject, snapshot),
    promised: entry.promised,
    fundedAt: fundedAt(subject, snapshot),
    expectedBy: deps.learning.expectedBy(subject, snapshot, nowMs),
    proof: proof ?? null,
    nowMs,
  });
  const { outcome, commit: number } = await deps.stores.subjects.commit({
    subject,
    asOf: String(commit),
    token: event.id,
    claims: claimKeys === null ? claims.filter((claim) => !claim.served) : [],
    snapshot: next,
    event: { event, updatedAt: snapshot.updatedAt, first: false, claimKeys },
    ...(flag === undefined ? {} : { flag }),
    ...(check === undefined ? {} : { check }),
  });
  if (outcome !== 'committed' && outcome !== 'already') return { outcome, snapshot: null };
  // The process that committed an event emits it.
  if (outcome === 'committed') deps.signals.emit('event.committed', { event, kind: subjectKind(subject) });
  return { outcome, snapshot: { ...next, commit: Number(number), reported: reported || claimKeys === null } };
}

/** Commits flags without an event, and the check that ends with them, where one does. */
export async function commitFlags(
  { stores }: FlaggedContext,
  { subject, snapshot }: { subject: SubjectId; snapshot: Snapshot },
  { flags, check }: { flags: string[]; check?: CheckEnding },
): Promise<CommitResult['outcome']> {
  const { commit, reported: _, ...present } = snapshot;
  const { outcome } = await stores.subjects.commit({
    subject,
    asOf: String(commit),
    token: randomUUID(),
    claims: [],
    snapshot: { ...present, version: snapshot.version + 1, flags },
    ...(check === undefined ? {} : { check }),
  });
  return outcome;
}
