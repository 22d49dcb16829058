/** Counts how often a rule's check was shown what the rule is about: the member of a table, or else an answer. */
export class Tally {
  #answers = 0;
  #members: number | null = null;

  /** An answer came. */
  answered(): void {
    this.#answers += 1;
  }

  /** The member that the rule is about stood so many times in the answers. */
  shown(times: number): void {
    this.#members = (this.#members ?? 0) + times;
  }

  /** The interval at which the thing was shown. */
  get times(): number {
    return this.#members ?? this.#answers;
  }
}
