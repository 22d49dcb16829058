/**
 * How often a stage may be looked at, in seconds: `leastSeconds` is the shortest wait between two polls, which is polite
 * to the upstream; `mostSeconds` the longest while the stage is young, `agedSeconds` when it is old.
 */
export type StageLimits = { leastSeconds: number; mostSeconds: number; agedSeconds: number };

/** The shortest and the longest wait between two polls, seconds. */
export type Limits = { leastSeconds: number; mostSeconds: number };

/** Nothing is planned further ahead. */
export const LONGEST_WAIT_SECONDS = 7_200;

/** A stage that has lasted long is looked at at least every tenth of its age: delay stays small beside what was waited. */
const SHARE_OF_AGE = 0.1;

/**
 * The limits of a stage at an age. The longest wait bounds what a wrong estimate can cost; it grows with age, so that
 * transfers that never fill do not eat the budget.
 */
export function limitsAt(limits: StageLimits, ageSeconds: number): Limits {
  const agedSeconds = Math.min(limits.agedSeconds, SHARE_OF_AGE * ageSeconds);
  return keepable({ ...limits, mostSeconds: Math.max(limits.mostSeconds, agedSeconds) });
}

/** Limits that can be kept, whatever they were made from: nothing rests beyond all plans, or is overdue before it is allowed. */
export function keepable(limits: Limits): Limits {
  const leastSeconds = Math.min(LONGEST_WAIT_SECONDS, limits.leastSeconds);
  return { leastSeconds, mostSeconds: Math.max(leastSeconds, limits.mostSeconds) };
}

/** The limits of a poll that shows several stages: as often as the most pressing of them wants. */
export function tightest(limits: readonly Limits[]): Limits {
  return {
    leastSeconds: Math.min(...limits.map(({ leastSeconds }) => leastSeconds)),
    mostSeconds: Math.min(...limits.map(({ mostSeconds }) => mostSeconds)),
  };
}
