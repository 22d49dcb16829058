import { intervalFactor } from './interval.ts';
import type { PlannedPoll } from './next-poll.ts';
import { plannedDemand } from './price.ts';

/**
 * When a route is polled next: after its own interval, longer where the price asks for it. Never sooner, however much
 * of the budget is free: the interval is what somebody wrote.
 */
export function routeInterval(route: { everyMs: number; price: number }): PlannedPoll {
  const { everyMs, price } = route;
  const afterMs = Math.round(everyMs * Math.max(1, intervalFactor(price)));
  return { afterMs, demand: plannedDemand({ price, waitSeconds: afterMs / 1_000 }) };
}
