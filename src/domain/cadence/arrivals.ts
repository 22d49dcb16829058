import { weightAt } from './decay.ts';

/** New transfers of a wallet and for how long it was watched, as decayed sums at a moment (Redis time, ms). */
export type ArrivalTally = { seen: number; watchedSeconds: number; atMs: number };

/** A wallet of which nothing was seen is taken for one with a new transfer every so often. */
const EXPECTED_EVERY_SECONDS = 6 * 3_600;

/** The expectation counts like so many transfers seen. */
const PRIOR_TRANSFERS = 0.5;

/** What was seen so long ago counts half. */
const HALF_LIFE_MS = 86_400_000;

/** What one look adds that showed new transfers since the look before it. */
export function withArrivals(
  tally: ArrivalTally,
  look: { seen: number; watchedSeconds: number; nowMs: number },
): ArrivalTally {
  const { seen, watchedSeconds } = decayed(tally, look.nowMs);
  return {
    seen: seen + look.seen,
    watchedSeconds: watchedSeconds + look.watchedSeconds,
    atMs: look.nowMs,
  };
}

/** New transfers of a wallet per second, above 0. */
export function arrivalsPerSecond(tally: ArrivalTally, nowMs: number): number {
  const { seen, watchedSeconds } = decayed(tally, nowMs);
  return (PRIOR_TRANSFERS + seen) / (PRIOR_TRANSFERS * EXPECTED_EVERY_SECONDS + watchedSeconds);
}

function decayed({ seen, watchedSeconds, atMs }: ArrivalTally, nowMs: number): Omit<ArrivalTally, 'atMs'> {
  const weight = weightAt(Math.max(atMs, nowMs), { landmarkMs: atMs, halfLifeMs: HALF_LIFE_MS });
  return { seen: seen / weight, watchedSeconds: watchedSeconds / weight };
}
