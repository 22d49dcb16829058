import { z } from 'zod';
import { parseClaimKey } from '../domain/subjects/subscription.ts';
import { matchesOf } from '../queues/deliveries/matches.ts';
import { factsAt } from '../queues/deliveries/replays.ts';
import { redisTimeMs } from '../store/commands.ts';
import type { StoredReceiver } from '../store/definitions.ts';
import { eventOf } from '../store/log-entry.ts';
import { isHeld } from '../store/receivers.ts';
import { newReplayId, type Replay } from '../store/replays.ts';
import { type OperationContext, RefusedError, UnknownError, watchedSubject } from './operation.ts';
import { isoTime, type TimeInput, timeMs } from './time.ts';

/** Progress of a replay. */
export const REPLAY = z
  .object({
    id: z.string(),
    receiver: z.string(),
    state: z.enum(['open', 'opened']).describe('`opened`: all of its deliveries are queued.'),
    readTo: z.iso
      .datetime()
      .nullable()
      .describe('Up to which time the log was read; null when it is not read in order.'),
    opened: z.int().describe('How many events were queued to be sent once more.'),
    delivered: z.int(),
    dead: z.int(),
    ended: z.boolean().describe('Whether all of them were delivered or given up.'),
  })
  .meta({ id: 'Replay' });

/** Times of the log's first and last entries at the time of the read; null for an empty log. */
export const LOG_RANGE = z
  .object({ from: z.iso.datetime(), until: z.iso.datetime() })
  .describe(
    'From which time to which the event log holds entries: an event that a clock has dated wrongly may lie ahead.',
  )
  .meta({ id: 'LogRange' });

/**
 * Sends the events of a time range to a receiver once more: without `until`, up to the newest of the log, whatever the clock.
 * Returns the id of the replay, and the range of the log.
 */
export async function resendTime(
  {
    name,
    since,
    until,
    types,
    key,
  }: {
    key: string | null;
    name: string;
    since: TimeInput;
    until: TimeInput | null;
    types: readonly string[] | null;
  },
  deps: OperationContext,
): Promise<{ id: string; log: z.infer<typeof LOG_RANGE> | null }> {
  const { removed } = await receiverNamed(name, deps);
  if (removed) throw new RefusedError(`${name} is not in the config any more; put it back first`);
  await refuseHeld(name, deps);
  const nowMs = await redisTimeMs(deps.redis);
  const sinceMs = timeMs(since, nowMs);
  const { events } = deps.stores;
  const end = await events.newest();
  const [oldest] = (await events.after('0-0', 1)).entries;
  const newestMs = msOf(end);
  const untilMs = until === null ? Math.max(nowMs, newestMs) + 1 : timeMs(until, nowMs);
  if (sinceMs >= untilMs) {
    throw new RefusedError(
      until === null
        ? 'found a since in the future, expected one before now'
        : 'found a since that is not before until, expected it to be',
    );
  }
  const id = replayIdOf(key, name);
  await deps.stores.replays.request(id, {
    receiver: name,
    since: `${Math.max(0, sinceMs - 1)}-${Number.MAX_SAFE_INTEGER}`,
    until: `${Math.max(0, untilMs)}-0`,
    end,
    types: types === null ? null : [...types],
  });
  const log = oldest === undefined ? null : { from: isoTime(msOf(oldest.id)), until: isoTime(newestMs) };
  return { id, log };
}

function msOf(entry: string): number {
  return Number(entry.split('-')[0]);
}

/** Receivers of a resend (null: all that match), and the idempotency key of its request. */
export type ResendOptions = { receivers: readonly string[] | null; key: string | null };

/** Requested replays, one per receiver. */
export type Resent = { receiver: string; replay: string; events: number }[];

/**
 * Sends one event once more, also one that waits for suspended subjects: it goes on waiting, and comes again in its turn.
 * Throws a RefusedError that names its suspensions where none of their receivers remains.
 */
export async function resendEvent(
  id: string,
  options: ResendOptions,
  deps: OperationContext,
): Promise<Resent> {
  const { registry, deliveries } = deps.stores;
  const receivers = await registry.receivers();
  const facts = await Promise.all(receivers.map(({ name }) => deliveries.fact(name, id)));
  const waiting = await registry.suspensions.waiting.find(id);
  const opened = facts.find((fact) => fact !== null)?.entry ?? waiting[0]?.entry;
  const place = opened ?? (await placeOfUnmatched(id, deps));
  if (place === null) {
    throw new UnknownError(
      `found no delivery of ${id}, expected an event that some receiver matched or that no receiver gets (intentwatch undelivered), within its retention; others are sent by their subject, or pulled (/events)`,
    );
  }
  return resendPlaces([place], { ...options, waitingFor: waiting.map(({ key }) => key) }, deps);
}

const SEARCHED_AT_ONCE = 200;

/** Finds the place in the log of a listed event by its id; null where it is not listed, or has expired. */
async function placeOfUnmatched(
  id: string,
  { stores: { events, unmatched } }: OperationContext,
): Promise<string | null> {
  for (let before: string | null = null; ; ) {
    const listed = await unmatched.list({ before, count: SEARCHED_AT_ONCE });
    for (let places = listed.map(({ entry }) => entry); places.length > 0; ) {
      const entries = await events.readSomeAt(places);
      const found = entries.findIndex((entry) => eventOf(entry)?.id === id);
      if (found !== -1) return places[found] ?? null;
      places = places.slice(entries.length);
    }
    if (listed.length < SEARCHED_AT_ONCE) return null;
    before = listed.at(-1)?.entry ?? null;
  }
}

