import type { SubjectId } from '../subjects/subject.ts';

/**
 * A payment that a log has proved. `weight`: sum of the facts on the chain that tie the log to it. The pinned
 * contract named the intent (4), it went to a known recipient (2), it moved exactly the stated amount (1).
 */
export type LogClaim = {
  check: string;
  subject: SubjectId;
  /** Stated base units; null when none were stated, or when it is removed. */
  amount: string | null;
  weight: number;
  /** True while the payment was restated and is checked again: the log may not stay its own. */
  isOpen: boolean;
};

const NAMED = 4;
const KNOWN_RECIPIENT = 2;
const EXACT = 1;

/** Weight of a holder that is removed: its log is never claimed. */
export const FORGOTTEN_WEIGHT = NAMED + KNOWN_RECIPIENT + EXACT;

export function weightOf(tied: { isNamed: boolean; isToKnown: boolean; isExact: boolean }): number {
  return (tied.isNamed ? NAMED : 0) + (tied.isToKnown ? KNOWN_RECIPIENT : 0) + (tied.isExact ? EXACT : 0);
}

type Claimant = { moved: string; amount: string | null; weight: number };

/**
 * Decides between two payments that claim one log.
 *
 * | the holder ...                                                            | then the log is              |
 * |---------------------------------------------------------------------------|------------------------------|
 * | is being checked again                                                    | free: `open`                 |
 * | and the other would both fit into it, or are payments of one transfer     | undecided: `unclear`         |
 * | is tied to it by less of what is on the chain                             | the other's: `mine`          |
 * | is tied to it by more; as much, and by contract or recipient              | the holder's: `theirs`       |
 * | as much, and by neither: nothing on the chain decides                     | undecided: `unclear`         |
 */
export function holderOf(
  mine: Claimant & { subject: SubjectId },
  theirs: LogClaim,
): 'open' | 'unclear' | 'mine' | 'theirs' {
  if (theirs.isOpen) return 'open';
  const both = BigInt(mine.amount ?? '1') + BigInt(theirs.amount ?? '1');
  if (mine.subject === theirs.subject || BigInt(mine.moved) >= both) return 'unclear';
  if (mine.weight > theirs.weight) return 'mine';
  return mine.weight < theirs.weight || theirs.weight >= KNOWN_RECIPIENT ? 'theirs' : 'unclear';
}

/**
 * Funding of a transfer. `open`: still checked. `proved`: by the block of the funding payment, with the payer if the
 * chain shows it. `said`: the time at which the upstream first called it under way. null: unknown.
 */
export type Funding =
  | { known: 'open' }
  | { known: 'proved'; atMs: number; payer: string | null }
  | { known: 'said'; atMs: number }
  | null;

/** A payment may be this much older than its funding or statement: chain clocks differ, and reorganisations move blocks. */
const TOLERANCE_MS = 3_600_000;

/**
 * Compares the age of a payout with its transfer. A statement is never older than the funding of its transfer, so a
 * payout hardly older than its statement fits.
 *
 * | the block is ...                                            | then                                           |
 * |-------------------------------------------------------------|------------------------------------------------|
 * | at most an hour older than the statement                    | `fits`                                         |
 * | older, and the funding is still checked                     | `open`                                         |
 * | an hour older than the block that funded it                 | `older`: it is the payment of something else   |
 * | an hour older than the upstream called it under way         | `said-older`: only the upstream's status       |
 * | not so much older than either                               | `fits`                                         |
 * | older than the statement, and of the funding nothing known  | `unknown`                                      |
 */
export function ageOf(
  blockMs: number,
  { funding, statedAtMs }: { funding: Funding; statedAtMs: number },
): 'fits' | 'open' | 'older' | 'said-older' | 'unknown' {
  if (blockMs >= statedAtMs - TOLERANCE_MS) return 'fits';
  if (funding === null) return 'unknown';
  if (funding.known === 'open') return 'open';
  if (blockMs >= funding.atMs - TOLERANCE_MS) return 'fits';
  return funding.known === 'proved' ? 'older' : 'said-older';
}
