import { performance } from 'node:perf_hooks';
import { z } from 'zod';
import { Duty } from '../duty.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { operatorEventTemplate, operatorSubject } from './operator-event.ts';
import { scripts } from './scripts.ts';
import { storedMs } from './stored.ts';

/*
 * The confirmed time: `confirmedMs` in Redis is a time that has certainly passed. Deletions compare with it, and
 * not with Redis' TIME. All processes share it. Each compares Redis time once a second with its own monotonic clock, the
 * `Date` of the upstream's newest responses and its wall clock, and a script (commands/confirm-time-3.lua) moves the state.
 * Clocks that are less than 2 min apart count as equal.
 *
 * | State   | confirmedMs       | Entered when                               | Ended                                           |
 * |---------|-------------------|--------------------------------------------|-------------------------------------------------|
 * | steady  | Redis time; at    | there is none yet, and the log is empty or | Redis time went on otherwise than the monotonic |
 * |         | least what it was | goes on to now                             | clock of a process ─► jumped, with an operator  |
 * |         |                   |                                            | event. A first round finds it ahead ─► stopped, |
 * |         |                   |                                            | or behind ─► jumped                             |
 * | jumped, | goes on with the  | as on the right                            | the `Date` of 3 responses agrees with Redis     |
 * | stopped | monotonic clock   |                                            | time, or a day by the monotonic clock has       |
 * |         | of a process that |                                            | passed ─► steady, with Redis time. Redis time   |
 * |         | lives             |                                            | is back where it was to be ─► steady            |
 *
 * `confirmedMs` goes back in one case: responses, or the wait of a day, have shown that it was ahead.
 *
 * Reminders and closings of the books wait (`isHeld`) in `jumped` and `stopped`, and in `steady` while the upstream or a
 * process is off Redis time; each for an hour at most, by the monotonic clock. Then Redis time counts, and an operator event
 * names the clock that differs.
 *
 * A paused process is no jump: its monotonic clock went on too. That of a machine that was suspended did not; this
 * resembles a jump, and responses confirm it.
 */
export const CLOCK_STATES = ['steady', 'jumped', 'stopped'] as const;

export type ClockState = (typeof CLOCK_STATES)[number];

/**
 * The known state of the clocks. `redisMs`: Redis time; `confirmedMs`: 0 where none is known yet; `heldSinceMs`: start of the
 * hold on the scale of the confirmed time, null for none; `jumpMs`: offset of Redis time during the hold; `upstreamAheadMs`:
 * lead of the upstream over Redis, as several responses agree, null where unknown; `isHeld`: reminders and closings wait.
 */
export type ConfirmedClock = {
  redisMs: number;
  confirmedMs: number;
  state: ClockState;
  heldSinceMs: number | null;
  jumpMs: number | null;
  upstreamAheadMs: number | null;
  isHeld: boolean;
};

const STATE = z.enum(CLOCK_STATES).catch('steady');

/** `moves` counts the moves to `steady`. */
type ReadClocks = { moves: string; clock: ConfirmedClock };

function clocksOf(found: Awaited<ReturnType<typeof scripts.readClock>>): ReadClocks {
  const { redisMs, confirmedMs, state, moves, heldFromMs, jumpMs, upstreamMs, isHeld } = found;
  return {
    moves,
    clock: {
      redisMs,
      confirmedMs: storedMs(confirmedMs) ?? 0,
      state: STATE.parse(state),
      heldSinceMs: storedMs(heldFromMs),
      jumpMs: storedMs(jumpMs),
      upstreamAheadMs: storedMs(upstreamMs),
      isHeld,
    },
  };
}

const EVERY_MS = 1_000;

/** A read that took longer leaves the time of the response too uncertain. */
const LONGEST_READ_MS = 10_000;

/** As in commands/confirm-time-3.lua. */
const CLOCK_TOLERANCE_MS = 120_000;

/** Interval for a new base while the state is `steady`: in this time a clock may drift by less than the tolerance. */
const MEASURED_ANEW_MS = 600_000;

/** The base of measurements: a Redis time, and the times of the monotonic clock before and after it. */
type Base = TimedRead & { moves: string };

type TimedRead = { redisMs: number; fromMs: number; untilMs: number };

/**
 * The clock for acts that depend on time: reminders, closings of the books and ends of tracking. `mayActAt` takes a Redis time
 * that has just been read, and is true when it may be acted on; `certainMs` is a time up to it that has certainly passed.
 */
export type ActingClock = { mayActAt(redisMs: number): boolean; certainMs(redisMs: number): number };

/** The clocks of a process, which tests replace. */
export type OwnClocks = { monotonicMs: () => number; wallMs: () => number };

/**
 * The dependencies of ConfirmedTime. `upstreamAhead` returns the lead of the upstream over Redis at its newest responses,
 * given a Redis time and the time of the monotonic clock then. `onCompared` is called after each round, with the
 * clocks of this round and the one before.
 */
export type ConfirmedTimeDeps = {
  redis: RedisClient;
  keys: Keys;
  process: string;
  upstreamAhead: (at: { redisMs: number; monotonicMs: number }) => readonly number[];
  onCompared: (clock: ConfirmedClock, before: ConfirmedClock) => void;
  onError: (error: unknown) => void;
  clocks?: OwnClocks;
};

const OWN_CLOCKS: OwnClocks = { monotonicMs: () => performance.now(), wallMs: () => Date.now() };

