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

/** New transfers of a wallet and for how long it was watched, as decayed sums at a moment (Redis time, ms). */
export type ArrivalTally = { seen: number; watchedSeconds: number; atMs: number };

/** What one poll that shows new transfers tells: how many came since the poll before it, and how long ago that was. */
export type Arrived = { seen: number; watchedSeconds: number };

/** What was seen so long ago counts half. */
const HALF_LIFE_MS = 86_400_000;

/**
 * Wallets differ: what is usual among them says little about one of them, and counts like one transfer seen. Were it less,
 * wallets that are all alike would be polled very differently, by chance.
 */
const USUAL_TRANSFERS = 1;

/** What the rule expects of a usual wallet is a guess, and counts like as many among all wallets together. */
const RULE_TRANSFERS = 1;

/** What one poll adds that showed new transfers since the poll before it. */
export function withArrivals(tally: ArrivalTally, look: Arrived & { nowMs: number }): ArrivalTally {
  const { seen, watchedSeconds } = decayed(tally, look.nowMs);
  return {
    seen: seen + look.seen,
    watchedSeconds: watchedSeconds + look.watchedSeconds,
    atMs: look.nowMs,
  };
}

/** New transfers of a wallet per second, above 0; `usualPerSecond` is what is usual among all wallets. */
export function arrivalsPerSecond(
  tally: ArrivalTally,
  { usualPerSecond, nowMs }: { usualPerSecond: number; nowMs: number },
): number {
  return expectedRate(decayed(tally, nowMs), { perSecond: usualPerSecond, transfers: USUAL_TRANSFERS });
}

/** What is usual among all wallets, from what was seen of them together and what the rule expects: per second. */
export function usualArrivals(seenOfAll: Arrived, everySeconds: number): number {
  return expectedRate(seenOfAll, { perSecond: 1 / everySeconds, transfers: RULE_TRANSFERS });
}

/** The mean of the gamma distribution after what was seen; before, it was that of the prior, worth so many transfers. */
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
