import { type Observation, observationsOf } from '../../demo/observation.ts';
import type { Rules } from '../../demo/story.ts';
import type { Showing } from '../../sandbox/control/answer-log.ts';
import type { LogEntry } from '../../src/store/log-entry.ts';

/** The time that a machine with little else to do takes at most from the last byte of an answer to its commit. */
const LITTLE_ELSE_MS = 2_000;

/** How much longer than for any answer that was reported it may have taken for one that was not. */
const MORE = 2;

/**
 * For how long after its last byte an answer may still be on its way to its commit on this machine, in ms, as the event
 * log has it: an event stands there since its commit, and the last answer before it that showed the same is as old as
 * the one that made it, or younger. What was committed around an outage says nothing of the machine.
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