/** Reads the confirmed time. */
export async function readConfirmedTime(redis: RedisClient, keys: Keys): Promise<ConfirmedClock> {
  return clocksOf(await scripts.readClock(redis, { keys, args: {} })).clock;
}

/** Returns the time to store with something that ended now (ms), as stampMs in commands/include/confirmed-time.lua. */
export async function readStamp(redis: RedisClient, keys: Keys): Promise<number> {
  const { redisMs, confirmedMs } = await readConfirmedTime(redis, keys);
  return Math.max(redisMs, confirmedMs);
}

/** Maintains the confirmed time, together with all other processes. */
export class ConfirmedTime {
  readonly #deps: ConfirmedTimeDeps;
  readonly #clocks: OwnClocks;
  #base: Base | null = null;
  #confirmed: ConfirmedClock | null = null;
  readonly #comparing: Duty;

  constructor(deps: ConfirmedTimeDeps) {
    this.#deps = deps;
    this.#clocks = deps.clocks ?? OWN_CLOCKS;
    this.#comparing = new Duty({
      everyMs: EVERY_MS,
      isShared: true,
      run: async () => void (await this.compare()),
      onError: deps.onError,
    });
  }

  async start(): Promise<void> {
    await this.compare().catch(this.#deps.onError);
    this.#comparing.start();
  }

  async read(): Promise<ConfirmedClock> {
    return readConfirmedTime(this.#deps.redis, this.#deps.keys);
  }

  /** Null before the first round. */
  get confirmed(): ConfirmedClock | null {
    return this.#confirmed;
  }

  /** True when reminders and closings may use a Redis time just read. A time that jumped since the last round may not. */
  mayActAt(redisMs: number): boolean {
    if (this.#confirmed === null || this.#confirmed.isHeld) return false;
    if (this.#base === null) return true;
    const { redisMs: fromMs, untilMs } = this.#base;
    // The base is a confirmed time, so the known offset of Redis time is subtracted.
    const { state, jumpMs } = this.#confirmed;
    const offMs = state === 'steady' ? 0 : (jumpMs ?? 0);
    return Math.abs(redisMs - offMs - fromMs - (this.#clocks.monotonicMs() - untilMs)) <= CLOCK_TOLERANCE_MS;
  }

  /** Returns the time up to a just-read Redis time that has certainly passed, ms. */
  certainMs(redisMs: number): number {
    if (this.mayActAt(redisMs)) return redisMs;
    return Math.min(redisMs, this.#confirmed?.confirmedMs ?? 0);
  }

  /** Compares the clocks, and moves the confirmed time on. Null where Redis took too long to answer. */
  async compare(): Promise<ConfirmedClock | null> {
    const { redis, keys, process, upstreamAhead } = this.#deps;
    const { monotonicMs, wallMs } = this.#clocks;
    const fromMs = monotonicMs();
    const clock = await readConfirmedTime(redis, keys);
    const untilMs = monotonicMs();
    const { redisMs } = clock;
    if (untilMs - fromMs > LONGEST_READ_MS) return null;
    const base = this.#base;
    const after = clocksOf(
      await scripts.confirmTime(redis, {
        keys,
        args: {
          process,
          readMs: redisMs,
          leastMs: base && Math.floor(base.redisMs + (fromMs - base.untilMs)),
          mostMs: base && Math.floor(base.redisMs + (untilMs - base.fromMs)),
          nowMs: base && Math.floor(base.redisMs + (monotonicMs() - base.untilMs)),
          moves: base?.moves ?? '',
          wallAheadMs: Math.round(wallMs() - redisMs),
          upstreamAheadMs: upstreamAhead({ redisMs, monotonicMs: untilMs }).map(Math.round).join(','),
          subject: operatorSubject('intentwatch', 'clock'),
          jumped: clockEvent('clock_jumped', clock),
          differs: clockEvent('clock_differs', clock),
        },
      }),
    );
    this.#measureFrom(after, { redisMs, fromMs, untilMs });
    const before = this.#confirmed ?? { ...after.clock, state: 'steady', isHeld: false };
    this.#confirmed = after.clock;
    this.#deps.onCompared(after.clock, before);
    return after.clock;
  }

  #measureFrom({ clock, moves }: ReadClocks, read: TimedRead): void {
    const base = this.#base;
    const isCurrent = base !== null && base.moves === moves;
    if (clock.state === 'steady') {
      if (!isCurrent || read.untilMs - base.untilMs >= MEASURED_ANEW_MS) this.#base = { ...read, moves };
      return;
    }
    // Redis time is unknown: the base goes on from the time that has certainly passed.
    const nowMs = this.#clocks.monotonicMs();
    if (!isCurrent) this.#base = { redisMs: clock.confirmedMs, fromMs: nowMs, untilMs: nowMs, moves };
  }

  async close(): Promise<void> {
    await this.#comparing.close();
  }
}

function clockEvent(
  word: 'clock_jumped' | 'clock_differs',
  { redisMs, confirmedMs }: ConfirmedClock,
): string {
  const reason =
    word === 'clock_jumped'
      ? 'Redis time went on otherwise than the monotonic clock'
      : 'the clocks have differed by more than 2 min for an hour; Redis time counts from now on';
  return operatorEventTemplate({
    kind: 'intentwatch',
    name: 'clock',
    word,
    nowMs: redisMs,
    record: {
      clock: '%CLOCK%',
      aheadSeconds: '%AHEAD%',
      reason,
      confirmedTime: confirmedMs === 0 ? null : new Date(confirmedMs).toISOString(),
    },
  });
}
