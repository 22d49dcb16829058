/** The statuses by which a transfer shows that it was filled. */
const FILLED = new Set(['filled', 'settled']);

/** When somebody first knew of each transfer that it was filled (Unix ms). */
export class SeenFills {
  readonly #atMs = new Map<string, number>();

  /** Notes a status of a transfer. Only the first that shows a fill counts. */
  note(subject: string, status: string, atMs: number): void {
    if (FILLED.has(status) && !this.#atMs.has(subject)) this.#atMs.set(subject, atMs);
  }

  /**
   * How long after each fill it was known, seconds. One that was not known by `untilMs` counts as known then: `unseen`
   * is how many those are.
   */
  delays(
    fills: readonly { subject: string; at: number }[],
    untilMs: number,
  ): { seconds: number[]; unseen: number } {
    const seconds = fills.map(({ subject, at }) => ((this.#atMs.get(subject) ?? untilMs) - at) / 1_000);
    return { seconds, unseen: fills.filter(({ subject }) => !this.#atMs.has(subject)).length };
  }
}
