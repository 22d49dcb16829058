import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** The old space is collected after it has grown by this share of its live objects. */
const GROWTH_PERCENT = { least: 25, most: 100 } as const;

/** A busy process lets the old space grow by so many bytes, within those shares. */
const BUSY_GROWTH_BYTES = 24 * 2 ** 20;

/** A process is busy while less time than this passes from one collection of the old space to the next. */
const BUSY_MS = 10_000;

/** Time from the start to the collection of its garbage: what waits for a daemon that starts does not wait for that. */
const SETTLED_MS = 1_000;

/** Both halves of the young space together. Each growth doubles it, so that the last one passes this bound: to 27 MB. */
const MOST_YOUNG_BYTES = 24 * 2 ** 20;

/**
 * Calls of a function before V8 optimizes it, and calls since it last met a new shape. V8 waits for 400 and 500: in a wallet's
 * first hundreds of changes nearly all code that they run is interpreted, and takes twice the time.
 */
const EARLY_CALLS = 20;

/** A start that takes longer has the growth of its heap limited meanwhile: with thousands of receivers it is 400 MB. */
const LONG_START_MS = 2_000;

/**
 * Sets the flags of V8 for this process, once it has started. They take effect at once. Under other flags than its own, V8 uses
 * none of the compiled code that comes with Node: set at the beginning, they cost each start 0.15 s.
 */
export async function setV8Flags(start: Promise<unknown>): Promise<void> {
  const isStarted = start.then(
    () => true,
    () => false,
  );
  const isLong = await Promise.race([
    isStarted.then(() => false),
    sleep(LONG_START_MS, true, { ref: false }),
  ]);
  setOldGrowth(GROWTH_PERCENT.least);
  // The growth counts from the next collection on.
  if (isLong) await collectAll();
  if (!(await isStarted)) return;
  setFlagsFromString(`--invocation-count-for-maglev=${EARLY_CALLS}`);
  setFlagsFromString(`--minimum-invocations-after-ic-update=${EARLY_CALLS}`);
  setFlagsFromString('--invocation-count-for-feedback-allocation=2');
  await sleep(SETTLED_MS, undefined, { ref: false });
  await collectAll();
  limitHeap();
}

/**
 * Gives back the memory that only the start has used, which V8 would hold for a minute or longer: a third of an idle process.
 * It takes some 70 ms.
 */
async function collectAll(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect: NodeJS.GCFunction | undefined = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  await collect?.({ type: 'major', execution: 'async', flavor: 'last-resort' });
}

/**
 * Limits the heap to little more than its live objects. On a machine with much memory V8 collects garbage late: a daemon with
 * 70 MB of live objects used 280 MB. Both spaces grow with the load: a small young space costs a third of the CPU time, an old
 * one that is collected each second another quarter, and its collections are what the slowest events wait for. It follows the
 * collections: a timer would wake an idle process.
 */
function limitHeap(): void {
  const sinceMs = performance.now();
  let isYoungGrown = false;
  let lastMs = Number.NEGATIVE_INFINITY;
  const collections = new PerformanceObserver((list) => {
    if (!isYoungGrown && spaceOf('new_space').space_size >= MOST_YOUNG_BYTES) {
      isYoungGrown = true;
      setFlagsFromString('--semi-space-growth-factor=1');
    }
    for (const { startTime } of list.getEntries().filter(isOfOldSpace)) {
      // Another observer may have requested earlier collections.
      if (startTime < sinceMs) continue;
      const isBusy = startTime - lastMs < BUSY_MS;
      setOldGrowth(isBusy ? busyPercent(spaceOf('old_space').space_used_size) : GROWTH_PERCENT.least);
      lastMs = startTime;
    }
  });
  collections.observe({ entryTypes: ['gc'] });
}

function spaceOf(name: string): { space_size: number; space_used_size: number } {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === name);
  return space ?? { space_size: 0, space_used_size: 0 };
}

function busyPercent(liveBytes: number): number {
  const percent = Math.round((100 * BUSY_GROWTH_BYTES) / Math.max(1, liveBytes));
  return Math.min(GROWTH_PERCENT.most, Math.max(GROWTH_PERCENT.least, percent));
}

function isOfOldSpace(entry: PerformanceEntry): boolean {
  const { detail } = entry as PerformanceEntry & { detail?: { kind?: number } };
  return detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR;
}

function setOldGrowth(percent: number): void {
  setFlagsFromString(`--heap-growing-percent=${percent}`);
}
