/** A priority queue: what has the lowest `at` comes first. */
export class Heap<T extends { at: number }> {
  readonly #entries: T[] = [];

  peek(): T | undefined {
    return this.#entries[0];
  }

  push(entry: T): void {
    let index = this.#entries.length;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#entries[above];
      if (parent === undefined || parent.at <= entry.at) break;
      this.#entries[index] = parent;
      index = above;
    }
    this.#entries[index] = entry;
  }

  pop(): T | undefined {
    const top = this.#entries[0];
    const last = this.#entries.pop();
    if (last === undefined || this.#entries.length === 0) return top;
    let index = 0;
    while (true) {
      const child = this.#lowerChild(index);
      const entry = this.#entries[child];
      if (entry === undefined || entry.at >= last.at) break;
      this.#entries[index] = entry;
      index = child;
    }
    this.#entries[index] = last;
    return top;
  }

  #lowerChild(index: number): number {
    const left = 2 * index + 1;
    const [a, b] = [this.#entries[left], this.#entries[left + 1]];
    return a !== undefined && b !== undefined && b.at < a.at ? left + 1 : left;
  }
}
