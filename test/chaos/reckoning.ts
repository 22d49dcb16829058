import { hasRival, type Observation, observationsOf } from '../../demo/observation.ts';
import type { Showing } from '../../sandbox/control/answer-log.ts';
import type { Event } from '../../src/domain/events/event.ts';

/** An event as a receiver accepted it. */
export type Arrival = { id: string; subject: string; sequence: number; atMs: number };

/** A disruption of a victim; `toMs` is its end. */
export type Disruption = { what: string; victim: string; fromMs: number; toMs: number };

/** The events that a receiver got, the events meant for it, and whether they must come in order. */
export type Receipts = {
  receiver: string;
  wants: (event: Event) => boolean;
  arrivals: readonly Arrival[];
  ordered: boolean;
};

/** Comparison of the shown statuses with the event log. */
export type Reporting = {
  shown: number;
  reported: number;
  /** Shown only by answers that a disruption cut off, or that a newer one overtook; the next event names it in `skipped`. */
  cutOff: number;
  overtaken: number;
  lost: string[];
  invented: string[];
};

/** Comparison of the event log with the arrivals at a receiver. */
export type Delivery = {
  receiver: string;
  due: number;
  delivered: number;
  duplicates: number;
  /** Duplicates without a disruption near their first arrival. */
  unexplained: string[];
  lost: string[];
  invented: string[];
  outOfOrder: string[];
};

/** From a receiver's answer to our note of it. */
const NOTE_MS = 2_000;

/**
 * Compares the statuses that answers showed of some subjects with the events of the log. `slackMs`: longest time from an answer
 * until it is stored, on this machine. Within it a disruption may cut the answer off. A concurrent answer may also be stored
 * first: then this one is refused.
 */
export function reckonReporting(input: {
  subjects: ReadonlySet<string>;
  showings: readonly Showing[];
  events: readonly Event[];
  disruptions: readonly Disruption[];
  slackMs: number;
}): Reporting {
  const { subjects, disruptions, slackMs } = input;
  const observations = observationsOf(input.showings);
  const reported = new Map<string, string[]>();
  const reporting: Reporting = { shown: 0, reported: 0, cutOff: 0, overtaken: 0, lost: [], invented: [] };
  const latest = new Map<string, Event>();
  for (const event of input.events.toSorted((a, b) => a.data.sequence - b.data.sequence)) {
    const { subject, sequence, status, previousStatus } = event.data;
    const before = latest.get(subject.id);
    latest.set(subject.id, event);
    // A snapshot that moved without its event leaves a gap, even where no answer shows the status again.
    const follows = sequence === (before?.data.sequence ?? 0) + 1;
    if (!follows || (before !== undefined && previousStatus !== before.data.status)) {
      reporting.lost.push(
        `${subject.id}: ${place(event)} does not follow ${before ? place(before) : 'nothing'}`,
      );
    }
    if (status !== null && status !== previousStatus) {
      reported.set(subject.id, [...(reported.get(subject.id) ?? []), status]);
    }
  }
  for (const id of new Set(
    [...observations.keys(), ...reported.keys()].filter((subject) => subjects.has(subject)),
  )) {
    const statuses = reported.get(id) ?? [];
    let next = 0;
    const seen = observations.get(id) ?? [];
    const shown = runsOf(seen);
    const isCut = (index: number): boolean => isCutOff(seen[index]?.at ?? 0, { disruptions, slackMs });
    for (const { status, indexes } of shown) {
      reporting.shown += 1;
      if (statuses[next] === status) {
        reporting.reported += 1;
        next += 1;
      } else if (indexes.every(isCut)) {
        reporting.cutOff += 1;
      } else if (indexes.every((index) => isCut(index) || hasRival(seen, index, slackMs))) {
        reporting.overtaken += 1;
      } else {
        reporting.lost.push(`${id} was shown as ${status}, reported as ${statuses.join(', ') || 'nothing'}`);
      }
    }
    for (const status of statuses.slice(next)) reporting.invented.push(`${id} was reported as ${status}`);
    const last = shown.at(-1)?.status;
    if (last !== undefined && statuses.at(-1) !== last) reporting.lost.push(`${id} ended as ${last}, untold`);
  }
  return reporting;
}

function place({ data: { sequence, status, previousStatus } }: Event): string {
  return `#${sequence} (${previousStatus ?? 'none'} to ${status ?? 'none'})`;
}

/** One status of a subject while answers showed it, and the indexes of its observations. */
type Run = { status: string; indexes: number[] };

/** Groups consecutive observations of one status; an answer that does not know the subject shows none. */
export function runsOf(observations: readonly Observation[]): Run[] {
  const runs: Run[] = [];
  for (const [index, { status }] of observations.entries()) {
    if (status === 'unknown') continue;
    const last = runs.at(-1);
    if (last?.status === status) last.indexes.push(index);
    else runs.push({ status, indexes: [index] });
  }
  return runs;
}

function isCutOff(
  atMs: number,
  { disruptions, slackMs }: { disruptions: readonly Disruption[]; slackMs: number },
): boolean {
  return disruptions.some(({ fromMs, toMs }) => fromMs - slackMs <= atMs && atMs <= toMs);
}

/** Compares the events of the log with the arrivals at one receiver. */
export function reckonDelivery(
  { receiver, wants, arrivals, ordered }: Receipts,
  events: readonly Event[],
  disruptions: readonly Disruption[],
): Delivery {
  const due = new Set(events.filter(wants).map(({ id }) => id));
  const first = new Map<string, Arrival>();
  const delivery: Delivery = {
    receiver,
    due: due.size,
    delivered: 0,
    duplicates: 0,
    unexplained: [],
    lost: [],
    invented: [],
    outOfOrder: [],
  };
  const highest = new Map<string, number>();
  for (const arrival of arrivals) {
    const before = first.get(arrival.id);
    if (before !== undefined) {
      delivery.duplicates += 1;
      if (!isNear(before.atMs, disruptions)) {
        delivery.unexplained.push(`${arrival.id} came again after ${arrival.atMs - before.atMs} ms`);
      }
      continue;
    }
    first.set(arrival.id, arrival);
    if (!due.has(arrival.id)) delivery.invented.push(arrival.id);
    const reached = highest.get(arrival.subject) ?? 0;
    if (ordered && arrival.sequence < reached) {
      delivery.outOfOrder.push(`${arrival.subject}: ${arrival.sequence} came after ${reached}`);
    }
    highest.set(arrival.subject, Math.max(reached, arrival.sequence));
  }
  delivery.delivered = [...due].filter((id) => first.has(id)).length;
  delivery.lost = [...due].filter((id) => !first.has(id));
  return delivery;
}

function isNear(answeredMs: number, disruptions: readonly Disruption[]): boolean {
  return disruptions.some(
    ({ fromMs, toMs }) => fromMs - NOTE_MS <= answeredMs && answeredMs <= toMs + NOTE_MS,
  );
}
