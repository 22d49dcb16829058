/** What a stage allows: the shortest wait between two looks, the longest while it is young, and when old. Seconds. */
export type StageLimits = { leastSeconds: number; mostSeconds: number; agedSeconds: number };

/** Whatever the price, nothing waits longer. */
export const LONGEST_WAIT_SECONDS = 7_200;

/** The shortest and longest wait between two looks, seconds. */
export type Clamp = { leastSeconds: number; mostSeconds: number };

/** A stage that has lasted long is looked at at least every tenth of its age: delay stays small beside what was waited. */
const SHARE_OF_AGE = 0.1;

/** At this price, in weighted seconds, the longest wait begins to stretch: a budget too small for it has to go round. */
const PRICE_WITHOUT_STRETCH = 2;

/**
 * The clamp of a stage at an age. The longest wait bounds what a wrong estimate can cost. It grows with age, so that
 * transfers that never fill do not eat the budget, and with the price, so that any number of subjects fits into it.
 */
export function clampAt(limits: StageLimits, now: { ageSeconds: number; price: number }): Clamp {
  const stretch = Math.max(1, Math.sqrt(now.price / PRICE_WITHOUT_STRETCH));
  const agedSeconds = Math.min(limits.agedSeconds, SHARE_OF_AGE * now.ageSeconds);
  const mostSeconds = Math.min(LONGEST_WAIT_SECONDS, Math.max(limits.mostSeconds, agedSeconds) * stretch);
  return { leastSeconds: Math.min(limits.leastSeconds, mostSeconds), mostSeconds };
}

/** At this price the longest wait for new transfers begins to stretch: who is likely to have one comes before who is not. */
const ARRIVALS_WITHOUT_STRETCH = 0.125;

/** The clamp of looks for new transfers, of which none may ever come. */
export function clampForArrivals(limits: Omit<StageLimits, 'agedSeconds'>, price: number): Clamp {
  const stretch = Math.max(1, Math.sqrt(price / ARRIVALS_WITHOUT_STRETCH));
  const mostSeconds = Math.min(LONGEST_WAIT_SECONDS, limits.mostSeconds * stretch);
  return { leastSeconds: Math.min(limits.leastSeconds, mostSeconds), mostSeconds };
}

/** The clamp of a look that shows several stages: as often as the most pressing of them wants. */
export function tightest(clamps: readonly Clamp[]): Clamp {
  return {
    leastSeconds: Math.min(...clamps.map((clamp) => clamp.leastSeconds)),
    mostSeconds: Math.min(...clamps.map((clamp) => clamp.mostSeconds)),
  };
}
