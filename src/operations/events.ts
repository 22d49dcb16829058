import { z } from 'zod';
import type { RenderedEvent } from '../domain/events/event.ts';
import { wantsType } from '../domain/events/filter.ts';
import { renderEvent, withSuspended } from '../domain/events/make-event.ts';
import { type Fact, readBatch, wholeFact } from '../queues/deliveries/matches.ts';
import { redisTimeMs } from '../store/commands.ts';
import { compareEntries, eventOf } from '../store/log-entry.ts';
import { type OperationContext, RefusedError } from './operation.ts';

/** An entry of the log. Redis does not read longer numbers. */
export const ENTRY = z.string().regex(/^\d{1,16}-\d{1,19}$/);

/** A place in the event log: behind an entry of the log of this name. */
export const LOG_PLACE = z.object({ log: z.string().max(40), after: ENTRY });

export type LogPlace = z.infer<typeof LOG_PLACE>;

/** Filter of events: by types (globs, `!` excludes; none: all), and by one subject. */
export type EventFilter = { types: readonly string[]; subject?: string };

type LoggedEvent = { entry: string; event: RenderedEvent };

/** Some events in the order of the log. `reached` is the last entry that was read; `more`: there are later ones already. */
export type EventPage = { events: LoggedEvent[]; reached: string; more: boolean };

const MOST_READ = 1_000;

/** Error for a cursor that cannot be continued: some entries behind it are gone. */
export class LostPlaceError extends Error {
  override readonly name = 'LostPlaceError';
}

/** Error for a cursor that no answer has given: it would skip future entries. */
export class FuturePlaceError extends Error {
  override readonly name = 'FuturePlaceError';
}

/**
 * The entry after which a place begins. Throws a LostPlaceError where some entries behind it are gone, and a FuturePlaceError
 * where it lies beyond both the newest entry and Redis' clock, on which `since` may have put it.
 */
export async function entryOf(
  { log, after }: LogPlace,
  { redis, stores: { events } }: OperationContext,
): Promise<string> {
  const [name, trimmed, nowMs] = await Promise.all([events.name(), events.trimmed(), redisTimeMs(redis)]);
  if (log !== name) {
    throw new LostPlaceError(
      'found a cursor of an event log that was lost with its Redis; begin without one',
    );
  }
  if (trimmed !== null && compareEntries(after, trimmed) < 0) {
    throw new LostPlaceError(
      'found a cursor behind which events have left the log (retention): some would be missing; begin without one',
    );
  }
  if (compareEntries(after, `${Math.floor(nowMs) + 1}-0`) > 0) {
    // Redis goes on from its newest entry where its clock was set back.
    const newest = await events.newest();
    if (compareEntries(after, newest) > 0) {
      throw new FuturePlaceError(
        `found a cursor at the entry ${after}, expected one up to the newest of the log, ${newest}`,
      );
    }
  }
  return after;
}

/** The newer of an entry and the newest that has expired from the log: a place there is valid while nothing is missing. */
export async function behindTrimmed(
  entry: string,
  { stores: { events } }: OperationContext,
): Promise<string> {
  const trimmed = await events.trimmed();
  return trimmed !== null && compareEntries(entry, trimmed) < 0 ? trimmed : entry;
}

/** The entry before all that are stored, or before a time (ms). */
export function entryBefore(ms: number | null): string {
  return ms === null || ms <= 0 ? '0-0' : `${Math.floor(ms) - 1}-9007199254740991`;
}

/** Reads the events after an entry, the oldest first. */
export async function eventsAfter(
  {
    after,
    untilMs,
    filter,
    limit,
  }: { after: string; untilMs: number | null; filter: EventFilter; limit: number },
  deps: OperationContext,
): Promise<EventPage> {
  const { events } = deps.stores;
  const end = untilMs === null ? null : entryBefore(untilMs);
  const found: LoggedEvent[] = [];
  let reached = after;
  for (let read = 0; read < MOST_READ; ) {
    const count = Math.min(limit * 2, MOST_READ);
    const piece = await events.after(reached, count);
    const entries =
      end === null ? piece.entries : piece.entries.filter(({ id }) => compareEntries(id, end) <= 0);
    const isLast = !piece.more || entries.length < piece.entries.length;
    const batch = await readBatch(entries, events);
    if (batch.stoppedBy !== null && batch.read === 0 && found.length === 0)
      throw newerEntry(batch.stoppedBy.id);
    for (const one of await rendered(meant(batch.facts, filter), deps)) {
      found.push(one);
      if (found.length === limit) return { events: found, reached: one.entry, more: true };
    }
    reached = batch.last ?? reached;
    if (batch.stoppedBy !== null || (isLast && !batch.isCut)) return { events: found, reached, more: false };
    // A part that was cut off for its size is a page by itself.
    if (batch.isCut || entries.length < count) break;
    read += entries.length;
  }
  return { events: found, reached, more: true };
}

