import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import type { EndpointGroup } from '../../domain/subjects/kinds.ts';
import type { PlanStore } from '../../store/plan.ts';
import type { PollStart } from '../../store/poll-start.ts';

/**
 * A request that goes out later than its slot by more than this takes another one; each time twice as much is allowed, or
 * a process that is always held up for longer would never ask for anything.
 */
const LATE_MS = 30;

/** Waits for the poll's slot of the budget. A process that was held up takes another, so that none are used at once. */
export async function awaitSlot(
  start: PollStart,
  { plan, endpointGroup }: { plan: PlanStore; endpointGroup: EndpointGroup },
  signal: AbortSignal,
): Promise<void> {
  let atMs = performance.now() + start.inMs;
  for (let allowedMs = LATE_MS; ; allowedMs *= 2) {
    const restMs = atMs - performance.now();
    if (restMs > 1) await wait(restMs, undefined, { signal });
    signal.throwIfAborted();
    const lateMs = performance.now() - atMs;
    if (lateMs <= allowedMs) return;
    const inMs = await plan.reslot(endpointGroup);
    start.planMs += lateMs + inMs;
    start.nowMs += Math.round(lateMs + inMs);
    atMs = performance.now() + inMs;
  }
}
