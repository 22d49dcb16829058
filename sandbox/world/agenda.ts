type AgendaEntry = { dueMs: number; order: number; run: Work };

/** Work of the agenda; `nowMs` is the time of execution, which can be later than the due time. */
export type Work = (nowMs: number) => void;

/** Scheduled work in a binary heap, so that any number of lives needs one timer. */
export type Agenda = {
  /** `dueMs` is Unix milliseconds. */
  add(dueMs: number, run: Work): void;
  /** Runs all work due at `nowMs`, in the order of its time, including work that is added meanwhile. */
  runDue(nowMs: number): void;
  /** Time of the next work; null when there is none. */
  nextDueMs(): number | null;
  size(): number;
};

export function createAgenda(): Agenda {
  // Invariant: no entry comes before the one at half its index. Equal times stay in the order of addition.
  const heap: AgendaEntry[] = [];
  let added = 0;

  const before = (left: AgendaEntry, right: AgendaEntry): boolean =>
    left.dueMs < right.dueMs || (left.dueMs === right.dueMs && left.order < right.order);

  function siftUp(entry: AgendaEntry): void {
    let index = heap.length;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = heap[parentIndex];
      if (parent === undefined || !before(entry, parent)) break;
      heap[index] = parent;
      index = parentIndex;
    }
    heap[index] = entry;
  }

  function siftDown(entry: AgendaEntry): void {
    let index = 0;
    for (;;) {
      const left = heap[2 * index + 1];
      const right = heap[2 * index + 2];
      if (left === undefined) break;
      const child = right !== undefined && before(right, left) ? right : left;
      if (!before(child, entry)) break;
      heap[index] = child;
      index = child === left ? 2 * index + 1 : 2 * index + 2;
    }
    heap[index] = entry;
  }

  return {
    add(dueMs, run) {
      siftUp({ dueMs, order: added++, run });
    },
    runDue(nowMs) {
      for (let first = heap[0]; first !== undefined && first.dueMs <= nowMs; first = heap[0]) {
        const last = heap.pop();
        if (last !== undefined && last !== first) siftDown(last);
        first.run(nowMs);
      }
    },
    nextDueMs: () => heap[0]?.dueMs ?? null,
    size: () => heap.length,
  };
}
