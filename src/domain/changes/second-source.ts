import { isJsonObject, type JsonObject } from '../json.ts';
import { statusOf } from '../subjects/kinds.ts';
import { type Snapshot, stepBetween, type UpstreamRecord } from '../subjects/record.ts';
import { type SubjectId, subjectKind } from '../subjects/subject.ts';
import { withStatus } from './decide.ts';

/*
 * The states of a transfer whose status comes from two sources. v1 decides; the open source is believed only where its status
 * is a forward step from that of v1.
 *
 *   state  | snapshot                        | ends when
 *   -------|---------------------------------|--------------------------------------------------------------------------------
 *   agreed | status of v1; `ahead` is null   | the open source shows a later status on the same way: ahead, with an event
 *   ahead  | status of the open source;      | v1 shows this status, a later one or one on another way: agreed, with the event
 *          | `ahead` is the status of v1     | of that move, if any. The open source shows no status ahead of v1 any more, and
 *          |                                 | repeats that until it is confirmed (`polling.confirmAfter`): agreed, with an
 *          |                                 | event that is a regression
 *
 * While the open source is ahead, an answer of v1 that is still behind reports no status: only its other members count.
 */

/** The statuses that the open source reports, in the words of v1. */
const OPEN_STATUSES = ['pending', 'refundable', 'filled', 'refunded'];

/** Relation of an open status to that of v1: equal, ahead on the usual steps, behind, or on none of them. */
export const COMPARISONS = ['agrees', 'ahead', 'behind', 'differs', 'unknown'] as const;

export type Comparison = (typeof COMPARISONS)[number];

/** True when the open source may report a step ahead of a state, or has done so. */
export function isFollowed(
  subject: SubjectId,
  { status, ahead }: { status: string; ahead: string | null },
): boolean {
  if (subjectKind(subject) !== 'intent') return false;
  return ahead !== null || OPEN_STATUSES.some((open) => isForward(subject, status, open));
}

function isForward(subject: SubjectId, from: string, to: string): boolean {
  const step = stepBetween(subject, from, to);
  return step === 'forward' || step === 'skipped';
}

/** Compares an open status with that of v1. The open source has no word of its own for `settled`. */
export function compareStatuses(subject: SubjectId, v1: string, open: string): Comparison {
  if (open.toLowerCase() === 'filled' && v1.toLowerCase() === 'settled') return 'agrees';
  switch (stepBetween(subject, v1, open)) {
    case 'same':
      return 'agrees';
    case 'forward':
    case 'skipped':
      return 'ahead';
    case 'backward':
      return 'behind';
    case 'other':
      return 'differs';
  }
}

/** An answer in view of both sources. `ahead`: for the next snapshot; `isBehind`: v1 has not come to the status of the open source yet. */
export type Joined = { record: UpstreamRecord; ahead: string | null; isBehind: boolean };

/** Joins a record of the first source of statuses with the snapshot; `joinOpen` does so for the second one. */
export function joined(
  statusSource: 'v1' | 'open' | 'both',
  raw: UpstreamRecord,
  snapshot: Snapshot | null,
): Joined {
  const record = withStatus(raw, snapshot);
  switch (statusSource) {
    case 'v1':
      return { record, ahead: null, isBehind: false };
    case 'open':
      return joinAlone(snapshot, record);
    case 'both':
      return joinV1(snapshot, record);
    default:
      return statusSource satisfies never;
  }
}

/** Joins an answer of v1 with the snapshot: a status behind that of the open source is none. */
export function joinV1(snapshot: Snapshot | null, record: UpstreamRecord): Joined {
  const { subject, status } = record;
  if (snapshot === null || snapshot.ahead === null || !isForward(subject, status, snapshot.status)) {
    return { record, ahead: null, isBehind: false };
  }
  const raw: JsonObject = { ...record.raw, status: snapshot.status };
  return { record: { ...record, status: snapshot.status, raw }, ahead: status, isBehind: true };
}

/**
 * Joins an answer of the open source, where v1 is not polled any more, with the snapshot: it has no words of its own for
 * `settled` and `expired` of v1.
 */
export function joinAlone(snapshot: Snapshot | null, record: UpstreamRecord): Joined {
  const alone = { record, ahead: null, isBehind: false };
  if (snapshot === null || subjectKind(record.subject) !== 'intent') return alone;
  const [stored, open] = [snapshot.status.toLowerCase(), record.status.toLowerCase()];
  const isSame = (stored === 'settled' && open === 'filled') || (stored === 'expired' && open === 'pending');
  if (!isSame) return alone;
  const { status } = snapshot;
  return { ...alone, record: { ...record, status, raw: { ...record.raw, status } } };
}

/**
 * Joins an answer of the open source with the snapshot; null where it changes nothing. It has no time, and none of the
 * members of v1: those stay.
 */
export function joinOpen(snapshot: Snapshot, record: UpstreamRecord): Joined | null {
  const { subject } = record;
  const v1 = snapshot.ahead ?? snapshot.status;
  const isAhead = isForward(subject, v1, record.status);
  // A word that is on none of the usual steps withdraws nothing.
  if (!isAhead && (snapshot.ahead === null || statusOf(subject, record.status) === null)) return null;
  const status = isAhead ? record.status : v1;
  const raw: JsonObject = { ...snapshot.record, status, open: openMember(record) };
  return { record: { ...record, status, raw }, ahead: isAhead ? v1 : null, isBehind: false };
}

function openMember({ raw }: UpstreamRecord): JsonObject {
  return isJsonObject(raw.open) ? raw.open : {};
}
