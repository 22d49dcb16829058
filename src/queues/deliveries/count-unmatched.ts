import { isListed, type UnmatchedReason } from '../../domain/events/event-types.ts';
import { parseClaimKey } from '../../domain/subjects/subscription.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import { loggedType } from '../../log.ts';
import type { StoredReceiver, StoredSubscription } from '../../store/definitions.ts';
import { type Ahead, BATCH, type HeldLease } from './follow.ts';
import { type Fact, matchFact, readBatch, receiversOf } from './matches.ts';
import type { RelayContext } from './relay-context.ts';

type Matching = {
  /** Receivers that exist, whatever their state: a paused one gets its events later. */
  receivers: ReadonlyMap<string, StoredReceiver>;
  subscriptions: ReadonlyMap<string, StoredSubscription>;
  directory: Directory;
};

/**
 * Counts a batch of events that no receiver gets, from a place of its own, as receivers' places differ. Returns the place that it
 * reached, null when another process relays now, and whether there is more.
 */
export async function countUnmatched(
  { receivers, ahead, from }: { receivers: readonly StoredReceiver[]; ahead: Ahead | null; from: string },
  { token }: HeldLease,
  { stores, directory, signals, log }: RelayContext,
): Promise<{ more: boolean; reached: string | null }> {
  const { events, registry, unmatched } = stores;
  const prefetched = ahead?.after === from ? ahead : null;
  const { entries, more } = prefetched?.piece ?? (await events.scan(from, BATCH));
  const { facts, last, isCut } = await readBatch(entries, events);
  if (last === null) return { more: false, reached: from };
  const matching: Matching = {
    receivers: new Map(receivers.map((receiver) => [receiver.name, receiver])),
    subscriptions:
      prefetched?.definitions.subscriptions ??
      (await registry.subscriptions(facts.flatMap(({ claimKeys }) => claimKeys ?? []))),
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
  if (!(await unmatched.advance(token, { from, to: last, listed }))) return { more: false, reached: null };
  for (const { fact, reason } of found) {
    signals.emit('event.unmatched', { reason });
    const { event } = fact;
    const eventType = loggedType(event.type, event.data.status);
    const line = { eventId: event.id, eventType, subject: event.data.subject.id, reason };
    log[isListed(reason) ? 'info' : 'debug'](line, 'event.unmatched');
  }
  return { more: more || isCut, reached: last };
}

/** The reason for which no receiver gets an event; null when a receiver gets it. */
export function unmatchedReason(fact: Fact, matching: Matching): UnmatchedReason | null {
  const { receivers, subscriptions, directory } = matching;
  if (fact.claimKeys === null) {
    const isMatched = receivers
      .values()
      .some((receiver) => matchFact({ receiver, fact, claimKeys: null }, directory) !== null);
    if (isMatched) return null;
    return receivers.size === 0 ? 'pull-only' : 'filtered';
  }
  const keysOf = new Map<string, string[]>();
  const live: (readonly string[])[] = [];
  for (const key of fact.claimKeys) {
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
    if (receiver !== undefined && matchFact({ receiver, fact, claimKeys }, directory) !== null) return null;
  }
  // It waits for suspended claims, and is counted when their suspension ends.
  if (fact.withheld.length > 0) return null;
  if (live.length === 0) return 'not-in-config';
  const named = live.flat();
  if (named.some((name) => !receivers.has(name))) return 'no-receiver';
  return named.length > 0 ? 'filtered' : 'pull-only';
}
