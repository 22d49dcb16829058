import { z } from 'zod';
import { type Event, parseDeliveryId } from '../domain/events/event.ts';
import { LISTED_REASONS } from '../domain/events/event-types.ts';
import { wantsType } from '../domain/events/filter.ts';
import { isTrackedKey, parseClaimKey } from '../domain/subjects/subscription.ts';
import { readBatch } from '../queues/deliveries/matches.ts';
import { type ListPlace, MOST_OPEN } from '../store/backlog.ts';
import { eventOf } from '../store/log-entry.ts';
import type { RawEntry } from '../store/undelivered.ts';
import { DELIVERY, type Delivery, deliveryOf } from './deliveries.ts';
import type { OperationContext } from './operation.ts';
import { namedAmong } from './resend.ts';
import { isoTime } from './time.ts';

/** A delivery whose last attempt failed. `retrying`: more attempts follow; `dead`: none does. */
export const UNDELIVERED = DELIVERY.omit({ waitsFor: true })
  .extend({
    state: z.enum(['retrying', 'dead']),
    event: z.string().describe('The id of the event.'),
    type: z.string().nullable().describe('Null when the event has expired from the log.'),
    subject: z.string().nullable(),
    at: z.iso.datetime().nullable().describe('When the event was made.'),
  })
  .meta({ id: 'Undelivered' });

export type Undelivered = z.infer<typeof UNDELIVERED>;

/** An empty list, or an absent member, excludes nothing. */
type UndeliveredFilter = {
  receivers: readonly string[];
  state?: 'retrying' | 'dead';
  types: readonly string[];
  subject?: string;
};

/**
 * Cursor of the list. It is ordered by the names of receivers; `open` deliveries of a receiver precede its `dead` ones. `id` is
 * the last checked delivery, with its `score` in Redis; both are empty at the start of a receiver's list.
 */
export const UNDELIVERED_PLACE = z.object({
  receiver: z.string(),
  list: z.enum(['open', 'dead']),
  score: z.string().regex(/^(\d{1,16}(\.\d{1,6})?)?$/),
  id: z.string().max(100),
});

type UndeliveredPlace = z.infer<typeof UNDELIVERED_PLACE>;

/** Most failed deliveries that one request reads. An empty list counts as one. */
const MOST_READ = 500;

/** Most deliveries that one request checks: most open ones wait for their first attempt, and are no part of the list. */
const MOST_CHECKED = 2_000;

/** Log entry of a missing delivery: no entry has this id. */
const NO_ENTRY = '0-0';

/** Lists a page of the failed deliveries of all receivers, the oldest of each receiver first. */
export async function listUndelivered(
  { filter, from, limit }: { filter: UndeliveredFilter; from: UndeliveredPlace | null; limit: number },
  deps: OperationContext,
): Promise<{ undelivered: Undelivered[]; next: UndeliveredPlace | null }> {
  const { registry, backlog } = deps.stores;
  const receivers = await registry.receivers();
  for (const name of filter.receivers) namedAmong(receivers, name);
  const names = receivers.map(({ name }) => name).sort();
  const lists = names
    .filter((name) => filter.receivers.length === 0 || filter.receivers.includes(name))
    .flatMap((receiver) => (['open', 'dead'] as const).map((list) => ({ receiver, list })))
    .filter(({ list }) => filter.state === undefined || list === (filter.state === 'dead' ? 'dead' : 'open'))
    .filter((one) => from === null || isNotBefore(one, from));
  const found: Undelivered[] = [];
  let remaining = MOST_READ;
  let unchecked = MOST_CHECKED;
  for (const { receiver, list } of lists) {
    const isFirst = from !== null && from.receiver === receiver && from.list === list;
    let after: ListPlace | null = isFirst && from.id !== '' ? from : null;
    do {
      const stop = { receiver, list, score: after?.score ?? '', id: after?.id ?? '' };
      if (remaining <= 0 || unchecked <= 0) return { undelivered: found, next: stop };
      const wanted = { list, after, count: Math.min(limit, remaining), most: Math.min(unchecked, MOST_OPEN) };
      const { listed, checked, reached } = await backlog.undelivered(receiver, wanted);
      const ids = listed.map(({ id }) => id);
      const some = await undeliveredOf(receiver, ids, { filter, deps });
      for (const [index, one] of some.entries()) {
        if (one !== null) found.push(one);
        const { score = '', id = '' } = listed[index] ?? {};
        if (found.length === limit) return { undelivered: found, next: { receiver, list, score, id } };
      }
      remaining -= Math.max(1, listed.length);
      unchecked -= checked;
      after = reached;
    } while (after !== null);
  }
  return { undelivered: found, next: null };
}

function isNotBefore(one: { receiver: string; list: 'open' | 'dead' }, from: UndeliveredPlace): boolean {
  if (one.receiver !== from.receiver) return one.receiver > from.receiver;
  return from.list === 'open' || one.list === 'dead';
}

/** Reads deliveries of a receiver with their events; null for those that the filter excludes. */
async function undeliveredOf(
  receiver: string,
  ids: readonly string[],
  { filter, deps: { stores } }: { filter: UndeliveredFilter; deps: OperationContext },
): Promise<(Undelivered | null)[]> {
  const facts = await Promise.all(ids.map((id) => stores.deliveries.fact(receiver, id)));
  const entries = facts.map((fact) => fact?.entry ?? NO_ENTRY);
  const found: (Undelivered | null)[] = [];
  while (found.length < ids.length) {
    for (const entry of await stores.events.readSomeAt(entries.slice(found.length))) {
      const [id = '', fact = null] = [ids[found.length], facts[found.length]];
      found.push(fact === null ? null : filtered(deliveryOf(receiver, id, fact), eventOf(entry), filter));
    }
  }
  return found;
}

