import { setTimeout as delay } from 'node:timers/promises';

/** Nobody waits longer for his turn: he is reported to come again. */
const LONGEST_WAIT_MS = 10_000;

/** Spreads calls evenly: so many per second, after a pause of a second as many at once. */
export class Pace {
  readonly #intervalMs: number;
  /** How far the turns that were given away may lag behind the clock: what was not used in the last second. */
  readonly #burstMs: number;
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number) {
    this.#intervalMs = 1_000 / perSecond;
    this.#burstMs = Math.max(0, 1_000 - this.#intervalMs);
  }

  /** Waits for a turn; false, at once, where that would take longer than ten seconds. Rejects with the reason of `signal`. */
  async take(signal?: AbortSignal): Promise<boolean> {
    signal?.throwIfAborted();
    const nowMs = performance.now();
    const atMs = Math.max(this.#nextAtMs, nowMs - this.#burstMs, this.#pausedUntilMs);
    if (atMs - nowMs > LONGEST_WAIT_MS) return false;
    this.#nextAtMs = atMs + this.#intervalMs;
    if (atMs > nowMs) await delay(atMs - nowMs, undefined, signal === undefined ? {} : { signal });
    return true;
  }

  /** Gives nobody a turn for so long. Turns that were given already are taken. */
  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, performance.now() + ms);
  }
}
