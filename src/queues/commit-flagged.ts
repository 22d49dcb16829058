import type { Claim } from '../domain/claim.ts';
import type { Promised } from '../domain/event-schema.ts';
import { makeEvent } from '../domain/make-event.ts';
import { fundedAt, type SnapshotDraft, waitingSince } from '../domain/next-snapshot.ts';
import type { Snapshot } from '../domain/record.ts';
import { eventKind, type SubjectId, subjectKind } from '../domain/subject.ts';
import type { FlaggedEvent } from '../domain/timed.ts';
import type { Signals } from '../signals.ts';
import type { SubjectStore } from '../store/subjects.ts';

/** A subject as it stands, with what its quote promised, where that is known. */
export type Standing = {
  subject: SubjectId;
  snapshot: Snapshot;
  claims: readonly Claim[];
  promised: Promised | null;
};

/**
 * Commits an event that no answer made, with its flag in one step. `claims` are those of the subject; `roots` are the
 * ones that are told, null for all. Returns the snapshot that stands then; null when another process was faster.
 */
export async function commitFlagged(
  parts: { subjects: SubjectStore; signals: Signals },
  known: Standing,
  happened: { event: FlaggedEvent; roots: string[] | null; nowMs: number },
): Promise<Snapshot | null> {
  const { subject, snapshot, claims } = known;
  const { flag, transition, said } = happened.event;
  const { commit, told, ...present } = snapshot;
  const draft: SnapshotDraft = {
    ...present,
    version: snapshot.version + 1,
    sequence: snapshot.sequence + 1,
    flags: [...snapshot.flags, flag],
  };
  const event = makeEvent({
    subject: { kind: eventKind(subject), id: subject },
    sequence: draft.sequence,
    transition,
    record: { ...snapshot.record, ...said },
    updatedAt: snapshot.updatedAt,
    waitingSince: waitingSince(subject, snapshot),
    promised: known.promised,
    fundedAt: fundedAt(subject, snapshot),
    nowMs: happened.nowMs,
  });
  const { roots } = happened;
  const result = await parts.subjects.commit({
    subject,
    asOf: String(commit),
    token: event.id,
    claims: roots === null ? claims.filter((claim) => !claim.served) : [],
    snapshot: draft,
    event: { event, updatedAt: snapshot.updatedAt, first: false, roots },
    flag,
  });
  if (result.outcome === 'superseded') return null;
  parts.signals.emit('event.committed', { event, kind: subjectKind(subject) });
  return { ...draft, commit: Number(result.commit), told: told || roots === null };
}
