import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import type { Signals } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import { ConfirmedTime } from '../store/confirmed-time.ts';
import type { Keys } from '../store/keys.ts';

/** Most responses that are stored, their least distance, and their longest age. */
const MOST = 5;
const APART_MS = 1_000;
const FRESH_MS = 600_000;

/** The `Date` of the upstream's newest responses, each with the time of our monotonic clock at which it came. */
export class ResponseDates {
  readonly #monotonicMs: () => number;
  #dates: { dateMs: number; atMs: number }[] = [];

  constructor(monotonicMs: () => number = () => performance.now()) {
    this.#monotonicMs = monotonicMs;
  }

  note(dateMs: number | null): void {
    const atMs = this.#monotonicMs();
    const newest = this.#dates.at(-1);
    if (dateMs === null || (newest !== undefined && atMs - newest.atMs < APART_MS)) return;
    this.#dates = [...this.#dates, { dateMs, atMs }].slice(-MOST);
  }

  /** Lead of the upstream over Redis at each response, ms; Redis time was `redisMs` at `monotonicMs` of our clock. */
  aheadOf({ redisMs, monotonicMs }: { redisMs: number; monotonicMs: number }): number[] {
    return this.#dates
      .filter(({ atMs }) => monotonicMs - atMs <= FRESH_MS)
      .map(({ dateMs, atMs }) => dateMs - (redisMs - (monotonicMs - atMs)));
  }
}

/** The clocks of a process, whatever its config. `dates` has those of the upstream's responses. */
export type Clocks = { confirmed: ConfirmedTime; dates: ResponseDates };

/** Starts to compare the clocks. */
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
    upstreamAhead: (at) => dates.aheadOf(at),
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
