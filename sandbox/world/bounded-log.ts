/** A log of timed entries (`at` is Unix milliseconds) that removes its oldest ones. */
export type BoundedLog<T extends { at: number }> = {
  add(entry: T): void;
  read(sinceMs?: number): T[];
};

/** Creates a log that stores the last `capacity` entries. Entries are added in the order of their times. */
export function createBoundedLog<T extends { at: number }>(capacity: number): BoundedLog<T> {
  const ring: T[] = [];
  let added = 0;
  return {
    add(entry) {
      ring[added % capacity] = entry;
      added += 1;
    },
    read(sinceMs = 0) {
      const oldest = Math.max(0, added - capacity);
      let from = added;
      while (from > oldest && (ring[(from - 1) % capacity]?.at ?? 0) >= sinceMs) from -= 1;
      const entries: T[] = [];
      for (let index = from; index < added; index++) {
        const entry = ring[index % capacity];
        if (entry !== undefined) entries.push(entry);
      }
      return entries;
    },
  };
}
