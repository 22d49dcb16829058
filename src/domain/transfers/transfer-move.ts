import { routeName } from '../cadence/route-name.ts';
import type { SnapshotDraft } from '../changes/next-snapshot.ts';
import { UNKNOWN } from '../subjects/kinds.ts';
import { stageOf, stepBetween } from '../subjects/lifecycle.ts';
import type { Snapshot } from '../subjects/record.ts';
import { type SubjectId, subjectKind } from '../subjects/subject.ts';
import type { RawAmount } from './money.ts';
import { readTransfer } from './transfer.ts';

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
type Standing = Pick<SnapshotDraft, 'status' | 'record' | 'updatedAt' | 'pendingSince'>;

/** How a transfer moved from one snapshot to the next; null where it did not, stepped back, or is of another kind. */
export function transferMove(
  subject: SubjectId,
  before: Standing | null,
  after: Standing | Snapshot,
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
