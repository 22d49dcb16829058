import { isListed, type UnmatchedReason } from '../../domain/events/unmatched.ts';
import { parseClaimRoot } from '../../domain/subjects/claim.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import { loggedType } from '../../log.ts';
import type { StoredReceiver, StoredSubscription } from '../../store/definitions.ts';
import { type Ahead, BATCH, type HeldLease } from './follow.ts';
import { type Fact, readBatch } from './log-batch.ts';
import { matchFact, receiversOf } from './matches.ts';
import type { RelayParts } from './relay-parts.ts';

/** What decides whether a receiver gets an event. */
type Matching = {
  /** Those that are there, whatever their state: a paused one gets its events later. */
  receivers: ReadonlyMap<string, StoredReceiver>;
  subscriptions: ReadonlyMap<string, StoredSubscription>;
  directory: Directory;
};

/**
 * Counts the events of the log that no receiver gets, a batch further. It has a place of its own in the log, for receivers
 * stand at different places. Returns whether there is more to count at once.
 */
export async function countUnmatched(
  { receivers, ahead }: { receivers: readonly StoredReceiver[]; ahead: Ahead | null },
  { token }: HeldLease,
  { stores, directory, signals, log }: RelayParts,
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
      known?.subscriptions ?? (await registry.subscriptions(facts.flatMap(({ roots }) => roots ?? []))),
    directory,
  };
  // A later subscribers entry is no event of its own: the event was counted where it stands.
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

/** Why no receiver gets an event; null for one that a receiver gets. */
export function unmatchedReason(fact: Fact, matching: Matching): UnmatchedReason | null {
  const { receivers, subscriptions, directory } = matching;
  if (fact.roots === null) {
    const isMatched = receivers
      .values()
      .some((receiver) => matchFact({ receiver, fact, roots: null }, directory) !== null);
    if (isMatched) return null;
    return receivers.size === 0 ? 'pull-only' : 'filtered';
  }
  const rootsOf = new Map<string, string[]>();
  const live: (readonly string[])[] = [];
  for (const root of fact.roots) {
    const { subscription: of, receivers: narrowed } = parseClaimRoot(root);
    const subscription = subscriptions.get(of);
    if (subscription === undefined) continue;
    const names = receiversOf(subscription).filter((name) => narrowed?.includes(name) !== false);
    if (subscription.removedAtMs === null) live.push(names);
    for (const name of names) {
      const roots = rootsOf.get(name);
      if (roots === undefined) rootsOf.set(name, [root]);
      else roots.push(root);
    }
  }
  for (const [name, roots] of rootsOf) {
    const receiver = receivers.get(name);
    if (receiver !== undefined && matchFact({ receiver, fact, roots }, directory) !== null) return null;
  }
  // It waits for what is suspended, and is counted when that has ended.
  if (fact.withheld.length > 0) return null;
  if (live.length === 0) return 'not-in-config';
  const named = live.flat();
  if (named.some((name) => !receivers.has(name))) return 'no-receiver';
  return named.length > 0 ? 'filtered' : 'pull-only';
}
