/** However idle the budget, nothing with an interval comes more than five times as often as that says. */
export const LEAST_FACTOR = 0.2;

/**
 * The factor on the interval of whatever has one: at a price of 1 the interval itself, and with the square root of the
 * price as every other wait, so that under pressure all shrink together.
 */
export function intervalFactor(price: number): number {
  return Math.max(LEAST_FACTOR, Math.sqrt(price));
}
