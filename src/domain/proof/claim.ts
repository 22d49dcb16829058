import type { SubjectId } from '../subjects/subject.ts';

/**
 * A payment that a log has proved. `weight` says by how much of what is on the chain the log is tied to it: the pinned
 * contract named the intent (4), it went to who was known to receive it (2), it moved exactly what was stated (1).
 */
export type Claim = {
  /** The check that the log proved. */
  check: string;
  subject: SubjectId;
  /** What was stated of it, in base units; null where nothing was, or it is removed. */
  amount: string | null;
  weight: number;
  /** It was restated, and is being checked anew: whether the log stays its own is not known. */
  isOpen: boolean;
};

const NAMED = 4;
const KNOWN_RECIPIENT = 2;
const EXACT = 1;

/** Of whoever held a log and is removed: nobody takes it away. */
export const FORGOTTEN_WEIGHT = NAMED + KNOWN_RECIPIENT + EXACT;

export function weightOf(tied: { isNamed: boolean; isToKnown: boolean; isExact: boolean }): number {
  return (tied.isNamed ? NAMED : 0) + (tied.isToKnown ? KNOWN_RECIPIENT : 0) + (tied.isExact ? EXACT : 0);
}

/** A log, and the claim that a statement makes on it. */
type Claimed = { moved: string; amount: string | null; weight: number };

/**
 * Whose a log is that two payments claim.
 *
 * | the holder ...                                                            | then the log is              |
 * |---------------------------------------------------------------------------|------------------------------|
 * | is being checked anew                                                     | nobody's yet: `open`         |
 * | and the other would both fit into it, or are payments of one transfer     | not to be reported: `unclear`    |
 * | is tied to it by less of what is on the chain                             | the other's: `mine`          |
 * | is tied to it by more; as much, and by contract or recipient              | the holder's: `theirs`       |
 * | as much, and by neither: nothing on the chain decides                     | not to be reported: `unclear`    |
 */
export function holderOf(
  mine: Claimed & { subject: SubjectId },
  theirs: Claim,
): 'open' | 'unclear' | 'mine' | 'theirs' {
  if (theirs.isOpen) return 'open';
  const both = BigInt(mine.amount ?? '1') + BigInt(theirs.amount ?? '1');
  if (mine.subject === theirs.subject || BigInt(mine.moved) >= both) return 'unclear';
  if (mine.weight > theirs.weight) return 'mine';
  return mine.weight < theirs.weight || theirs.weight >= KNOWN_RECIPIENT ? 'theirs' : 'unclear';
}

/**
 * What is known of how a transfer was funded. `open`: that is still checked; `proved`: by the block of the payment that
 * funded it, with whoever paid where the chain tells; `said`: since when the upstream called it under way; null: nothing.
 */
export type Funding =
  | { known: 'open' }
  | { known: 'proved'; atMs: number; payer: string | null }
  | { known: 'said'; atMs: number }
  | null;

/**
 * By so much a payment may be older than what funded it, or than the statement of it, and still be meant: the clocks of two
 * chains differ, and a funding that was reorganised stands in a later block.
 */
const TOLERANCE_MS = 3_600_000;

/**
 * True when what pays out is as young as its transfer. A statement is never older than the funding of its transfer, so that
 * what is hardly older than its statement fits.
 *
 * | the block is ...                                            | then                                           |
 * |-------------------------------------------------------------|------------------------------------------------|
 * | at most an hour older than the statement                    | `fits`                                         |
 * | older, and the funding is still checked                     | `open`                                         |
 * | an hour older than the block that funded it                 | `older`: it is the payment of something else   |
 * | an hour older than the upstream called it under way         | `said-older`: only the upstream's word         |
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
