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
