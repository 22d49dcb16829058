import { setTimeout as wait } from 'node:timers/promises';

/** How much longer each failure in a row makes the rest before an attempt, and the longest rest. */
const STEP_MS = 10;
const MAX_REST_MS = 100;

/** How long to rest before the next attempt after so many failures in a row, ms. */
export function restMs(failuresInARow: number): number {
  return Math.min(failuresInARow * STEP_MS, MAX_REST_MS);
}

/**
 * Paces the attempts at one receiver. One that refuses at once would otherwise be asked as fast as this process can,
 * for every event that waits, and take the time of all others; nor does it help a receiver that is coming back. The
 * first success ends it.
 */
export class Pace {
  #failuresInARow = 0;

  /** Rests as long as the failures so far ask for; ends at once when `signal` aborts. */
  async rest(signal: AbortSignal): Promise<void> {
    const ms = restMs(this.#failuresInARow);
    if (ms > 0) await wait(ms, undefined, { signal }).catch(() => undefined);
  }

  note({ delivered }: { delivered: boolean }): void {
    this.#failuresInARow = delivered ? 0 : this.#failuresInARow + 1;
  }
}
