import { type Observation, observationsOf } from '../../demo/observation.ts';
import type { Rules } from '../../demo/story.ts';
import type { Showing } from '../../sandbox/control/answer-log.ts';
import type { LogEntry } from '../../src/store/log-entry.ts';

/** The longest time from the last byte of an answer to its commit on a machine with little other load. */
const LITTLE_ELSE_MS = 2_000;

/** An answer without an event may last so many times as long as the slowest one with an event. */
const MORE = 2;

/**
 * The longest time in ms from the last byte of an answer to its commit on this machine, by the event log. An event is in
 * the log since its commit, and the last earlier answer with the same status and time is as old as the one that made it, or
 * younger. A commit around an outage is no measure of the machine.
 */
export function slackOf(run: {
  entries: readonly LogEntry[];
  showings: readonly Showing[];
  outages?: Rules['outages'];
}): number {
  const seen = observationsOf(run.showings);
  const took = run.entries.flatMap((entry) => {
    if (entry.kind !== 'event' || entry.event.data.previousStatus === entry.event.data.status) return [];
    const { subject, status, upstreamUpdatedAt } = entry.event.data;
    const committedMs = Number.parseInt(entry.id, 10);
    const isOfIt = (one: Observation): boolean =>
      one.status === status &&
      one.updatedAt === upstreamUpdatedAt &&
      (one.doneAt ?? committedMs) < committedMs;
    const doneMs = seen.get(subject.id)?.findLast(isOfIt)?.doneAt ?? committedMs;
    const isOut = (run.outages ?? []).some(
      ({ fromMs, untilMs }) => fromMs <= committedMs && untilMs >= doneMs,
    );
    return isOut ? [] : [committedMs - doneMs];
  });
  return MORE * Math.max(LITTLE_ELSE_MS / MORE, ...took);
}
