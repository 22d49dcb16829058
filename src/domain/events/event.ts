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

/** The id of an event, and the marks of its subject's events including this one. */
export type EventIdentity = { id: string; emitted: readonly string[] };

/** Most marks stored of a subject. A transfer has about five events in its life. */
const MOST_MARKS = 48;

/** Characters of a hash in a mark. Two states with the same mark only count as a return. */
const MARK_LENGTH = 6;

/**
 * Identifies an event. A state found again after a restore retains its id, since its subject's marks were restored as well.
 * A genuine return to a state gets another id, since the mark counts its reports. `restoredIn`: the epoch, for the first
 * state after a restore when a return cannot be distinguished from a state found again. `isAgain`: a reported state is
 * emitted once more, under its id, to receivers that did not get it.
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
  const hash = eventId([subject, type, canonicalJson(record), flag, payment]);
  const mark = hash.slice(ID_PREFIX.length, ID_PREFIX.length + MARK_LENGTH);
  const { counts, least } = readMarks(emitted);
  const times = Math.max(0, (counts.get(mark) ?? least) - (isAgain ? 1 : 0));
  counts.delete(mark);
  counts.set(mark, times + 1);
  const id =
    times === 0 && restoredIn === null ? hash : eventId([hash, String(times), String(restoredIn ?? '')]);
  return { id, emitted: writeMarks(counts, least) };
}

/** `least`: possible number of reports of a state whose mark is no longer stored. */
type Marks = { counts: Map<string, number>; least: number };

/** Marks are `<mark>`, or `<mark>.<times>` of a state reported more than once; `<times>` alone is the least. */
function readMarks(emitted: readonly string[]): Marks {
  const counts = new Map<string, number>();
  let least = 0;
  for (const text of emitted) {
    const [mark = '', times = '1'] = text.split('.');
    if (mark === '') least = Number(times) || 0;
    else counts.set(mark, Number(times) || 1);
  }
  return { counts, least };
}

function writeMarks(counts: Map<string, number>, before: number): string[] {
  let least = before;
  for (const [mark, times] of counts) {
    if (counts.size <= MOST_MARKS) break;
    counts.delete(mark);
    least = Math.max(least, times);
  }
  const marks = [...counts].map(([mark, times]) => (times === 1 ? mark : `${mark}.${times}`));
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