/** Reads the events before an entry (`+`: the end), the newest first, down to a time. `more`: there are earlier ones. */
export async function eventsBefore(
  {
    before,
    sinceMs,
    filter,
    limit,
  }: { before: string; sinceMs: number | null; filter: EventFilter; limit: number },
  deps: OperationContext,
): Promise<EventPage> {
  const { events } = deps.stores;
  const end = entryBefore(sinceMs);
  const found: LoggedEvent[] = [];
  let reached = before;
  for (let read = 0; read < MOST_READ; ) {
    const count = Math.min(limit * 2, MOST_READ);
    const piece = await events.before(reached, count);
    const entries = piece.entries.filter(({ id }) => compareEntries(id, end) > 0);
    const isLast = !piece.more || entries.length < piece.entries.length;
    // A subscribers entry is no new event: the event that it names, which may be large, is not read for it.
    const own = entries.filter(({ kind }) => kind !== 'subscribers');
    // One by one: an unreadable entry is skipped, and must not hide those before it.
    const batches = await Promise.all(own.map((entry) => readBatch([entry], events)));
    const facts = batches.flatMap((batch) => batch.facts);
    for (const one of await rendered(meant(facts, filter), deps)) {
      found.push(one);
      if (found.length === limit) return { events: found, reached: one.entry, more: true };
    }
    reached = entries.at(-1)?.id ?? reached;
    if (isLast) return { events: found, reached, more: false };
    if (entries.length < count) break;
    read += entries.length;
  }
  return { events: found, reached, more: true };
}

function newerEntry(entry: string): RefusedError {
  return new RefusedError(
    `found an event that a newer version wrote (entry ${entry}) and this one cannot read; use a daemon of that version`,
  );
}

/** The facts that match the filter. A subscribers entry is no new event, but names further subscribers of an earlier one. */
function meant(facts: readonly Fact[], { types, subject }: EventFilter): Fact[] {
  return facts.filter(
    ({ event, place, at }) =>
      place === at &&
      (subject === undefined || event.data.subject.id === subject) &&
      (types.length === 0 || wantsType(types, event.type)),
  );
}

/** Renders events for a reader who sees all: with the metadata of all subscriptions. */
async function rendered(
  facts: readonly Fact[],
  { stores, directory }: OperationContext,
): Promise<LoggedEvent[]> {
  const whole = facts.map(wholeFact);
  const subscriptions = await stores.registry.subscriptions(
    whole.flatMap(({ claimKeys }) => claimKeys ?? []),
  );
  return whole.map(({ event, claimKeys, at }) => ({
    entry: at,
    event: renderEvent(event, claimKeys ?? [], subscriptions, directory),
  }));
}

/** Finds an event, whole, as a receiver gets it; null when that has no delivery of it (any more). Rejects when unknown. */
export type FindEvent = (wanted: { id: string; receiver: string }) => Promise<RenderedEvent | null>;

/** Finds an event as a receiver gets it. */
export async function findEvent(
  { id, receiver }: { id: string; receiver: string },
  { stores: { deliveries, events, registry }, directory }: OperationContext,
): Promise<RenderedEvent | null> {
  const fact = await deliveries.fact(receiver, id);
  const entry = fact === null ? null : await events.at(fact.entry);
  const event = eventOf(entry);
  if (fact === null || event === null) return null;
  const claimKeys = fact.isAsLogged && entry?.kind === 'event' ? entry.claimKeys : fact.claimKeys;
  const rendered = renderEvent(event, claimKeys, await registry.subscriptions(claimKeys), directory);
  return fact.suspended === '' ? rendered : withSuspended(rendered);
}
