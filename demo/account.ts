import type { Showing } from '../sandbox/control/answer-log.ts';
import type { Transition } from '../sandbox/world/world.ts';
import type { RenderedEvent } from '../src/domain/events/event.ts';
import { observationsOf } from './observation.ts';
import { explain, type Rules, TOLERANCES, type Tolerance } from './story.ts';

/** Comparison of the real changes, the visible ones, and the reported ones. */
export type Account = {
  made: number;
  /** Changes that no answer showed while they were current: overtaken between two polls, or never polled. */
  merged: number;
  /** Changes that an answer showed while they were current. */
  shown: number;
  statusEvents: number;
  updates: number;
  tolerated: Record<Tolerance, number>;
  /** Watched subjects with a last state that the watcher cannot know yet, as text. */
  unsettled: string[];
  /** Each difference between the visible and the reported changes, as text. Empty when all adds up. */
  problems: string[];
};

/**
 * Compares events with the changes (`GET /transitions`) and answers (`GET /showings`) of a sandbox. For every watched
 * subject there must be a way in which its answers, in their order, explain all of its events, and in which no answer
 * requires an event that did not come (story.ts has the rules). All other causes of a difference are counted in
 * `tolerated`. The sequences of a subject must be 1, 2, 3 … and every event must be about a watched subject. Once all
 * has drained, `unsettled` must be empty too.
 *
 * `events` are those of a receiver, in any order; a repeated one counts once. `showings` may have only answers to the
 * watcher: other clients of the sandbox must make their requests later.
 */
export function account(input: {
  transitions: readonly Transition[];
  showings: readonly Showing[];
  events: readonly RenderedEvent[];
  isWatched: (subject: string) => boolean;
  rules?: Partial<Rules>;
  /** Time after its last byte in which an answer about a subject may be ingested, in ms, where its watcher states it. */
  slackMsOf?: (subject: string) => number;
}): Account {
  const made = Map.groupBy(
    input.transitions.filter(({ subject }) => input.isWatched(subject)),
    ({ subject }) => subject,
  );
  const events = [...new Map(input.events.map((event) => [event.id, event])).values()];
  const reported = Map.groupBy(events, ({ data }) => data.subject.id);
  const seen = observationsOf(input.showings);
  const problems: string[] = [];
  const unsettled: string[] = [];
  const tolerated = { history: 0, overtaken: 0, lost: 0, stale: 0, confirmed: 0, clock: 0 };
  let shown = 0;
  for (const subject of reported.keys()) {
    if (!input.isWatched(subject)) problems.push(`${subject} was reported, which is not watched`);
    else if (!seen.has(subject)) problems.push(`${subject} was reported, which no answer showed`);
  }
  for (const subject of new Set([...made.keys(), ...seen.keys()])) {
    if (!input.isWatched(subject)) continue;
    const transitions = made.get(subject) ?? [];
    const observations = seen.get(subject) ?? [];
    const slackMs = input.slackMsOf?.(subject);
    const rules = { ...input.rules, ...(slackMs !== undefined && { slackMs }) };
    const story = explain({ subject, observations, events: reported.get(subject) ?? [], rules });
    problems.push(...story.problems);
    for (const reason of TOLERANCES) tolerated[reason] += story.tolerated[reason];
    const last = transitions.at(-1)?.to;
    if (last !== undefined && story.problems.length === 0 && story.stored !== last) {
      unsettled.push(`${subject} ended as ${last}, but ${story.stored ?? 'nothing'} is known of it`);
    }
    shown += transitions.filter((transition, index) => {
      const untilMs = transitions[index + 1]?.at ?? Number.POSITIVE_INFINITY;
      return observations.some(
        ({ at, status }) => status === transition.to && at >= transition.at && at <= untilMs,
      );
    }).length;
  }
  const count = [...made.values()].reduce((sum, transitions) => sum + transitions.length, 0);
  const statusEvents = events.filter(({ data }) => data.status !== data.previousStatus).length;
  return {
    made: count,
    merged: count - shown,
    shown,
    statusEvents,
    updates: events.length - statusEvents,
    tolerated,
    unsettled,
    problems,
  };
}
