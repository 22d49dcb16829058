import { isOverdue } from '../cadence/timed.ts';
import type { SnapshotDraft } from '../changes/next-snapshot.ts';
import { UNKNOWN } from '../subjects/kinds.ts';
import { type Snapshot, stageOf, stepBetween } from '../subjects/record.ts';
import { type SubjectId, subjectKind } from '../subjects/subject.ts';
import type { RawAmount } from './money.ts';
import { readTransfer, routeName } from './transfer.ts';

/** What ends the wait of a transfer. */
export const FILL_OUTCOMES = ['filled', 'expired', 'failed', 'refundable', 'refunded'] as const;

/** What follows a fill. */
export const SETTLEMENT_OUTCOMES = ['settled', 'failed'] as const;

/** To what transfers come; `filled` stands also for one that was seen only when it was settled. */
export const VOLUME_OUTCOMES = ['pending', ...FILL_OUTCOMES] as const;

/**
 * That a transfer came to an outcome for the first time: what it has sent by which pair of chains, and how long its fill or
 * settlement took as the upstream says it. Null: nothing of the kind has ended, or its beginning is not known.
 */
export type TransferMove = {
  route: string;
  sent: RawAmount;
  outcome: (typeof VOLUME_OUTCOMES)[number] | null;
  fillSeconds: number | null;
  settlement: { outcome: (typeof SETTLEMENT_OUTCOMES)[number]; seconds: number } | null;
};

/** What a snapshot is compared by. */
type MovedSnapshot = Pick<SnapshotDraft, 'status' | 'record' | 'updatedAt' | 'pendingSince'>;

/** How a transfer moved from one snapshot to the next; null where it did not, stepped back, or is of another kind. */
export function transferMove(
  subject: SubjectId,
  before: MovedSnapshot | null,
  after: MovedSnapshot | Snapshot,
): TransferMove | null {
  if (subjectKind(subject) !== 'intent') return null;
  const [from, to] = [before?.status.toLowerCase() ?? null, after.status.toLowerCase()];
  if (from === to || from === UNKNOWN) return null;
  if (from !== null && stepBetween(subject, from, to) === 'backward') return null;
  const outcome = outcomeOf(to);
  const source = readTransfer(after.record).source;
  const wasWaiting = from !== null && stageOf(subject, from).waiting;
  return {
    route: routeName(after.record),
    sent: { chainId: source?.chainId, token: source?.token, amount: source?.amount },
    outcome: from !== null && outcomeOf(from) === outcome ? null : outcome,
    fillSeconds: wasWaiting && outcome !== 'pending' ? span(before?.pendingSince, after.updatedAt) : null,
    settlement: from === 'filled' ? settlementOf(to, span(before?.updatedAt, after.updatedAt)) : null,
  };
}

function outcomeOf(status: string): TransferMove['outcome'] {
  const word = status === 'settled' ? 'filled' : status;
  return VOLUME_OUTCOMES.find((outcome) => outcome === word) ?? null;
}

function settlementOf(status: string, seconds: number | null): TransferMove['settlement'] {
  return seconds === null ? null : { outcome: status === 'settled' ? 'settled' : 'failed', seconds };
}

/** Seconds from one time of the upstream's to a later one; null where either is not known, or they are the wrong way round. */
function span(from: number | null | undefined, until: number | null): number | null {
  return from == null || until === null || until < from ? null : until - from;
}

/** The states of a transfer whose money is neither where it was to go nor back where it came from. */
export const OPEN_STATES = ['pending', 'overdue', 'expired', 'failed', 'refundable'] as const;

export type OpenState = (typeof OPEN_STATES)[number];

/** A transfer that has not come to an end: what it has sent, by which pair of chains, and since when it is so (Unix seconds). */
export type OpenTransfer = { state: OpenState; route: string; sent: RawAmount; since: number };

/** What of a snapshot counts; `changedAtMs` is when its status was first seen. */
type OpenSnapshot = Pick<
  SnapshotDraft,
  'status' | 'record' | 'updatedAt' | 'changedAtMs' | 'pendingSince' | 'flags'
>;

/** A transfer as one that is open; null for what is none, or has come to an end. */
export function openTransfer(subject: SubjectId, snapshot: OpenSnapshot): OpenTransfer | null {
  const state = openState(subject, snapshot);
  if (state === null) return null;
  const { record, updatedAt, changedAtMs, pendingSince } = snapshot;
  const isWaiting = state === 'pending' || state === 'overdue';
  const since = (isWaiting ? pendingSince : updatedAt) ?? Math.floor(changedAtMs / 1_000);
  const { chainId, token, amount } = readTransfer(record).source ?? {};
  return { state, route: routeName(record), sent: { chainId, token, amount }, since: Math.max(0, since) };
}

function openState(subject: SubjectId, { status, flags }: OpenSnapshot): OpenState | null {
  // Jobs, quotes and vaults name the transfer that they lead to: it would count twice.
  if (subjectKind(subject) !== 'intent') return null;
  if (stageOf(subject, status).waiting) return flags.some(isOverdue) ? 'overdue' : 'pending';
  return OPEN_STATES.find((state) => state === status.toLowerCase()) ?? null;
}
