import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { Signals } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import { ConfirmedTime } from '../store/confirmed-time.ts';
import type { Keys } from '../store/keys.ts';

/** Number of stored dates, least time between two of them, and the age up to which they count. */
const MOST_DATES = 5;
const LEAST_DISTANCE_MS = 1_000;
const LONGEST_AGE_MS = 600_000;

/** `Date` headers of the upstream's newest responses, each with the time of its arrival by the monotonic clock. */
export class ResponseDates {
  readonly #monotonicMs: () => number;
  #dates: { dateMs: number; atMs: number }[] = [];

  constructor(monotonicMs: () => number = () => performance.now()) {
    this.#monotonicMs = monotonicMs;
  }

  note(dateMs: number | null): void {
    const atMs = this.#monotonicMs();
    const newest = this.#dates.at(-1);
    if (dateMs === null || (newest !== undefined && atMs - newest.atMs < LEAST_DISTANCE_MS)) return;
    this.#dates = [...this.#dates, { dateMs, atMs }].slice(-MOST_DATES);
  }

  /** Upstream time minus Redis time at each response, ms. Redis time was `redisMs` at `monotonicMs`. */
  leadsOverRedis({ redisMs, monotonicMs }: { redisMs: number; monotonicMs: number }): number[] {
    return this.#dates
      .filter(({ atMs }) => monotonicMs - atMs <= LONGEST_AGE_MS)
      .map(({ dateMs, atMs }) => dateMs - (redisMs - (monotonicMs - atMs)));
  }
}

/** The clocks that a process compares. `confirmed`: a time that has certainly passed (docs/glossary.md). */
export type Clocks = { confirmed: ConfirmedTime; dates: ResponseDates };

/** Compares the clocks of this process, Redis and the upstream from now on, and logs each change of their state. */
export async function startClocks({
  redis,
  keys,
  signals,
  log,
}: {
  redis: RedisClient;
  keys: Keys;
  signals: Signals;
  log: Logger;
}): Promise<Clocks> {
  const dates = new ResponseDates();
  let isFailing = false;
  const confirmed = new ConfirmedTime({
    redis,
    keys,
    process: randomUUID(),
    upstreamAhead: (at) => dates.leadsOverRedis(at),
    onCompared: (clock, before) => {
      isFailing = false;
      signals.emit('clocks.compared', { isHeld: clock.isHeld });
      const { state, isHeld, confirmedMs, jumpMs, upstreamAheadMs } = clock;
      if (before.state === state && before.isHeld === isHeld) return;
      const isRight = state === 'steady' && !isHeld;
      const confirmedTime = new Date(confirmedMs).toISOString();
      log[isRight ? 'info' : 'warn'](
        { state, waits: isHeld, confirmedTime, jumpMs, upstreamAheadMs },
        'clocks.moved',
      );
    },
    onError: (error) => {
      if (!isFailing) log.warn({ error }, 'clocks.not_compared');
      isFailing = true;
    },
  });
  await confirmed.start();
  return { confirmed, dates };
}
