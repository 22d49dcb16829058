import { hasRival, type Observation, observationsOf } from '../../demo/observation.ts';
import type { Showing } from '../../sandbox/control/answer-log.ts';
import { contentOf } from '../../sandbox/world/record.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { runsOf } from './reckoning.ts';

/**
 * A span of a run in which the daemon may have lost an answer (Unix ms). `isRestore`: Redis lost its data of the span, open
 * deliveries included.
 */
export type Span = { fromMs: number; toMs: number; isRestore?: boolean };

/** One arrival of an event at a receiver. */
export type ReceiverArrival = { id: string; event: RenderedEvent; atMs: number };

/** Input of an account. `slackMs`: longest time from the last byte of an answer until it is stored, on this machine. */
export type Run = {
  subjects: ReadonlySet<string>;
  showings: readonly Showing[];
  received: Readonly<Record<string, readonly ReceiverArrival[]>>;
  /** When the daemon was away, or Redis lost data. */
  cut: readonly Span[];
  slackMs: number;
};

/** Result: the statuses that answers showed, and the counts of their reports. */
export type OperatorAccount = {
  shown: number;
  reported: number;
  excused: number;
  events: number;
  problems: string[];
};

/**
 * Compares the events of the receivers with the statuses that the upstream's answers showed:
 *
 * - each shown status is reported, except those that a newer answer overtook, or that were shown only while the daemon was away;
 * - each receiver gets the same events, except those that a restore removed while they were open;
 * - a state has one id, however often it is found;
 * - the sequence numbers of a subject have no gap within an epoch.
 */
export function accountOperator(run: Run): OperatorAccount {
  const account: OperatorAccount = { shown: 0, reported: 0, excused: 0, events: 0, problems: [] };
  const [first = [], ...others] = Object.entries(run.received);
  const events = distinct(first[1] ?? [], run.subjects);
  account.events = events.length;
  for (const [name, received] of others) {
    const lacking = lackedBy(received, first[1] ?? []);
    const beyond = lackedBy(first[1] ?? [], received);
    for (const id of lacking) account.problems.push(`${name} lacks ${id}`);
    for (const id of beyond) account.problems.push(`${first[0]} lacks ${id}, which ${name} has`);
  }
  account.problems.push(
    ...statesWithTwoIds(events),
    ...gaps(
      Object.values(run.received)
        .flat()
        .map(({ event }) => event),
      run.subjects,
    ),
  );
  const reported = Map.groupBy(events, ({ data }) => data.subject.id);
  const observations = observationsOf(run.showings);
  for (const subject of run.subjects) holdStatuses(subject);
  return account;

  function holdStatuses(subject: string): void {
    const seen = observations.get(subject) ?? [];
    const statuses = statusesOf(reported.get(subject) ?? []);
    let next = 0;
    for (const { status, indexes } of runsOf(seen)) {
      account.shown += 1;
      const found = statuses.indexOf(status, next);
      if (found === next) {
        account.reported += 1;
        next = found + 1;
      } else if (indexes.every((index) => isCut(seen[index]) || hasRival(seen, index, run.slackMs))) {
        account.excused += 1;
      } else {
        const all = statuses.join(', ') || 'nothing';
        account.problems.push(`${subject} was shown as ${status}, reported as ${all}`);
      }
    }
    for (const status of statuses.slice(next)) account.problems.push(`${subject} was reported as ${status}`);
  }

  /**
   * The events that one receiver lacks and another has. An event that a restore removed before its delivery to both is found
   * again only while its state lasts.
   */
  function lackedBy(received: readonly ReceiverArrival[], other: readonly ReceiverArrival[]): string[] {
    const ids = new Set(received.map(({ id }) => id));
    const missing = other.filter(({ id, event, atMs }) => {
      const isLost = run.cut.some(
        ({ isRestore, fromMs, toMs }) => isRestore === true && fromMs - run.slackMs <= atMs && atMs <= toMs,
      );
      return run.subjects.has(event.data.subject.id) && !ids.has(id) && !isLost;
    });
    return [...new Set(missing.map(({ id }) => id))];
  }

  function isCut(observation: Observation | undefined): boolean {
    const atMs = observation?.at ?? 0;
    return run.cut.some(({ fromMs, toMs }) => fromMs - run.slackMs <= atMs && atMs <= toMs);
  }
}

/**
 * The statuses that events report, in order. After a restore a status may come again when its record has changed since its
 * report: its former update is then its first state, of another type and id.
 */
function statusesOf(events: readonly RenderedEvent[]): (string | null)[] {
  const changes = events
    .toSorted((a, b) => epochOf(a) - epochOf(b) || a.data.sequence - b.data.sequence)
    .filter(({ data: { status, previousStatus } }) => status !== previousStatus);
  return changes.flatMap((event, index) => {
    const before = changes[index - 1];
    const isAgain =
      before !== undefined && before.data.status === event.data.status && epochOf(before) < epochOf(event);
    return isAgain ? [] : [event.data.status];
  });
}

function epochOf({ data }: RenderedEvent): number {
  return 'epoch' in data && typeof data.epoch === 'number' ? data.epoch : 1;
}

/** Each event about the subjects once, at its first arrival. */
function distinct(received: readonly ReceiverArrival[], subjects: ReadonlySet<string>): RenderedEvent[] {
  const first = new Map<string, RenderedEvent>();
  for (const { id, event } of received) {
    if (subjects.has(event.data.subject.id) && !first.has(id)) first.set(id, event);
  }
  return [...first.values()];
}

/** States of subjects that have two ids. */
export function statesWithTwoIds(events: readonly RenderedEvent[]): string[] {
  const ids = new Map<string, string>();
  return events.flatMap(({ id, type, data }) => {
    const proof = JSON.stringify(data.proof ?? null);
    const { subject, status, upstreamUpdatedAt, record } = data;
    const state = [type, subject.id, status, upstreamUpdatedAt, contentOf(record), proof].join(' ');
    const before = ids.get(state);
    ids.set(state, id);
    return before === undefined || before === id ? [] : [`${state} has the ids ${before} and ${id}`];
  });
}

/** Missing sequence numbers of subjects. */
export function gaps(events: readonly RenderedEvent[], subjects: ReadonlySet<string>): string[] {
  const numbers = new Map<string, Set<number>>();
  for (const event of events) {
    const { subject, sequence } = event.data;
    if (!subjects.has(subject.id)) continue;
    const key = `${subject.id} in epoch ${epochOf(event)}`;
    numbers.set(key, (numbers.get(key) ?? new Set()).add(sequence));
  }
  return [...numbers].flatMap(([key, found]) => {
    const isWhole = Math.max(...found) - Math.min(...found) + 1 === found.size;
    return isWhole ? [] : [`${key} has the sequence numbers ${[...found].sort((a, b) => a - b).join(', ')}`];
  });
}
