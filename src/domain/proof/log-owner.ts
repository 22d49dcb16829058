import type { SubjectId } from '../subjects/subject.ts';

/**
 * The payment that a token log of a transaction has proved: one log proves one payment. `weight` is the sum of the evidence on
 * the chain: the contract of `fulfilments` in the config names the intent (4), the recipient is known (2), the amount is exact
 * (1).
 */
export type LogOwner = {
  /** Id of the payment's check. */
  check: string;
  subject: SubjectId;
  /** Base units that the upstream stated; null without a statement, or when the check is removed. */
  amount: string | null;
  weight: number;
  /** True while the payment is checked again after a new statement: the check may release the log. */
  isOpen: boolean;
};

const NAMED = 4;
const TO_RECIPIENT = 2;
const EXACT = 1;

/** Weight of an owner whose check is removed: no other payment gets its log. */
export const REMOVED_WEIGHT = NAMED + TO_RECIPIENT + EXACT;

export function evidenceWeight(found: { isNamed: boolean; isRightful: boolean; isExact: boolean }): number {
  return (found.isNamed ? NAMED : 0) + (found.isRightful ? TO_RECIPIENT : 0) + (found.isExact ? EXACT : 0);
}

/** A payment that matches the log too. `moved`: base units that the log moved; `amount`: those that were stated. */
type Claimant = { subject: SubjectId; moved: string; amount: string | null; weight: number };

/**
 * Decides which of two payments owns a log: the claimant, or the owner that it proved before.
 *
 * | the first case that applies                                               | result                       |
 * |---------------------------------------------------------------------------|------------------------------|
 * | the owner is checked again                                                | `open`: wait for that check  |
 * | both belong to one transfer, or the log moved enough for both amounts     | `unclear`                    |
 * | the owner has less weight                                                 | `claimant`                   |
 * | the owner has more weight, or the same with contract or recipient         | `owner`                      |
 * | the same weight without contract and recipient                            | `unclear`                    |
 */
export function decideOwner(claimant: Claimant, owner: LogOwner): 'open' | 'unclear' | 'claimant' | 'owner' {
  if (owner.isOpen) return 'open';
  const both = BigInt(claimant.amount ?? '1') + BigInt(owner.amount ?? '1');
  if (claimant.subject === owner.subject || BigInt(claimant.moved) >= both) return 'unclear';
  if (claimant.weight > owner.weight) return 'claimant';
  return claimant.weight < owner.weight || owner.weight >= TO_RECIPIENT ? 'owner' : 'unclear';
}

/**
 * Time at which a transfer was funded. `open`: the check of the funding payment is not over. `proved`: the block of that
 * payment, with the payer if the chain shows it. `reported`: one endpoint or the upstream reported the time. null: unknown.
 */
export type Funding =
  | { state: 'open' }
  | { state: 'proved'; atMs: number; payer: string | null }
  | { state: 'reported'; atMs: number }
  | null;

/** A payout's block may be this much older than its funding: clocks of chains differ, and reorganisations move blocks. */
const TOLERANCE_MS = 3_600_000;

/**
 * Compares the time of a payout's block with the funding of its transfer. The upstream states a payout after the funding, so a
 * payout that is not older than its statement fits. All comparisons have the tolerance.
 *
 * | the first case that applies                                 | result                                         |
 * |-------------------------------------------------------------|------------------------------------------------|
 * | the payout is not older than its statement                  | `fits`                                         |
 * | the time of the funding is unknown                          | `unknown`                                      |
 * | the check of the funding is not over                        | `open`                                         |
 * | the payout is not older than the funding                    | `fits`                                         |
 * | the payout is older than the proved funding                 | `older`: the payout of another transfer        |
 * | the payout is older than the reported funding               | `reported-older`: the report may be wrong      |
 */
export function ageOf(
  blockMs: number,
  { funding, statedAtMs }: { funding: Funding; statedAtMs: number },
): 'fits' | 'open' | 'older' | 'reported-older' | 'unknown' {
  if (blockMs >= statedAtMs - TOLERANCE_MS) return 'fits';
  if (funding === null) return 'unknown';
  if (funding.state === 'open') return 'open';
  if (blockMs >= funding.atMs - TOLERANCE_MS) return 'fits';
  return funding.state === 'proved' ? 'older' : 'reported-older';
}
