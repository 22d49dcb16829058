import type { TransferFacts } from '../events/event-schema.ts';
import { storableText } from '../json.ts';
import { foldHex } from '../subjects/subject.ts';
import type { BookState } from './book-state.ts';
import { type DayTransfer, deliveriesBy } from './day.ts';
import { amountOf, type BookNames } from './postings.ts';
import type { BookAmount, PROOF_WORDS, ReportRow } from './report-schema.ts';

type StatedMoney = NonNullable<TransferFacts['sent']>;

/** A transfer as a row of a day's report. */
export function rowOf(
  transfer: DayTransfer,
  { names, reportByMs }: { names: BookNames; reportByMs: number },
): ReportRow {
  const { subject, state, openBefore, inDay } = transfer;
  const { transfer: facts, fundedAtMs, endedAtMs } = state;
  const money = (one: StatedMoney | undefined): BookAmount | null =>
    one === undefined ? null : moneyOf(one, names);
  const isFilled = state.phase === 'delivered' && fundedAtMs !== null && endedAtMs !== null;
  const { proof, proofReason } = proofOf(state);
  return {
    subject,
    status: state.status,
    phase: state.phase,
    fundedAt: isoOrNull(fundedAtMs),
    endedAt: isoOrNull(endedAtMs),
    fillSeconds: isFilled ? Math.max(0, Math.round((endedAtMs - fundedAtMs) / 1_000)) : null,
    source: chainOf(facts.source?.chainId, names),
    destination: chainOf(facts.destination?.chainId, names),
    sent: money(facts.sent ?? facts.toSend),
    isSentSeen: facts.sent !== undefined,
    promised: money(facts.promised),
    delivered: money(facts.delivered),
    fees: (facts.fees ?? []).map((fee) => moneyOf(fee, names)),
    sourceTx: facts.source?.txHash ?? null,
    destinationTx: facts.destination?.txHash ?? null,
    refundTx: facts.refund?.txHash ?? null,
    proof,
    proofReason,
    reported: reportedOf(transfer, reportByMs),
    wallets: state.wallets,
    subscriptions: state.subscriptions,
    metadata: state.metadata,
    carried: openBefore > 0,
    late: inDay.some(({ isLate }) => isLate),
    corrections: inDay.filter(({ isCorrection }) => isCorrection).length,
  };
}

/**
 * Proof in a row: a dispute of any payment comes first. Only the payment that ended the transfer makes it verified,
 * and only by the transaction that the record states now. A verified funding proves no delivery.
 */
export function proofOf({ phase, proofs, transfer }: BookState): {
  proof: (typeof PROOF_WORDS)[number];
  proofReason: string | null;
} {
  const end = phase === 'delivered' ? 'destination' : phase === 'refunded' ? 'refund' : null;
  const stated = foldHex((end === null ? null : transfer[end]?.txHash) ?? '');
  const found =
    proofs.find(({ outcome }) => outcome === 'disputed') ??
    proofs.find(({ payment, txHash }) => payment === end && foldHex(txHash ?? stated) === stated) ??
    proofs.find(({ outcome }) => outcome === 'unproven');
  if (found === undefined) return { proof: 'not checked', proofReason: null };
  const reason = found.reason ?? (found.isSingleSource ? 'by one endpoint' : null);
  return { proof: found.outcome, proofReason: reason };
}

/** Receivers of the newest status of the day; a delivery after `reportByMs` does not count. */
function reportedOf({ events, state }: DayTransfer, reportByMs: number): ReportRow['reported'] {
  const word = state.status.toLowerCase();
  const event = events.findLast((one) => one.state.status === state.status && one.type.endsWith(`.${word}`));
  const deliveries = event === undefined ? [] : deliveriesBy(event, reportByMs);
  return deliveries.map(({ receiver, state: found, deliveredMs }) => {
    const isReported = deliveredMs !== null && deliveredMs <= reportByMs;
    return {
      receiver,
      state: isReported ? 'delivered' : deliveredMs === null ? found : 'waiting',
      at: isoOrNull(isReported ? deliveredMs : null),
    };
  });
}

/** The token is written as in the sums, since rows and sums are joined by it. */
function moneyOf({ amount, chainId, token, units, symbol }: StatedMoney, names: BookNames): BookAmount {
  const place = { chainId: storableText(chainId ?? ''), token: storableText(foldHex(token ?? '')) };
  const shown = amountOf(BigInt(amount), place, names);
  return { ...shown, units: shown.units ?? units ?? null, symbol: shown.symbol ?? symbol ?? null };
}

function chainOf(chainId: string | undefined, names: BookNames): string | null {
  return chainId === undefined ? null : (names.chain(chainId) ?? chainId);
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
