/** Waits of this length or more end at whole multiples of it, by the own clock. */
const GRID_MS = 1_000;

/** A timer may end a little too early. */
const EARLY_MS = 5;

type Group = { calls: Set<() => void>; timer: NodeJS.Timeout };

/** Waits by the number of the second at whose begin they end. */
const groups = new Map<number, Group>();

/** Returns the wait (ms) after which `callTogether` calls back: at most `ms`, and shorter by less than a second. */
export function sharedWaitMs(ms: number): number {
  const nowMs = performance.now();
  return ms < GRID_MS ? ms : secondAfter(nowMs, ms) * GRID_MS - nowMs;
}

function secondAfter(nowMs: number, ms: number): number {
  return Math.floor((nowMs + ms + EARLY_MS) / GRID_MS);
}

/**
 * Calls back after a wait. One of a second or more is up to a second shorter, and ends by one timer together with all others
 * that end in that second: to wake an idle process costs more than most of what it then does. Returns a function that ends it.
 */
export function callTogether(ms: number, call: () => void): () => void {
  if (ms < GRID_MS) {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  }
  const nowMs = performance.now();
  const second = secondAfter(nowMs, ms);
  const group = groups.get(second) ?? begin(second, nowMs);
  group.calls.add(call);
  return () => {
    group.calls.delete(call);
    if (group.calls.size > 0) return;
    clearTimeout(group.timer);
    if (groups.get(second) === group) groups.delete(second);
  };
}

function begin(second: number, nowMs: number): Group {
  const calls = new Set<() => void>();
  const end = (): void => {
    groups.delete(second);
    for (const call of calls) call();
  };
  const group = { calls, timer: setTimeout(end, second * GRID_MS - nowMs) };
  groups.set(second, group);
  return group;
}

/** Calls back again and again, as `callTogether`. Returns a function that ends it. */
export function repeatTogether(everyMs: number, call: () => void): () => void {
  let end = (): void => undefined;
  const wait = (): void => {
    end = callTogether(everyMs, () => {
      wait();
      call();
    });
  };
  wait();
  return () => end();
}
