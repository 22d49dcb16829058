/** Since when a decaying sum is stored, and after how long what was added counts half, both in ms. */
export type DecayClock = { landmarkMs: number; halfLifeMs: number };

/**
 * The weight of what is added at a moment, where what was added at the landmark weighs 1 (forward decay, Cormode et al.
 * 2009). A sum divided by the weight of the present moment is the decayed sum, so nothing is rewritten as time goes by
 * and several processes add in any order.
 */
export function weightAt(atMs: number, clock: DecayClock): number {
  return 2 ** ((atMs - clock.landmarkMs) / clock.halfLifeMs);
}

/** Beyond this weight a sum is brought to a new landmark, long before numbers run out. */
export const LARGEST_WEIGHT = 2 ** 64;

/** True when a sum ought to be brought to a new landmark: divided by the present weight, with the present as landmark. */
export function isHeavy(weight: number): boolean {
  return !(weight < LARGEST_WEIGHT);
}
