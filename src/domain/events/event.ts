import { sha256, stringToBytes } from 'viem/utils';
import type { z } from 'zod';
import { canonicalJson, type JsonObject } from '../json.ts';
import type { EVENT, RENDERED_EVENT } from './event-schema.ts';

/** The event as the log keeps it: immutable, one for all receivers. */
export type Event = z.infer<typeof EVENT>;

/**
 * The facts of an event that are the same for every receiver. `sequence` counts 1, 2, 3 … per subject.
 * `record` is what the upstream said, whole. `upstreamUpdatedAt` is in Unix seconds.
 */
export type EventFacts = Event['data'];

/** What an event is about: one of our subjects, or for operator events the upstream or a receiver. */
export type EventSubject = EventFacts['subject'];

/**
 * The event as one receiver gets it. `wallets`, `subscriptions` and `metadata` come only from the subscriptions that
 * lead from the event's subject to this receiver: nobody sees another's. What was too large for a webhook is left out,
 * with `recordTruncated`; `recordUrl` is where the whole is, if it can be read anywhere.
 */
export type RenderedEvent = z.infer<typeof RENDERED_EVENT>;

/**
 * What names an event: the subject, the event's type and record, the flag of one that no answer made, and the payment of
 * which a chain says something. None of it counts events or is a time of ours.
 */
type NamedState = {
  subject: string;
  type: string;
  record: JsonObject;
  flag?: string;
  payment?: string;
};

/** The id of an event, and the marks of its subject's events with that of this one. */
export type EventIdentity = { id: string; emitted: readonly string[] };

/** The number of marks of a subject are stored. A transfer has about five events in its life. */
const MOST_MARKS = 48;

/** How much of a hash is a mark. Two states with the same mark only count as a return. */
const MARK_LENGTH = 6;

/**
 * Names an event. A state that is found again after a restore has the id that it had, since the marks of its subject went
 * back as well. A genuine return to a state has another: the mark counts how often it was reported. `restoredIn` is the
 * epoch, where this is the first state after a restore and nothing tells a return from a state that is found again.
 * `isAgain`: the state was reported, and is reported once more to those who did not get it then, under its id.
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

/** `least`: how often a state whose mark is not stored any more may have been reported. */
type Marks = { counts: Map<string, number>; least: number };

/** Marks are `<mark>`, or `<mark>.<times>` of a state that was reported more than once; `<times>` alone is the least. */
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
  return `${ID_PREFIX}${sha256(stringToBytes(JSON.stringify(parts))).slice(2, 42)}`;
}

/** Between the event and the replay of a delivery's id: neither of them, nor a queue, has a meaning for it. */
const SEPARATOR = '~';

/** The id of a delivery to a receiver: the event's, and for a replay the replay's behind it. */
export function deliveryId(eventId: string, replay: string | null): string {
  return replay === null ? eventId : `${eventId}${SEPARATOR}${replay}`;
}

/** The event and the replay that a delivery's id names. */
export function parseDeliveryId(id: string): { eventId: string; replay: string | null } {
  const [eventId = '', replay = null] = id.split(SEPARATOR);
  return { eventId, replay };
}
