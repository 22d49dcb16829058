import { deliveryId } from '../../domain/events/event.ts';
import { MOST_OPEN } from '../../store/backlog.ts';
import type { StoredReceiver, StoredSubscription } from '../../store/definitions.ts';
import type { LogPiece } from '../../store/event-log.ts';
import { compareEntries } from '../../store/log-entry.ts';
import type { Standing } from '../../store/relay-lease.ts';
import { type GoneEvent, type LogBatch, NewerEntryError, readBatch } from './log-batch.ts';
import { goneFor, type Match, type MatchesOf, matchFacts, unledBy } from './matches.ts';
import type { RelayContext } from './relay-context.ts';

/** The number of entries of the log receivers are taken along at once. */
export const BATCH = 200;

/** The number of deliveries that are opened side by side, over all receivers: what is on its way to Redis stands in memory. */
const MOST_AT_ONCE = 2_000;

/** A receiver is taken along while this many more of its deliveries may be opened: a few at a time cost as much as many. */
const LEAST_ROOM = 100;

/** The lease under which a round is made. `isHeld` says whether it still is; `failed` hears of a receiver that could not be taken along. */
export type HeldLease = {
  token: string;
  isHeld: () => boolean;
  failed: (receiver: string, error: unknown) => void;
};

/** What stands after an entry of the log and was read already, up to a batch, with the subscriptions that it names. */
export type Ahead = {
  after: string;
  piece: LogPiece;
  subscriptions: ReadonlyMap<string, StoredSubscription>;
};

/** Receivers at one place of the log, each with the number of its open deliveries; and what is known to stand behind it. */
type Group = {
  cursor: string;
  ahead: Ahead | null;
  receivers: readonly { receiver: StoredReceiver; open: number }[];
};

/** How far receivers have come: where they stand, and whether the log goes on behind it. */
type Followed = { reached: string; more: boolean };

/** True when a receiver is taken along: it is not, and its cursor stands still, while it has as many open deliveries as may be. */
export function hasRoom({ open }: Pick<Standing, 'open'>): boolean {
  return MOST_OPEN - open >= LEAST_ROOM;
}

/**
 * Takes receivers that stand at one place of the log a batch further. The batch is read and taken apart once for all;
 * each receiver's deliveries are opened, and its cursor moved, in one step. Returns the entry that they stand at then, and
 * whether there is more behind it; `fenced` when another process relays now.
 */
export async function follow(
  { cursor, ahead, receivers }: Group,
  { token, isHeld, failed }: HeldLease,
  parts: RelayContext,
): Promise<Followed | 'fenced' | NewerEntryError> {
  const { events, lease } = parts.stores;
  const { entries, more } = ahead?.piece ?? (await events.after(cursor, BATCH));
  const batch = await readBatch(entries, events);
  if (batch.last === null) {
    return batch.stoppedBy === null ? { reached: cursor, more: false } : new NewerEntryError(batch.stoppedBy);
  }
  await quarantine(batch, parts);
  const matchesFor = await matchBatch(
    batch,
    { receivers: receivers.map(({ receiver }) => receiver), known: ahead?.subscriptions },
    parts,
  );
  const lostBy = await goneFor(batch.gone, parts.stores.registry);
  const passed: string[] = [];
  let atOnce: Promise<boolean>[] = [];
  let opened = 0;
  let isBehind = false;
  for (const { receiver, open } of receivers) {
    const all = matchesFor(receiver);
    const matched = all.slice(0, MOST_OPEN - open);
    const to: string = matched.length === all.length ? batch.last : placeOf(matched, cursor);
    isBehind ||= to !== batch.last;
    const lost = lostBy(receiver).filter(({ at }) => compareEntries(at, to) <= 0);
    if (!(await noteLost(receiver, { lost, cursor, to }, parts))) return 'fenced';
    if (all.length === 0) {
      passed.push(receiver.name);
      continue;
    }
    const order = { token, receiver, matched, replay: null, cursor: to };
    atOnce.push(
      openDeliveries(order, parts).catch((error) => {
        failed(receiver.name, error);
        // It is taken along again when its time has come.
        return true;
      }),
    );
    opened += matched.length;
    if (opened < MOST_AT_ONCE) continue;
    if ((await Promise.all(atOnce)).includes(false) || !isHeld()) return 'fenced';
    atOnce = [];
    opened = 0;
  }
  if ((await Promise.all(atOnce)).includes(false)) return 'fenced';
  if (passed.length > 0 && !(await lease.advance(token, passed, batch.last))) return 'fenced';
  // One that stood still before what only a newer version can read is notified of that by the next round.
  return { reached: batch.last, more: more || batch.isCut || batch.stoppedBy !== null || isBehind };
}

