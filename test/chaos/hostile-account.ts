import type { Event } from '../../src/domain/events/event.ts';
import type { Arrival } from './reckoning.ts';

/**
 * Compares the lasting statuses that answers showed with the events: each has exactly one, in order. Compares the arrivals: each
 * event of a subject has one arrival, under one id.
 */
export function exactProblems(
  shown: ReadonlyMap<string, readonly string[]>,
  came: { events: readonly Event[]; arrivals: readonly Arrival[] },
): string[] {
  const problems: string[] = [];
  const events = Map.groupBy(came.events, ({ data }) => data.subject.id);
  for (const [subject, statuses] of shown) {
    const reported = (events.get(subject) ?? [])
      .toSorted((a, b) => a.data.sequence - b.data.sequence)
      .flatMap(({ data: { status, previousStatus } }) => (status === previousStatus ? [] : [status]));
    if (JSON.stringify(reported) === JSON.stringify(statuses)) continue;
    problems.push(
      `${subject} was shown as ${JSON.stringify(statuses)}, reported as ${JSON.stringify(reported)}`,
    );
  }
  const arrivals = Map.groupBy(came.arrivals, ({ subject, sequence }) => `${subject} #${sequence}`);
  for (const [event, list] of arrivals) {
    if (list.length === 1) continue;
    const ids = new Set(list.map(({ id }) => id));
    problems.push(`${event} arrived ${list.length} times, under ${ids.size} ids`);
  }
  return problems;
}
