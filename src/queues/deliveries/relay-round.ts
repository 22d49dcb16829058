import type { Logger } from 'pino';
import { isListed, type UnmatchedReason } from '../../domain/events/unmatched.ts';
import { parseClaimKey } from '../../domain/subjects/subscription.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import { loggedType } from '../../log.ts';
import type { StoredReceiver, StoredSubscription } from '../../store/definitions.ts';
import { compareEntries } from '../../store/log-entry.ts';
import { isHeld } from '../../store/receivers.ts';
import type { ReceiverProgress } from '../../store/relay-lease.ts';
import { type Ahead, BATCH, follow, type HeldLease, hasCapacity } from './follow.ts';
import { type Fact, NewerEntryError, readBatch } from './log-batch.ts';
import { matchFact, receiversOf } from './matches.ts';
import type { RelayContext, RelayStores } from './relay-context.ts';
import { takeReplay } from './replays.ts';

type ResumptionDeps = { stores: Pick<RelayStores, 'receivers' | 'deliveries' | 'backlog'>; log: Logger };

/** Deliveries that are opened or queued again in one step, so that neither Redis nor another receiver waits long. */
const RESUMPTION_BATCH = 500;

/**
 * Takes an `enabling` receiver one step further, under the relay's fencing token. Returns true when there is more to do.
 *
 * It opens the dead letters of the failing span again, then queues the deliveries that wait for another try. Only then are
 * attempts made and the cursor goes on. Turns are those of the opening: the oldest goes first. Each step can be repeated, so
 * that the next relay goes on after a crash.
 */
export async function resume(
  token: string,
  name: string,
  { stores: { receivers, deliveries, backlog }, log }: ResumptionDeps,
): Promise<boolean> {
  const { since } = await receivers.condition(name);
  const dead = since === null ? [] : await backlog.dead(name, { sinceMs: since, count: RESUMPTION_BATCH });
  if (dead.length > 0) return (await deliveries.renew(token, name, dead)) !== null;
  const came = await receivers.resume(token, name, RESUMPTION_BATCH);
  if (came === 'enabled') log.info({ receiver: name }, 'receiver.enabled');
  return came !== 'held';
}

/** Input of a round: receivers by name (`all`: also just failed ones), their states, replays, and entries behind most cursors. */
export type RoundView = {
  known: ReadonlyMap<string, StoredReceiver>;
  all: readonly StoredReceiver[];
  standings: readonly ReceiverProgress[];
  replays: ReadonlyMap<string, string>;
  ahead: Ahead | null;
};

/** Result of a round: more to do at once, an accepting receiver without slots, and the entry all others reached (or null). */
export type Round = { more: boolean; full: boolean; reached: string | null };

export const IDLE: Round = { more: false, full: false, reached: null };

/**
 * Makes one round over all receivers: continues those that are being enabled, advances the others along the event log (reads
 * it, matches receivers with events, opens the deliveries), opens resends, and counts the events that no receiver gets.
 */
export async function relayRound(view: RoundView, lease: HeldLease, deps: RelayContext): Promise<Round> {
  const open = view.standings.filter((progress) => !isHeld(progress));
  const enabling = view.standings.filter(({ state }) => state === 'enabling');
  let moved = false;
  for (const { name } of enabling) {
    if (!lease.isHeld()) return { ...IDLE, more: moved };
    moved = (await each(name, lease, () => resume(lease.token, name, deps))) || moved;
  }
  const { more, reached, stopped } = await followLog({ ...view, standings: open }, lease, deps);
  const replayed = await replay({ ...view, standings: open }, lease, deps);
  const counting =
    lease.isHeld() && (await countUnmatched({ receivers: view.all, ahead: view.ahead }, lease, deps));
  if (stopped !== null && !moved && !more && !replayed) throw stopped;
  const full = open.some((progress) => !hasCapacity(progress) && progress.state === 'ok');
  return { more: moved || more || counting || replayed, full, reached };
}

/** Advances receivers along the log: those at the same place together, so that their entries are read once for all. */
async function followLog(
  { standings, known, ahead }: RoundView,
  lease: HeldLease,
  deps: RelayContext,
): Promise<{ more: boolean; reached: string | null; stopped: NewerEntryError | null }> {
  let more = false;
  let reached: string | null = null;
  let stopped: NewerEntryError | null = null;
  for (const [cursor, group] of Map.groupBy(standings.filter(hasCapacity), ({ cursor }) => cursor)) {
    const receivers = group.flatMap(({ name, open }) => {
      const receiver = known.get(name);
      return receiver === undefined ? [] : [{ receiver, open }];
    });
    const read = ahead?.after === cursor ? ahead : null;
    const came = await follow({ cursor, receivers, ahead: read }, lease, deps);
    // The others advance as far as they can be read before the lease is released.
    if (came instanceof NewerEntryError) stopped = came;
    else if (came === 'fenced') return { more: false, reached: null, stopped: null };
    else {
      more ||= came.more;
      if (reached === null || compareEntries(came.reached, reached) < 0) reached = came.reached;
    }
  }
  return { more, reached, stopped };
}

