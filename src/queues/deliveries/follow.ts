import { deliveryId } from '../../domain/events/event.ts';
import { MOST_OPEN } from '../../store/backlog.ts';
import type { StoredReceiver } from '../../store/definitions.ts';
import type { Claims, RelayMemory } from '../../store/deliveries.ts';
import type { LogPiece } from '../../store/event-log.ts';
import { type CursorMove, compareEntries, writtenEntry } from '../../store/log-entry.ts';
import {
  type ClaimDefinitions,
  type GoneEvent,
  goneFor,
  type LogBatch,
  type Match,
  type MatchesOf,
  matchFacts,
  NewerEntryError,
  readBatch,
  unledBy,
} from './matches.ts';
import type { RelayContext } from './relay-context.ts';

/** Log entries by which receivers advance at once. */
export const BATCH = 200;

/** Places of the log that are followed at once: one that is far behind holds up no other. */
export const PLACES_AT_ONCE = 4;

/** Deliveries of one place that are opened concurrently, over all receivers. Deliveries on their way to Redis are in memory. */
const MOST_AT_ONCE = 500;

/** A receiver advances while it may open this many more deliveries: a few at a time cost as much as many. */
const LEAST_FREE = 100;

/** Open deliveries of a receiver beyond which it does not advance. */
export const MOST_TO_ADVANCE = MOST_OPEN - LEAST_FREE;

/** Lease of a relay round. `isHeld` is true while it is held; `failed` is called for a receiver that could not advance. */
export type HeldLease = {
  token: string;
  isHeld: () => boolean;
  failed: (receiver: string, error: unknown) => void;
};

/** Entries after a place of the log that were read already, up to a batch, with the definitions that their claims lead to. */
export type Ahead = { after: string; piece: LogPiece; definitions: ClaimDefinitions };

type CursorGroup = {
  cursor: string;
  /** True where events behind the cursor are counted, and may be listed, as events that no receiver gets. */
  isCounted?: boolean;
  ahead: Ahead | null;
  receivers: readonly { receiver: StoredReceiver; open: number }[];
};

type FollowResult = { reached: string; more: boolean };

/** True when a receiver may advance. With the most open deliveries it does not, and its cursor does not move. */
export function hasCapacity({ open }: { open: number }): boolean {
  return open <= MOST_TO_ADVANCE;
}

/**
 * Advances receivers at one place of the log by a batch. The batch is read and parsed once for all; opening each receiver's
 * deliveries and moving its cursor is one step. Returns the entry they reached, and whether there is more behind it; `fenced`
 * when another process relays now.
 */
export async function follow(
  { cursor, isCounted = false, ahead, receivers }: CursorGroup,
  { token, isHeld, failed }: HeldLease,
  deps: RelayContext,
): Promise<FollowResult | 'fenced' | NewerEntryError> {
  const { events, lease } = deps.stores;
  const { entries, more } = ahead?.piece ?? (await events.after(cursor, BATCH));
  const batch = await readBatch(entries, events);
  if (batch.last === null) {
    return batch.stoppedBy === null ? { reached: cursor, more: false } : new NewerEntryError(batch.stoppedBy);
  }
  await quarantine(batch, deps);
  const matchesFor = await matchBatch(
    batch,
    { receivers: receivers.map(({ receiver }) => receiver), defined: ahead?.definitions },
    deps,
  );
  const lostBy = await goneFor(batch.gone, deps.stores.registry);
  const passed: string[] = [];
  /** Steps in the order of their ends: they share a connection. */
  const steps: { done: Promise<boolean>; size: number }[] = [];
  let opening = 0;
  let isBehind = false;
  for (const { receiver, open } of receivers) {
    const all = matchesFor(receiver);
    const gone = lostBy(receiver);
    // Only entries without an open match before them are noted: the cursor moves past all up to it.
    const isFirst = ({ at }: GoneEvent): boolean => all[0] === undefined || compareEntries(at, all[0].at) < 0;
    const next = gone.find((one) => !isFirst(one));
    const some = next === undefined ? all : all.filter(({ at }) => compareEntries(at, next.at) < 0);
    const matched = some.slice(0, MOST_OPEN - open);
    const isWhole = next === undefined && matched.length === all.length;
    const to: string = isWhole ? batch.last : placeOf(matched, cursor);
    isBehind ||= to !== batch.last;
    const lost = gone.filter(isFirst);
    const from = lost.length === 0 ? cursor : all.length === 0 ? to : (lost.at(-1)?.at ?? cursor);
    try {
      if (lost.length > 0 && !(await noteLost(receiver, lost, { from: cursor, to: from }, deps))) {
        isBehind = true;
        continue;
      }
    } catch (error) {
      failed(receiver.name, error);
      isBehind = true;
      continue;
    }
    if (all.length === 0) {
      if (lost.length === 0) passed.push(receiver.name);
      continue;
    }
    const order = { token, receiver, matched, replay: null, cursor: { from, to } };
    const listed = isCounted ? matched.map(({ entry }) => entry) : [];
    const done = deps.stores.unmatched
      .remove(listed)
      .then(() => openDeliveries(order, deps))
      .then(
        (came) => came !== null,
        (error) => {
          failed(receiver.name, error);
          // It advances again when its time has come.
          return true;
        },
      );
    steps.push({ done, size: matched.length });
    opening += matched.length;
    while (opening >= MOST_AT_ONCE) {
      const step = steps.shift();
      opening -= step?.size ?? opening;
      if ((await step?.done) !== false && isHeld()) continue;
      await Promise.all(steps.map((one) => one.done));
      return 'fenced';
    }
  }
  if ((await Promise.all(steps.map((step) => step.done))).includes(false)) return 'fenced';
  if (passed.length > 0 && !(await lease.advance(token, passed, { from: cursor, to: batch.last })))
    return 'fenced';
  // The next round reports a receiver that stopped before an entry that only a newer version can read.
  return { reached: batch.last, more: more || batch.isCut || batch.stoppedBy !== null || isBehind };
}