/**
 * Finds out which receivers match the events of a batch. An event that a reload has left without a receiver of its root before it was
 * matched waits again where the root is suspended.
 */
async function matchBatch(
  { facts }: LogBatch,
  { receivers, known }: { receivers: readonly StoredReceiver[]; known: Ahead['subscriptions'] | undefined },
  { stores: { registry }, directory }: RelayContext,
): Promise<MatchesOf> {
  const matchesFor = await matchFacts(facts, { registry, directory }, known);
  const unled = unledBy(facts, receivers, matchesFor);
  if (unled.length === 0 || (await registry.suspensions.waitAgain(unled)) === 0) return matchesFor;
  // A root that is in the config may have come back after the definitions were read.
  return matchFacts(facts, { registry, directory });
}

/**
 * Notes for the operator what a receiver does not get as the retention has ended while it waited, before its cursor goes past. False
 * when its cursor was moved meanwhile.
 */
async function noteLost(
  { name }: StoredReceiver,
  { lost, cursor, to }: { lost: readonly GoneEvent[]; cursor: string; to: string },
  { stores: { dropped }, signals }: RelayContext,
): Promise<boolean> {
  const from = lost.length === 0 ? null : await dropped.reached(name);
  const ids = lost.flatMap(({ at, eventId }) =>
    from === null || compareEntries(at, from) > 0 ? [eventId] : [],
  );
  if (ids.length === 0) return true;
  const isNoted = await dropped.noteBehind(name, { cursor, from, to, reason: 'retention' }, ids);
  if (isNoted) signals.emit('receiver.events-dropped', { receiver: name, count: ids.length });
  return isNoted;
}

/** The entry up to which some events were taken. An entry names one event: none is cut in two. */
function placeOf(matched: readonly Match[], otherwise: string): string {
  return matched.at(-1)?.at ?? otherwise;
}

/** Keeps what nobody can read, each once for all receivers, before a cursor goes past it. */
async function quarantine({ unreadable }: LogBatch, { stores, signals, log }: RelayContext): Promise<void> {
  for (const entry of unreadable) {
    if (!(await stores.quarantine.add(entry))) continue;
    signals.emit('relay.quarantined', { entry: entry.id });
    log.error({ entry: entry.id, reason: entry.reason }, 'relay.quarantined');
  }
}

/**
 * Whose deliveries are opened, under which fencing token, for which replay if it is one, and where the receiver's cursor
 * is then (null: where it was).
 */
type OpeningOrder = {
  token: string;
  receiver: StoredReceiver;
  matched: readonly Match[];
  replay: string | null;
  cursor: string | null;
};

/**
 * Opens deliveries of a receiver in the order of the log, and moves its cursor, in one step. What stands is absorbed: it
 * can be done again. False when another process relays now.
 */
export async function openDeliveries(
  { token, receiver, matched, replay, cursor }: OpeningOrder,
  { stores: { deliveries }, sender, signals }: RelayContext,
): Promise<boolean> {
  const { name, ordering } = receiver;
  const results = await deliveries.open(token, {
    receiver: name,
    deliveries: matched.map(({ event, entry, roots, isSuspended }) => ({
      id: deliveryId(event.id, replay),
      entry,
      roots,
      isSuspended,
      subject: ordering === 'subject' ? event.data.subject.id : null,
    })),
    replay,
    cursor,
    process: sender.id,
  });
  if (results === null) return false;
  for (const [index, { event }] of matched.entries()) {
    if (results[index]?.startsWith('opened') !== true) continue;
    signals.emit('delivery.opened', { receiver: name, eventId: event.id, eventType: event.type });
  }
  if (results.some((result) => result === 'opened' || result === 'open')) sender.wake(name);
  return true;
}
