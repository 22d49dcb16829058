import type { WaitingReason } from './verdict.ts';

/** Why a check waits: as its verdict says, or as its transfer does not state it any more. */
export type PostponeReason = WaitingReason | 'not-stated';

/** The shortest and the longest wait between two questions about one payment. */
const SHORTEST_MS = 2_000;
const LONGEST_MS = 900_000;

/**
 * How long until a payment is asked about again. What is not there yet, and what cannot be told, is asked at doubling
 * intervals. What is not final is asked when the chain has come so far; finality that comes in leaps is not asked for more
 * often than at eighths of the age. So of most payments there are two or three questions.
 */
export function askInMs({
  because,
  ageMs,
  finalInMs,
}: {
  because: PostponeReason;
  /** How old the statement is. */
  ageMs: number;
  /** How long until it is final at the chain's own pace; null where that is not known. */
  finalInMs: number | null;
}): number {
  const wait = because === 'not-final' && finalInMs !== null ? Math.max(finalInMs, ageMs / 8) : ageMs;
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, wait));
}
