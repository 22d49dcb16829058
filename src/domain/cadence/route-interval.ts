/**
 * When a route is polled next: after its own interval, longer where the budget asks for it. Never sooner, however much
 * of the budget is free: the interval is what somebody wrote.
 */
export function routeInterval(route: { everyMs: number; stretch: number }): {
  afterMs: number;
  baseMs: number;
} {
  const { everyMs, stretch } = route;
  return { afterMs: Math.round(everyMs * Math.max(1, stretch)), baseMs: everyMs };
}
