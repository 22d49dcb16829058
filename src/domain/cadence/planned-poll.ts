/**
 * When a subject is polled next. `virtualSeconds`: the wait after which the poll is worth its request, at a price of 1,
 * counted from the poll before it in the plan's virtual time; `restMs`: no sooner than that; `latestMs`: it is overdue
 * after that, null for never; `alarmMs`: it is asked for after that whatever else, null for never. `unseen`: the upstream
 * has not shown it yet, so that it goes with what was newly named.
 */
export type PlannedPoll = {
  virtualSeconds: number;
  restMs: number;
  latestMs: number | null;
  alarmMs: number | null;
  unseen: boolean;
};