function filtered(
  { state, waitsFor: _, ...delivery }: Delivery,
  event: Event | null,
  { subject: wanted, types }: UndeliveredFilter,
): Undelivered | null {
  if (state !== 'retrying' && state !== 'dead') return null;
  const subject = event?.data.subject.id ?? null;
  if (wanted !== undefined && subject !== wanted) return null;
  if (types.length > 0 && (event === null || !wantsType(types, event.type))) return null;
  return {
    ...delivery,
    state,
    event: parseDeliveryId(delivery.id).eventId,
    type: event?.type ?? null,
    subject,
    at: event?.timestamp ?? null,
  };
}

/** An event that no receiver gets because of the config, although no filter excludes it. */
export const UNMATCHED = z
  .object({
    event: z.string().describe('The id of the event.'),
    type: z.string(),
    subject: z.string(),
    at: z.iso.datetime().describe('When the event was made.'),
    reason: z
      .enum(LISTED_REASONS)
      .describe(
        '`no-receiver`: a subscription names a receiver that does not exist. `not-in-config`: the subscriptions to the subject are no longer in the config.',
      ),
    subscriptions: z.array(z.string()).describe('The subscriptions to the subject.'),
  })
  .meta({ id: 'Unmatched' });

export type Unmatched = z.infer<typeof UNMATCHED>;

/** Cursor of the list: the id of the last listed log entry. */
export const UNMATCHED_PLACE = z.object({ entry: z.string().regex(/^\d{1,15}-\d{1,20}$/) });

type UnmatchedPlace = z.infer<typeof UNMATCHED_PLACE>;

/** Lists a page of the events that no receiver gets, the newest first. Omits those that have expired from the log. */
export async function listUnmatched(
  { from, limit }: { from: UnmatchedPlace | null; limit: number },
  { stores: { events, unmatched } }: OperationContext,
): Promise<{ unmatched: Unmatched[]; next: UnmatchedPlace | null }> {
  const listed = await unmatched.list({ before: from?.entry ?? null, count: limit });
  const entries = await events.readAllAt(listed.map(({ entry }) => entry));
  const found = listed.flatMap(({ reason }, index): Unmatched[] => {
    const stored = entries[index] ?? null;
    const event = eventOf(stored);
    if (event === null) return [];
    const claimKeys = stored?.kind === 'event' ? stored.claimKeys : [];
    const names = claimKeys.filter((key) => !isTrackedKey(key)).map((key) => parseClaimKey(key).subscription);
    return [
      {
        event: event.id,
        type: event.type,
        subject: event.data.subject.id,
        at: event.timestamp,
        reason,
        subscriptions: [...new Set(names)],
      },
    ];
  });
  const last = listed.at(-1);
  return {
    unmatched: found,
    next: listed.length < limit || last === undefined ? null : { entry: last.entry },
  };
}

/** An entry of the event log that was quarantined. */
export const QUARANTINED_ENTRY = z.object({
  id: z.string().describe('Its id in the log.'),
  at: z.iso.datetime(),
  kind: z.string().describe('The kind of entry that it states.'),
  subject: z.string().nullable(),
  reason: z.string().nullable().describe('Why it cannot be read; null when this version can read it.'),
});

/** Result of returning entries to the log. */
export const QUARANTINE_REPLAYED = z.object({
  returned: z.int().describe('Number of entries that were returned to the log.'),
  quarantined: z.int().describe('Number of quarantined entries before.'),
});

type ShownEntry = { entry: RawEntry; shown: z.infer<typeof QUARANTINED_ENTRY> };

/** Lists the quarantined entries, the oldest first. */
export async function listQuarantined(deps: OperationContext): Promise<z.infer<typeof QUARANTINED_ENTRY>[]> {
  return (await readStored(deps)).map(({ shown }) => shown);
}

/** Returns readable entries to the log. Receivers that lack them get them. */
export async function replayQuarantined(
  deps: OperationContext,
): Promise<z.infer<typeof QUARANTINE_REPLAYED>> {
  const stored = await readStored(deps);
  let returned = 0;
  for (const { entry, shown } of stored) {
    if (shown.reason === null && (await deps.stores.quarantine.returnToLog(entry))) returned += 1;
  }
  return { returned, quarantined: stored.length };
}

async function readStored({ stores: { quarantine, events } }: OperationContext): Promise<ShownEntry[]> {
  const stored: ShownEntry[] = [];
  for (const entry of await quarantine.list()) {
    const { unreadable, stoppedBy } = await readBatch([entry], events);
    const reason = stoppedBy?.reason ?? unreadable[0]?.reason ?? null;
    const at = isoTime(Number(entry.id.split('-')[0]));
    const [kind, subject] = [fieldOf(entry, 'kind') ?? '', fieldOf(entry, 'subject')];
    stored.push({ entry, shown: { id: entry.id, at, kind, subject, reason } });
  }
  return stored;
}

function fieldOf({ fields }: RawEntry, name: string): string | null {
  const index = fields.findIndex((field, at) => at % 2 === 0 && field === name);
  return index === -1 ? null : (fields[index + 1] ?? null);
}
