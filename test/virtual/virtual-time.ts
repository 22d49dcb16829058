import { syncBuiltinESMExports } from 'node:module';
import { performance } from 'node:perf_hooks';
import timers from 'node:timers/promises';
import { ShiftedClock } from '../support/shifted-clock.ts';

/** Start of a life, so that every run has the same times: 2026-01-05, a Monday, 00:00 UTC. */
const BEGIN_MS = Date.UTC(2026, 0, 5);

type Wait = typeof timers.setTimeout;

/**
 * A wall clock that moves only on request: `Date.now()` of this process, and the clock of a Redis that is started with its `env`.
 * The monotonic clock, `performance.now()`, follows the true time. An awaited `setTimeout` of `node:timers/promises` advances it
 * and takes no real time.
 */
export class VirtualTime {
  readonly #clock = new ShiftedClock();
  readonly #realNow = Date.now;
  readonly #realWait = timers.setTimeout;
  readonly #realMonotonic = performance.now;
  #nowMs = BEGIN_MS;
  /** Offsets of the clocks of the processes and of Redis, ms. */
  #offMs = { processes: 0, redis: 0 };

  constructor() {
    this.#set();
    Date.now = () => this.#nowMs + this.#offMs.processes;
    performance.now = () => this.#nowMs - BEGIN_MS;
    const wait = async <T>(ms = 0, value?: T, { signal }: { signal?: AbortSignal } = {}): Promise<T> => {
      const atMs = this.#nowMs + ms;
      await new Promise<void>((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
      if (this.#nowMs < atMs) this.advance(atMs - this.#nowMs);
      return value as T;
    };
    timers.setTimeout = wait as Wait;
    syncBuiltinESMExports();
  }

  get env(): Readonly<Record<string, string>> {
    return this.#clock.env;
  }

  /** The true time: that of the upstream and of all others. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** The time by the clock of Redis, which may be off. */
  get redisMs(): number {
    return this.#nowMs + this.#offMs.redis;
  }

  advance(ms: number): void {
    this.#nowMs += Math.round(ms);
    this.#set();
  }

  /** Sets the offsets of the clocks of the processes and of Redis from the true time (negative: behind), ms. */
  setOff(ms: { processes: number; redis: number }): void {
    this.#offMs = ms;
    this.#set();
  }

  #set(): void {
    this.#clock.stopAt(this.redisMs);
  }

  close(): void {
    Date.now = this.#realNow;
    performance.now = this.#realMonotonic;
    timers.setTimeout = this.#realWait;
    syncBuiltinESMExports();
    this.#clock.close();
  }
}
