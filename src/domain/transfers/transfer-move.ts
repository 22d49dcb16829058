import { isOverdue } from '../cadence/timed.ts';
import type { NewSnapshot } from '../changes/next-snapshot.ts';
import type { JsonObject } from '../json.ts';
import { UNKNOWN } from '../subjects/kinds.ts';
import { stageOf, stepBetween } from '../subjects/record.ts';
import { type SubjectId, subjectKind } from '../subjects/subject.ts';
import type { RawAmount } from './money.ts';
import { readTransfer, routeName } from './transfer.ts';

export const FILL_OUTCOMES = ['filled', 'expired', 'failed', 'refundable', 'refunded'] as const;

export const SETTLEMENT_OUTCOMES = ['settled', 'failed'] as const;

/** Outcomes of transfers; `filled` includes a transfer that was first seen as settled. */
export const VOLUME_OUTCOMES = ['pending', ...FILL_OUTCOMES] as const;

/**
 * First arrival of a transfer at an outcome: its sent amount and pair of chains, and the upstream's time of its fill
 * or settlement. Null: no such stage has ended, or its start is unknown.
 */
export type TransferMove = {
  route: string;
  sent: RawAmount;
  outcome: (typeof VOLUME_OUTCOMES)[number] | null;
  fillSeconds: number | null;
  settlement: { outcome: (typeof SETTLEMENT_OUTCOMES)[number]; seconds: number } | null;
};

type MovedSnapshot = {
  status: string;
  record: JsonObject;
  updatedAt: number | null;
  pendingSince: number | null;
};

/** Move of a transfer between two snapshots; null when it did not move, stepped back, or is of another kind. */
export function transferMove(
  subject: SubjectId,
  before: MovedSnapshot | null,
  after: MovedSnapshot,
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

/** Seconds between two upstream times; null when either is unknown or they are in reverse order. */
function span(from: number | null | undefined, until: number | null): number | null {
  return from == null || until === null || until < from ? null : until - from;
}

/** States of a transfer whose money is neither delivered nor refunded. */
export const OPEN_STATES = ['pending', 'overdue', 'expired', 'failed', 'refundable'] as const;

export type OpenState = (typeof OPEN_STATES)[number];

/** An unfinished transfer: its sent amount, its pair of chains, and the start of its state (Unix seconds). */
export type OpenAmount = { state: OpenState; route: string; sent: RawAmount; since: number };

/** Returns the open state of a transfer; null for a finished one or another kind. */
export function openTransfer(subject: SubjectId, snapshot: NewSnapshot): OpenAmount | null {
  const state = openState(subject, snapshot);
  if (state === null) return null;
  const { record, updatedAt, changedAtMs, pendingSince } = snapshot;
  const isWaiting = state === 'pending' || state === 'overdue';
  const since = (isWaiting ? pendingSince : updatedAt) ?? Math.floor(changedAtMs / 1_000);
  const { chainId, token, amount } = readTransfer(record).source ?? {};
  return { state, route: routeName(record), sent: { chainId, token, amount }, since: Math.max(0, since) };
}

function openState(subject: SubjectId, { status, flags }: NewSnapshot): OpenState | null {
  // Jobs, quotes and vaults name the transfer that they lead to: it would count twice.
  if (subjectKind(subject) !== 'intent') return null;
  if (stageOf(subject, status).waiting) return flags.some(isOverdue) ? 'overdue' : 'pending';
  return OPEN_STATES.find((state) => state === status.toLowerCase()) ?? null;
}
