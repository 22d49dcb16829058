import { hash } from 'node:crypto';
import type { z } from 'zod';
import { canonicalJson, type JsonObject } from '../json.ts';
import type { EVENT, RENDERED_EVENT } from './event-schema.ts';

/** The event as the log stores it: immutable, one for all receivers. */
export type Event = z.infer<typeof EVENT>;

/**
 * Facts of an event that are the same for every receiver. `sequence` counts 1, 2, 3 … per subject. `record` is the
 * whole upstream record. `upstreamUpdatedAt` is in Unix seconds.
 */
export type EventFacts = Event['data'];

/** Subject of an event: one of our subjects; for operator events the upstream or a receiver. */
export type EventSubject = EventFacts['subject'];

/**
 * The event as one receiver gets it. `wallets`, `subscriptions` and `metadata` come only from subscriptions that lead
 * to this receiver. Members too large for a webhook are removed, with `recordTruncated` and maybe a `recordUrl`.
 */
export type RenderedEvent = z.infer<typeof RENDERED_EVENT>;

/**
 * State that identifies an event: the subject, the event's type and record, the flag of an event without an answer,
 * and the payment of a chain proof. It has no event counter and no time of ours.
 */
type NamedState = {
  subject: string;
  type: string;
  record: JsonObject;
  flag?: string;
  payment?: string;
};

/**
 * The id of an event, the epoch in it (see `identify`), the marks of its subject's events including this one, and whether the
 * event adds to them.
 */
export type EventIdentity = {
  id: string;
  restoredIn: number | null;
  emitted: readonly string[];
  isNew: boolean;
};

/** Most marks stored of a subject. A transfer has about five events in its life. */
const MOST_MARKS = 48;

/** Characters of a hash in a mark. Two states with the same mark only count as a return. */
const MARK_LENGTH = 6;

/**
 * Identifies an event. A state found again after a restore retains its id, since its subject's marks were restored as well.
 * A genuine return to a state gets another id, since the mark counts its reports. `restoredIn`: the epoch, for the first
 * state after a restore when a return cannot be distinguished from a state found again. `isAgain`: a reported state is
 * emitted once more, under its id, to receivers that did not get it: where that has an epoch, its mark states which.
 */
export function identify(
  state: NamedState,
  {
    emitted,
    restoredIn,
    isAgain = false,
  }: { emitted: readonly string[]; restoredIn: number | null; isAgain?: boolean },
): EventIdentity {
  const { subject, type, record, flag = '', payment = '' } = state;
  const hash = eventId([subject, type, foldedJson(record), flag, payment]);
  const mark = hash.slice(ID_PREFIX.length, ID_PREFIX.length + MARK_LENGTH);
  const { reports, least } = readMarks(emitted);
  const last = reports.get(mark);
  const times = Math.max(0, (last?.times ?? least) - (isAgain ? 1 : 0));
  const epoch = restoredIn ?? (isAgain ? (last?.epoch ?? null) : null);
  reports.delete(mark);
  reports.set(mark, { times: times + 1, epoch });
  const id = times === 0 && epoch === null ? hash : eventId([hash, String(times), String(epoch ?? '')]);
  return {
    id,
    restoredIn: epoch,
    emitted: writeMarks(reports, least),
    isNew: last?.times !== times + 1,
  };
}

const SPELLED = /\b(?:0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/gi;

/** The record as text, with hex and UUIDs in lower case: no answer that spells them differently shows another state. */
function foldedJson(record: JsonObject): string {
  return canonicalJson(record).replace(SPELLED, (text) => text.toLowerCase());
}

/** Reports of a state: their number, and the epoch in the id of the last one. */
type Reports = { times: number; epoch: number | null };

/** `least`: possible number of reports of a state whose mark is no longer stored. */
type Marks = { reports: Map<string, Reports>; least: number };

/**
 * Marks are `<mark>`, `<mark>.<times>` of a state reported more than once, or `<mark>.<times>.<epoch>` where the id of its last
 * report has an epoch; `.<times>` is the least.
 */
function readMarks(emitted: readonly string[]): Marks {
  const reports = new Map<string, Reports>();
  let least = 0;
  for (const text of emitted) {
    const [mark = '', times = '1', epoch = ''] = text.split('.');
    if (mark === '') least = Number(times) || 0;
    else reports.set(mark, { times: Number(times) || 1, epoch: Number(epoch) || null });
  }
  return { reports, least };
}

function writeMarks(reports: Map<string, Reports>, before: number): string[] {
  let least = before;
  for (const [mark, { times }] of reports) {
    if (reports.size <= MOST_MARKS) break;
    reports.delete(mark);
    least = Math.max(least, times);
  }
  const marks = [...reports].map(([mark, { times, epoch }]) => {
    if (epoch !== null) return `${mark}.${times}.${epoch}`;
    return times === 1 ? mark : `${mark}.${times}`;
  });
  return least === 0 ? marks : [`.${least}`, ...marks];
}

const ID_PREFIX = 'evt_';

/** `evt_` and the first 160 bits of a hash over the parts, in hex. */
export function eventId(parts: readonly string[]): string {
  return `${ID_PREFIX}${hash('sha256', JSON.stringify(parts), 'hex').slice(0, 40)}`;
}

/** Separates the event's id from the replay's in a delivery id. Neither of them, nor a queue, uses it. */
const SEPARATOR = '~';

/** Id of a delivery to a receiver: the event's id, followed by the replay's if there is one. */
export function deliveryId(eventId: string, replay: string | null): string {
  return replay === null ? eventId : `${eventId}${SEPARATOR}${replay}`;
}

/** Splits a delivery id into event and replay. */
export function parseDeliveryId(id: string): { eventId: string; replay: string | null } {
  const [eventId = '', replay = null] = id.split(SEPARATOR);
  return { eventId, replay };
}
