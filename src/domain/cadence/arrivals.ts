/** New transfers of a wallet and for how long it was watched: sums, each addition with the weight of its moment. */
export type ArrivalTally = { seen: number; watchedSeconds: number };

/** A wallet of which nothing was seen is taken for one with a new transfer every so often. */
const EXPECTED_EVERY_SECONDS = 6 * 3_600;

/** The expectation counts like so many transfers seen. */
const PRIOR_TRANSFERS = 0.5;

/** What one look at a wallet's newest page adds. */
export function withArrivals(
  tally: ArrivalTally,
  look: { seen: number; watchedSeconds: number; weight: number },
): ArrivalTally {
  return {
    seen: tally.seen + look.seen * look.weight,
    watchedSeconds: tally.watchedSeconds + look.watchedSeconds * look.weight,
  };
}

/** New transfers of a wallet per second, above 0. `weight` is that of the present moment (see `weightAt`). */
export function arrivalsPerSecond(tally: ArrivalTally, weight: number): number {
  const priorSeconds = PRIOR_TRANSFERS * EXPECTED_EVERY_SECONDS;
  return (PRIOR_TRANSFERS + tally.seen / weight) / (priorSeconds + tally.watchedSeconds / weight);
}
