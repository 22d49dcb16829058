import type { Seen } from './simulate.ts';
import type { Load, Transfer } from './workload.ts';

/** Delays in seconds. */
export type Summary = { count: number; mean: number; p99: number };

/** The first span after a start has other targets than the time after it. */
const FIRST_SECONDS = 120;

/** All delays of a way of polling, over several runs, by the time of the change. An unknown change counts until the end. */
export class Delays {
  readonly #all = { births: { first: [], after: [] }, fills: { first: [], after: [] } } as {
    [change in 'births' | 'fills']: { [span in 'first' | 'after']: number[] };
  };
  #requestsPerSecond = 0;
  #runs = 0;

  add(load: Load, transfers: readonly Transfer[], seen: Seen): void {
    this.#runs++;
    this.#requestsPerSecond += seen.requestsPerSecond;
    const note = (change: 'births' | 'fills', at: number, seenAt: number): void => {
      if (!(at >= 0 && at < load.seconds)) return;
      const span = at < FIRST_SECONDS ? 'first' : 'after';
      this.#all[change][span].push(Math.min(seenAt, load.seconds) - at);
    };
    for (const { id, bornAt, filledAt } of transfers) {
      // Transfers from before the start are history, and only a sweep finds all of them.
      if (bornAt < 0) continue;
      note('births', bornAt, seen.bornAt[id] ?? Number.POSITIVE_INFINITY);
      note('fills', filledAt, seen.filledAt[id] ?? Number.POSITIVE_INFINITY);
    }
  }

  of(change: 'births' | 'fills', span: 'first' | 'after'): Summary {
    const delays = this.#all[change][span].toSorted((a, b) => a - b);
    const count = delays.length;
    const mean = delays.reduce((sum, delay) => sum + delay, 0) / count;
    return { count, mean, p99: delays[Math.min(count - 1, Math.floor(0.99 * count))] ?? Number.NaN };
  }

  get requestsPerSecond(): number {
    return this.#requestsPerSecond / this.#runs;
  }
}
