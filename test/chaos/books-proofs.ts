import type { ReportRow } from '../../src/domain/books/report-schema.ts';
import { type Expected, expectedOf } from '../support/lying-account.ts';
import { ONE_HOST, SOLANA } from '../support/lying-orders.ts';
import { type Account, endOf } from './books-lives.ts';
import type { BooksTruth, Stated, ToldEvent, TrueTransfer } from './books-truth.ts';

type ProofWord = ReportRow['proof'];

/** What a chain must say of each payment, by what was made, and what was reported of it; nothing where they agree. */
export function proofDifferences({ transfers, checkedChains, wallets }: BooksTruth): string[] {
  return transfers.flatMap(({ subject, stated, reported }) => {
    const saidOf = (payment: string): string => {
      const proof = reported.findLast(({ proof: one }) => one?.payment === payment)?.proof;
      if (proof == null) return 'open';
      return proof.outcome === 'disputed' ? `disputed ${proof.reason}` : proof.outcome;
    };
    const isFundingProved = stated.some(
      ({ payment, chainId }) => payment === 'source' && checkedChains.has(chainId) && !ONE_HOST.has(chainId),
    );
    return stated.flatMap((one) => {
      if (!checkedChains.has(one.chainId)) return [];
      const [says, expected] = [saidOf(one.payment), wordFor(one, isFundingProved)];
      // The upstream may pay to somebody whom the config does not name; one host alone is not believed against it.
      const isStranger = one.payment === 'destination' && !wallets.has(one.recipient.toLowerCase());
      const ofStranger = ONE_HOST.has(one.chainId) ? 'open' : 'disputed other-recipient';
      if (says === expected || (isStranger && says === ofStranger)) return [];
      return [
        `${subject}: its ${one.payment} (${one.lie ?? 'true'}) is reported as ${says}, expected ${expected}`,
      ];
    });
  });
}

/**
 * What must be reported of a payment. A refund is verified where it goes back to whoever paid, which is reported on EVM chains alone, or
 * is exactly what was sent; what a fulfilment says is nothing of it.
 */
function wordFor(stated: Stated, isFundingProved: boolean): Expected {
  if (stated.payment === 'refund') {
    if (stated.lie === 'other-recipient' || stated.lie === 'other-intent') return 'verified';
    if (stated.lie === 'short') return isFundingProved && stated.chainId !== SOLANA ? 'verified' : 'open';
  }
  return expectedOf({ stated, isContradicted: false, isFundingProved, first: null });
}

/** What a row must say of the chain on a day: one word, or two where it cannot be known on which day something was taken in. */
export function proofWords(
  transfer: TrueTransfer,
  { day, dayOf, isEnded }: Pick<Account, 'day' | 'dayOf'> & { isEnded: boolean },
): ReadonlySet<ProofWord> {
  const isBy = (event: ToldEvent): boolean => (dayOf(event) ?? day + 1) <= day;
  const mayBeBy = (event: ToldEvent): boolean => (dayOf(event) ?? day) <= day;
  return new Set([isBy, mayBeBy].map((by) => wordOf(transfer, { by, isEnded })));
}

/** A dispute of any payment counts most; else what was said of the payment that ended it. */
function wordOf(
  transfer: TrueTransfer,
  { by, isEnded }: { by: (event: ToldEvent) => boolean; isEnded: boolean },
): ProofWord {
  const proofs = transfer.reported.filter(by).flatMap(({ proof }) => proof ?? []);
  if (proofs.some(({ outcome }) => outcome === 'disputed')) return 'disputed';
  const payment = endOf(transfer)?.status === 'refunded' ? 'refund' : 'destination';
  const ofEnd = isEnded ? proofs.findLast((one) => one.payment === payment) : undefined;
  return ofEnd?.outcome ?? proofs.find(({ outcome }) => outcome === 'unproven')?.outcome ?? 'not checked';
}