/**
 * Matches the receivers with the events of a batch. A reload may remove the last receiver of an event's subscription key
 * before the event is matched. Where that key is suspended, the event waits again.
 */
async function matchBatch(
  { facts }: LogBatch,
  { receivers, defined }: { receivers: readonly StoredReceiver[]; defined: ClaimDefinitions | undefined },
  { stores: { registry }, directory }: RelayContext,
): Promise<MatchesOf> {
  const seen = new Set<string>();
  for (let definitions = defined; ; definitions = undefined) {
    const matchesFor = await matchFacts(facts, { registry, directory }, definitions);
    const unled = unledBy(facts, receivers, matchesFor).filter(
      ({ entry, key }) => !seen.has(`${entry} ${key}`),
    );
    for (const { entry, key } of unled) seen.add(`${entry} ${key}`);
    // A subscription key in the config may have come back, or been removed, after the definitions were read.
    if (unled.length === 0 || (await registry.suspensions.waitAgain(unled)) === 0) return matchesFor;
  }
}

/** Notes the events that a receiver loses to the retention, and moves its cursor past them. False when the cursor has moved. */
async function noteLost(
  { name }: StoredReceiver,
  lost: readonly GoneEvent[],
  move: CursorMove,
  { stores: { dropped }, signals }: RelayContext,
): Promise<boolean> {
  const ids = lost.map(({ eventId }) => eventId);
  const count = await dropped.noteBehind(name, { ...move, reason: 'retention' }, ids);
  if (count !== null && count > 0) signals.emit('receiver.events-dropped', { receiver: name, count });
  return count !== null;
}

/** The last entry whose events were opened. An entry names one event, so none is split. */
function placeOf(matched: readonly Match[], otherwise: string): string {
  return matched.at(-1)?.at ?? otherwise;
}

/** Quarantines unreadable entries, each once for all receivers, before a cursor moves past it. */
async function quarantine({ unreadable }: LogBatch, { stores, signals, log }: RelayContext): Promise<void> {
  for (const entry of unreadable) {
    if (!(await stores.quarantine.add(entry))) continue;
    signals.emit('relay.quarantined', { entry: entry.id });
    log.error({ entry: entry.id, reason: entry.reason }, 'relay.quarantined');
  }
}

/**
 * Deliveries to open: their receiver, fencing token and replay (null: none), the receiver's new cursor (null: unchanged), and what
 * the relay remembers (null: it has just read everything).
 */
type OpeningPlan = {
  token: string;
  receiver: StoredReceiver;
  matched: readonly Match[];
  replay: string | null;
  cursor: CursorMove | null;
  memory?: RelayMemory | null;
};

/**
 * Opens deliveries of a receiver in the order of the log and moves its cursor, in one step. Existing deliveries are absorbed,
 * so it can be repeated. Where this process may send more now, it claims them in the same step. Returns the ids of the entries that
 * were expected; null when another process relays now, or the cursor or what the relay remembers has changed.
 */
export async function openDeliveries(
  { token, receiver, matched, replay, cursor, memory = null }: OpeningPlan,
  { stores: { deliveries, events }, sender, signals }: RelayContext,
): Promise<readonly string[] | null> {
  const { name, ordering } = receiver;
  const opening = {
    receiver: name,
    deliveries: matched.map(({ event, entry, claimKeys, isSuspended }) => ({
      id: deliveryId(event.id, replay),
      entry,
      claimKeys,
      isSuspended,
      subject: ordering === 'subject' ? event.data.subject.id : null,
    })),
    replay,
    cursor,
    process: sender.id,
  };
  const listener = sender.listener(name);
  const order = listener?.order() ?? null;
  let claims: Claims | null = null;
  try {
    const opened = await deliveries.open(token, opening, { order, memory });
    if (opened?.isCurrent !== true) return null;
    claims = opened.claims;
    const { results, entries } = opened;
    // The claimed deliveries find their events in memory. Another receiver's step may have read them.
    for (const [index, id] of entries.entries()) {
      const { entry } = memory?.expected[index] ?? {};
      if (entry === undefined || events.cached(id, entry.event.id) !== null) continue;
      events.readOwn(writtenEntry(id, entry));
    }
    for (const [index, { event }] of matched.entries()) {
      if (results[index]?.startsWith('opened') !== true) continue;
      signals.emit('delivery.opened', { receiver: name, eventId: event.id, eventType: event.type });
    }
    const isNew = results.some((result) => result === 'opened' || result === 'open');
    if (order === null && isNew) listener?.wake();
    return entries;
  } finally {
    if (order !== null) listener?.offer(claims);
    if (order !== null && claims === null) listener?.wake();
  }
}