/** Advances the replays under way by a batch. Returns true when there is more to do at once. */
async function replay(
  { standings, known, replays }: RoundView,
  lease: HeldLease,
  deps: RelayContext,
): Promise<boolean> {
  const { token } = lease;
  let moved = false;
  for (const { name } of replays.size === 0 ? [] : standings) {
    const id = replays.get(name);
    const receiver = known.get(name);
    if (id === undefined || receiver === undefined) continue;
    if (!lease.isHeld()) return moved;
    moved = (await each(name, lease, () => takeReplay({ token, receiver, id }, deps))) || moved;
  }
  return moved;
}

/** Works on one receiver. Its error holds up no other. */
async function each(name: string, { failed }: HeldLease, work: () => Promise<boolean>): Promise<boolean> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NewerEntryError) throw error;
    failed(name, error);
    return false;
  }
}

type Matching = {
  /** Receivers that exist, whatever their state: a paused one gets its events later. */
  receivers: ReadonlyMap<string, StoredReceiver>;
  subscriptions: ReadonlyMap<string, StoredSubscription>;
  directory: Directory;
};

/** Counts a batch of events that no receiver gets, at its own place, as receivers' places differ. True when there is more. */
async function countUnmatched(
  { receivers, ahead }: { receivers: readonly StoredReceiver[]; ahead: Ahead | null },
  { token }: HeldLease,
  { stores, directory, signals, log }: RelayContext,
): Promise<boolean> {
  const { events, registry, unmatched } = stores;
  const from = await unmatched.place();
  const known = ahead?.after === from ? ahead : null;
  const { entries, more } = known?.piece ?? (await events.after(from, BATCH));
  const { facts, last, isCut } = await readBatch(entries, events);
  if (last === null) return false;
  const matching: Matching = {
    receivers: new Map(receivers.map((receiver) => [receiver.name, receiver])),
    subscriptions:
      known?.subscriptions ??
      (await registry.subscriptions(facts.flatMap(({ roots: claimKeys }) => claimKeys ?? []))),
    directory,
  };
  // A later subscribers entry is no event of its own: the event was counted at its own entry.
  const found = facts.flatMap((fact) => {
    const reason = fact.at === fact.place ? unmatchedReason(fact, matching) : null;
    return reason === null ? [] : [{ fact, reason }];
  });
  const listed = found.flatMap(({ fact, reason }) =>
    isListed(reason) ? [{ entry: fact.place, reason }] : [],
  );
  if (!(await unmatched.advance(token, { from, to: last, listed }))) return false;
  for (const { fact, reason } of found) {
    signals.emit('event.unmatched', { reason });
    const { event } = fact;
    const eventType = loggedType(event.type, event.data.status);
    const line = { eventId: event.id, eventType, subject: event.data.subject.id, reason };
    log[isListed(reason) ? 'info' : 'debug'](line, 'event.unmatched');
  }
  return more || isCut;
}

/** The reason for which no receiver gets an event; null when a receiver gets it. */
export function unmatchedReason(fact: Fact, matching: Matching): UnmatchedReason | null {
  const { receivers, subscriptions, directory } = matching;
  if (fact.roots === null) {
    const isMatched = receivers
      .values()
      .some((receiver) => matchFact({ receiver, fact, roots: null }, directory) !== null);
    if (isMatched) return null;
    return receivers.size === 0 ? 'pull-only' : 'filtered';
  }
  const keysOf = new Map<string, string[]>();
  const live: (readonly string[])[] = [];
  for (const key of fact.roots) {
    const { subscription: of, receivers: narrowed } = parseClaimKey(key);
    const subscription = subscriptions.get(of);
    if (subscription === undefined) continue;
    const names = receiversOf(subscription).filter((name) => narrowed?.includes(name) !== false);
    if (subscription.removedAtMs === null) live.push(names);
    for (const name of names) {
      const claimKeys = keysOf.get(name);
      if (claimKeys === undefined) keysOf.set(name, [key]);
      else claimKeys.push(key);
    }
  }
  for (const [name, claimKeys] of keysOf) {
    const receiver = receivers.get(name);
    if (receiver !== undefined && matchFact({ receiver, fact, roots: claimKeys }, directory) !== null)
      return null;
  }
  // It waits for suspended claims, and is counted when their suspension ends.
  if (fact.withheld.length > 0) return null;
  if (live.length === 0) return 'not-in-config';
  const named = live.flat();
  if (named.some((name) => !receivers.has(name))) return 'no-receiver';
  return named.length > 0 ? 'filtered' : 'pull-only';
}
