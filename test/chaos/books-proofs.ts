import type { ReportRow } from '../../src/domain/books/report-schema.ts';
import { type Expected, expectedOf } from '../support/lying-account.ts';
import { ONE_HOST, SOLANA } from '../support/lying-orders.ts';
import { type Account, endOf } from './books-lives.ts';
import type { BooksTruth, ReportedEvent, Stated, TrueTransfer } from './books-truth.ts';

type ProofWord = ReportRow['proof'];

/** Compares the verdict of a chain on each payment, as made, with the reported one. Empty where they agree. */
export function proofDifferences({ transfers, checkedChains, wallets }: BooksTruth): string[] {
  return transfers.flatMap(({ subject, stated, reported }) => {
    const textOf = (payment: string): string => {
      const proof = reported.findLast(({ proof: one }) => one?.payment === payment)?.proof;
      if (proof == null) return 'open';
      return proof.outcome === 'disputed' ? `disputed ${proof.reason}` : proof.outcome;
    };
    const isFundingProved = stated.some(
      ({ payment, chainId }) => payment === 'source' && checkedChains.has(chainId) && !ONE_HOST.has(chainId),
    );
    return stated.flatMap((one) => {
      if (!checkedChains.has(one.chainId)) return [];
      const [text, expected] = [textOf(one.payment), wordFor(one, isFundingProved)];
      // The upstream may pay a recipient that the config does not name; a single host is not believed against it.
      const isStranger = one.payment === 'destination' && !wallets.has(one.recipient.toLowerCase());
      const ofStranger = ONE_HOST.has(one.chainId) ? 'open' : 'disputed other-recipient';
      if (text === expected || (isStranger && text === ofStranger)) return [];
      return [
        `${subject}: its ${one.payment} (${one.lie ?? 'true'}) is reported as ${text}, expected ${expected}`,
      ];
    });
  });
}

/**
 * The verdict that must be reported of a payment. A refund is verified when it goes back to the payer, who is reported on EVM
 * chains alone, or when it is exactly the sent amount; a fulfilment is no evidence of it.
 */
function wordFor(stated: Stated, isFundingProved: boolean): Expected {
  if (stated.payment === 'refund') {
    if (stated.lie === 'other-recipient' || stated.lie === 'other-intent') return 'verified';
    if (stated.lie === 'short') return isFundingProved && stated.chainId !== SOLANA ? 'verified' : 'open';
  }
  return expectedOf({ stated, isContradicted: false, isFundingProved, first: null });
}

/** The verdict of the chain that a row must have on a day: one, or two where the day on which it was stored is unknown. */
export function proofWords(
  transfer: TrueTransfer,
  { day, dayOf, isEnded }: Pick<Account, 'day' | 'dayOf'> & { isEnded: boolean },
): ReadonlySet<ProofWord> {
  const isBy = (event: ReportedEvent): boolean => (dayOf(event) ?? day + 1) <= day;
  const mayBeBy = (event: ReportedEvent): boolean => (dayOf(event) ?? day) <= day;
  return new Set([isBy, mayBeBy].map((by) => wordOf(transfer, { by, isEnded })));
}

/** A dispute of any payment takes precedence; otherwise the verdict on the payment that ended the transfer. */
function wordOf(
  transfer: TrueTransfer,
  { by, isEnded }: { by: (event: ReportedEvent) => boolean; isEnded: boolean },
): ProofWord {
  const proofs = transfer.reported.filter(by).flatMap(({ proof }) => proof ?? []);
  if (proofs.some(({ outcome }) => outcome === 'disputed')) return 'disputed';
  const payment = endOf(transfer)?.status === 'refunded' ? 'refund' : 'destination';
  const ofEnd = isEnded ? proofs.findLast((one) => one.payment === payment) : undefined;
  return ofEnd?.outcome ?? proofs.find(({ outcome }) => outcome === 'unproven')?.outcome ?? 'not checked';
}
