import { performance } from 'node:perf_hooks';

/** The number of responses that are stored, at least how far apart, and for how long. */
const MOST = 5;
const APART_MS = 1_000;
const FRESH_MS = 600_000;

/** The `Date` of the upstream's newest responses, each with the reading of our monotonic clock at which it came. */
export class ResponseDates {
  readonly #monotonicMs: () => number;
  #dates: { dateMs: number; atMs: number }[] = [];

  constructor(monotonicMs: () => number = () => performance.now()) {
    this.#monotonicMs = monotonicMs;
  }

  /** Notes the `Date` of a response that has just come; null where it has none. */
  note(dateMs: number | null): void {
    const atMs = this.#monotonicMs();
    const newest = this.#dates.at(-1);
    if (dateMs === null || (newest !== undefined && atMs - newest.atMs < APART_MS)) return;
    this.#dates = [...this.#dates, { dateMs, atMs }].slice(-MOST);
  }

  /** How far the upstream was ahead of Redis at each of them, ms, where Redis time was `redisMs` at a reading of our clock. */
  aheadOf({ redisMs, monotonicMs }: { redisMs: number; monotonicMs: number }): number[] {
    return this.#dates
      .filter(({ atMs }) => monotonicMs - atMs <= FRESH_MS)
      .map(({ dateMs, atMs }) => dateMs - (redisMs - (monotonicMs - atMs)));
  }
}
