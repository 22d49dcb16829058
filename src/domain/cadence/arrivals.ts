/** Reference time of a decaying sum and the half-life of its additions, both in ms. */
export type DecayClock = { landmarkMs: number; halfLifeMs: number };

/**
 * Weight of an addition relative to one at the landmark (forward decay, Cormode et al. 2009). A sum divided by the
 * present weight is the decayed sum: nothing is rewritten over time, and processes add in any order.
 */
export function weightAt(atMs: number, clock: DecayClock): number {
  return 2 ** ((atMs - clock.landmarkMs) / clock.halfLifeMs);
}

/** Beyond this weight a sum moves to a new landmark, long before numbers overflow. */
export const LARGEST_WEIGHT = 2 ** 64;

/** New transfers of a wallet and the watched time, as decayed sums at a time (Redis time, ms). */
export type ArrivalTally = { seen: number; watchedSeconds: number; atMs: number };

/** New transfers since the previous poll, and the time since then. */
export type Arrived = { seen: number; watchedSeconds: number };

const HALF_LIFE_MS = 86_400_000;

/**
 * Weight of the usual rate, in observed transfers. Wallets differ, so it shows little about one of them. With a
 * smaller weight, wallets that are all alike would be polled very differently, by chance.
 */
const USUAL_TRANSFERS = 1;

/** Weight of the rule's guess for a usual wallet, in observed transfers of all wallets together. */
const RULE_TRANSFERS = 1;

/** Adds the new transfers since the previous poll. */
export function withArrivals(tally: ArrivalTally, poll: Arrived & { nowMs: number }): ArrivalTally {
  const { seen, watchedSeconds } = decayed(tally, poll.nowMs);
  return {
    seen: seen + poll.seen,
    watchedSeconds: watchedSeconds + poll.watchedSeconds,
    atMs: poll.nowMs,
  };
}

/** New transfers of a wallet per second, above 0; `usualPerSecond` is the usual rate of all wallets. */
export function arrivalsPerSecond(
  tally: ArrivalTally,
  { usualPerSecond, nowMs }: { usualPerSecond: number; nowMs: number },
): number {
  return expectedRate(decayed(tally, nowMs), { perSecond: usualPerSecond, transfers: USUAL_TRANSFERS });
}

/** Usual rate per second of all wallets, from their observations and the rule's expectation. */
export function usualArrivals(seenOfAll: Arrived, everySeconds: number): number {
  return expectedRate(seenOfAll, { perSecond: 1 / everySeconds, transfers: RULE_TRANSFERS });
}

/** Mean of the gamma distribution after the observations, with a prior worth the given number of transfers. */
function expectedRate(
  { seen, watchedSeconds }: Arrived,
  prior: { perSecond: number; transfers: number },
): number {
  return (prior.transfers + seen) / (prior.transfers / prior.perSecond + watchedSeconds);
}

function decayed({ seen, watchedSeconds, atMs }: ArrivalTally, nowMs: number): Arrived {
  const weight = weightAt(Math.max(atMs, nowMs), { landmarkMs: atMs, halfLifeMs: HALF_LIFE_MS });
  return { seen: seen / weight, watchedSeconds: watchedSeconds / weight };
}
