/** Counts the occurrences of a rule's object in a check: of a member of a table, or of an answer. */
export class Tally {
  #answers = 0;
  #members: number | null = null;

  answered(): void {
    this.#answers += 1;
  }

  shown(times: number): void {
    this.#members = (this.#members ?? 0) + times;
  }

  get times(): number {
    return this.#members ?? this.#answers;
  }
}
