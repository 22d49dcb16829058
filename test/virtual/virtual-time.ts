import { syncBuiltinESMExports } from 'node:module';
import { performance } from 'node:perf_hooks';
import timers from 'node:timers/promises';
import { ShiftedClock } from '../support/shifted-clock.ts';

/** When a life begins, so that every run has the same times: 2026-01-05, a Monday, 00:00 UTC. */
const BEGIN_MS = Date.UTC(2026, 0, 5);

type Wait = typeof timers.setTimeout;

/**
 * A wall clock that stands still until it is moved: `Date.now()` of this process, and the clock of a Redis that is started
 * with its `env`. The monotonic clock, `performance.now()`, goes with the true time. Whoever awaits `setTimeout` of `node:timers/promises` moves it on and waits no longer than that takes.
 */
export class VirtualTime {
  readonly #clock = new ShiftedClock();
  readonly #realNow = Date.now;
  readonly #realWait = timers.setTimeout;
  readonly #realMonotonic = performance.now;
  #nowMs = BEGIN_MS;
  /** How far the clocks of the processes and of Redis are off, ms. */
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

  /** Of a Redis that shall have this clock. */
  get env(): Readonly<Record<string, string>> {
    return this.#clock.env;
  }

  /** The true time: that of the upstream, and of everybody else. */
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

  /** Sets the clocks of the processes and of Redis so far ahead of the true time (behind where negative), ms. */
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
