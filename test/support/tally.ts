import type { Increment, Tally } from '../../src/domain/cadence/learning.ts';

/** Adds observations to a tally, as commands/learn-2.lua does. */
export function withIncrements(tally: Tally, seen: readonly Increment[], weight: number): Tally {
  const ended = [...tally.ended];
  const watchedSeconds = [...tally.watchedSeconds];
  for (const increment of seen) {
    ended[increment.bin] = (ended[increment.bin] ?? 0) + increment.ended * weight;
    watchedSeconds[increment.bin] = (watchedSeconds[increment.bin] ?? 0) + increment.watchedSeconds * weight;
  }
  return { ended, watchedSeconds };
}