const MOST_RESENT = 100;

/** Resends the events of a subject, in order: those of its newest 100 still in the log. `leftOut` counts its other events. */
export async function resendSubject(
  id: string,
  options: ResendOptions,
  deps: OperationContext,
): Promise<{ replays: Resent; leftOut: number }> {
  const { subject, entry } = await watchedSubject(id, deps);
  const newest = { before: null, from: null, count: MOST_RESENT };
  const places = (await deps.stores.subjects.entries.list([subject], newest)).reverse();
  const stored = await deps.stores.events.readAllAt(places);
  const sent = places.filter((_, index) => eventOf(stored[index] ?? null) !== null);
  const leftOut = Math.max(0, (entry.snapshot?.sequence ?? 0) - sent.length);
  return { replays: await resendPlaces(sent, options, deps), leftOut };
}

async function resendPlaces(
  places: readonly string[],
  { receivers, key, waitingFor = [] }: ResendOptions & { waitingFor?: readonly string[] },
  deps: OperationContext,
): Promise<Resent> {
  const { registry, replays } = deps.stores;
  const matching =
    receivers === null ? null : await Promise.all(receivers.map((name) => receiverNamed(name, deps)));
  const candidates = (matching ?? (await registry.receivers())).filter(({ removed }) => !removed);
  candidates.sort((one, other) => (one.name < other.name ? -1 : 1));
  const meant: { receiver: string; events: number }[] = [];
  for (const receiver of candidates) {
    const facts = await factsAt(places, receiver.name, deps.stores);
    const matched = await matchesOf(receiver, facts, { registry, directory: deps.directory });
    if (matched.length > 0) meant.push({ receiver: receiver.name, events: matched.length });
  }
  if (candidates.length === 0) {
    throw new RefusedError(
      'found no receiver in the config, expected one to send to; events are pulled from /events',
    );
  }
  if (places.length === 0) {
    throw new RefusedError(
      'found no event of it in the log, expected one: it has made none, or they are older than the retention',
    );
  }
  if (meant.length === 0 && waitingFor.length > 0) {
    const names = waitingFor
      .map(parseClaimKey)
      .map(({ subject, subscription }) => `${subscription} (${subject})`);
    throw new RefusedError(
      `found an event that waits for ${names.join(', ')}, which left the config, and no receiver of it to send to now; put it back, and the event is delivered by itself (intentwatch suspended)`,
    );
  }
  if (meant.length === 0) {
    const none = receivers === null ? 'no receiver' : `of ${receivers.join(', ')} none`;
    throw new RefusedError(
      `found ${none} that matches what would be sent, expected one that does (events, filter, subscription; and [] of a subscription notifies nobody)`,
    );
  }
  for (const { receiver } of meant) await refuseHeld(receiver, deps);
  const resent: Resent = [];
  for (const { receiver, events } of meant) {
    const replay = replayIdOf(key, receiver);
    await replays.requestPlaces(replay, { receiver, places });
    resent.push({ receiver, replay, events });
  }
  return resent;
}

/** The id of a replay. A request that is made twice with one key gets the same replay. */
function replayIdOf(key: string | null, receiver: string): string {
  return newReplayId(key === null ? undefined : `${key} ${receiver}`);
}

/** Reads a replay. Throws an UnknownError for one that does not exist. */
export async function readReplay(id: string, { stores }: OperationContext): Promise<z.infer<typeof REPLAY>> {
  const replay = await stores.replays.read(id);
  if (replay === null) throw new UnknownError(`found no replay ${id}, expected one within its retention`);
  const { receiver, state, cursor, places, opened, delivered, dead } = replay;
  return {
    id,
    receiver,
    state,
    readTo: places === null ? isoTime(Number(cursor.split('-')[0])) : null,
    opened,
    delivered,
    dead,
    ended: hasEnded(replay),
  };
}

function hasEnded({ state, opened, delivered, dead }: Replay): boolean {
  return state === 'opened' && delivered + dead >= opened;
}

/** Refuses a receiver that gets no attempts: the requester wants the resend now. */
async function refuseHeld(name: string, { stores }: OperationContext): Promise<void> {
  const { state } = await stores.receivers.condition(name);
  if (state === 'paused')
    throw new RefusedError(`${name} is paused; resume it first: intentwatch receivers resume ${name}`);
  if (isHeld({ state }))
    throw new RefusedError(`${name} is disabled; enable it first: intentwatch receivers enable ${name}`);
}

/** Finds a receiver by name, in this config or one before it. Throws with the known names. */
export async function receiverNamed(
  name: string,
  { stores: { registry } }: OperationContext,
): Promise<StoredReceiver> {
  return namedAmong(await registry.receivers(), name);
}

/** Finds a receiver by name among some. Throws with their names. */
export function namedAmong(receivers: readonly StoredReceiver[], name: string): StoredReceiver {
  const found = receivers.find((receiver) => receiver.name === name);
  if (found !== undefined) return found;
  const names = receivers.map((receiver) => receiver.name).sort();
  const expected = names.length === 0 ? 'a receiver of a daemon that has run' : `one of ${names.join(', ')}`;
  throw new UnknownError(`found the receiver "${name}", expected ${expected}`);
}
