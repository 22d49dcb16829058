const FILLED = new Set(['filled', 'settled']);

/** A change of a transfer at a time (Unix ms). */
export type Change = { subject: string; at: number };

/** First time that each transfer, and its fill, was known (Unix ms). */
export class SeenTransfers {
  readonly #atMs = { births: new Map<string, number>(), fills: new Map<string, number>() };

  /** Notes a status of a transfer. Only the first that shows a change counts. */
  note(subject: string, status: string, atMs: number): void {
    if (!this.#atMs.births.has(subject)) this.#atMs.births.set(subject, atMs);
    if (FILLED.has(status) && !this.#atMs.fills.has(subject)) this.#atMs.fills.set(subject, atMs);
  }

  /** Delay until each change was known, seconds. A change not known by `untilMs` counts as known then. */
  delays(kind: 'births' | 'fills', changes: readonly Change[], untilMs: number): number[] {
    return changes.map(
      ({ subject, at }) =>
        Math.max(0, Math.min(untilMs, this.#atMs[kind].get(subject) ?? untilMs) - at) / 1_000,
    );
  }
}

export function sumUp(delays: readonly number[]): { mean: number; longest: number } {
  return {
    mean: delays.reduce((sum, delay) => sum + delay, 0) / delays.length,
    longest: delays.length === 0 ? Number.NaN : Math.max(...delays),
  };
}
