import type { Event } from '../../domain/events/event.ts';
import { passesFilter, wantsType } from '../../domain/events/filter.ts';
import { parseClaimRoot } from '../../domain/subjects/subscription.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import type { StoredReceiver, StoredSubscription } from '../../store/definitions.ts';
import { operatorSubject } from '../../store/operator-event.ts';
import type { Registry } from '../../store/registry.ts';
import type { WaitingEvent } from '../../store/waiting-events.ts';
import type { Fact, GoneEvent } from './log-batch.ts';

/**
 * An event that a receiver matches: its place in the log, the claims that lead to the receiver, and the entry that states the
 * match; a subscribers entry is behind the event's. `isSuspended`: it waited until its claims were back.
 */
export type Match = { event: Event; entry: string; roots: string[]; at: string; isSuspended: boolean };

/** Sources for matching receivers and events: subscriptions, and the decimals of tokens for `minAmount`. */
export type MatchDeps = { registry: Registry; directory: Directory };

/** Returns the events, among some of the log, that a receiver matches, in order. */
export type MatchesOf = (receiver: StoredReceiver) => Match[];

/**
 * Reads the receivers of some events once, or uses `known` where they were read already. The returned function does no I/O.
 * After a reload moved an event's subject to another subscription, no claim of the event may lead to a receiver. Then the
 * claims that continue them lead to it.
 */
export async function matchFacts(
  facts: readonly Fact[],
  { registry, directory }: MatchDeps,
  known?: ReadonlyMap<string, StoredSubscription>,
): Promise<MatchesOf> {
  const all = facts.flatMap(({ roots }) => roots ?? []);
  const continuing = await registry.continuing(all);
  const subscriptions =
    known !== undefined && continuing.size === 0
      ? known
      : await registry.subscriptions([...all, ...[...continuing.values()].flat()]);
  const claimOf = claimsBy(subscriptions);
  const claimed = facts.map(({ roots }) => {
    if (roots === null) return null;
    const next = roots.flatMap((root) => continuing.get(root) ?? []);
    return { own: roots.map(claimOf), next: next.map(claimOf) };
  });
  return (receiver) => {
    const leading = (claims: readonly ParsedClaim[]): string[] =>
      claims.flatMap(({ root, has }) => (has(receiver) ? [root] : []));
    return facts.flatMap((fact, index) => {
      const claims = claimed[index] ?? null;
      const own = claims === null ? null : leading(claims.own);
      const roots = claims !== null && own?.length === 0 ? leading(claims.next) : own;
      return matchFact({ receiver, fact, roots }, directory) ?? [];
    });
  };
}

type ParsedClaim = { root: string; has: (receiver: StoredReceiver) => boolean };

/** Maps a subscription key to its claim. Few claims name most events of a batch: each is parsed once. */
function claimsBy(subscriptions: ReadonlyMap<string, StoredSubscription>): (root: string) => ParsedClaim {
  const receivers = new Map(
    [...subscriptions].map(([name, subscription]) => {
      const all = new Set([...subscription.receivers, ...subscription.awayReceivers]);
      return [name, { current: new Set(receiversOf(subscription)), all }] as const;
    }),
  );
  return (root) => {
    const { subscription, receivers: narrowed } = parseClaimRoot(root);
    const known = receivers.get(subscription);
    return {
      root,
      has: ({ name, removed }) =>
        (removed ? known?.all : known?.current)?.has(name) === true && narrowed?.includes(name) !== false,
    };
  };
}

/** Returns, per receiver and in order, the events that expired from the log before they were released to it. */
export async function goneFor(
  gone: readonly GoneEvent[],
  registry: Registry,
): Promise<(receiver: StoredReceiver) => GoneEvent[]> {
  const all = gone.flatMap(({ roots }) => roots);
  const continuing = await registry.continuing(all);
  const claimOf = claimsBy(await registry.subscriptions([...all, ...[...continuing.values()].flat()]));
  const claimed = gone.map((event) => ({
    event,
    claims: event.roots.flatMap((root) => [root, ...(continuing.get(root) ?? [])]).map(claimOf),
  }));
  return (receiver) =>
    claimed.flatMap(({ event, claims }) => (claims.some(({ has }) => has(receiver)) ? [event] : []));
}

/** Events whose subscription key leads to none of the receivers named when it was logged, or waited. It may be suspended. */
export function unledBy(
  facts: readonly Fact[],
  receivers: readonly StoredReceiver[],
  matchesFor: MatchesOf,
): WaitingEvent[] {
  const doubtful = facts.flatMap((fact) => {
    const roots = (fact.roots ?? []).map((root) => ({ root, narrowed: parseClaimRoot(root).receivers }));
    const some = roots.filter(({ narrowed }) => narrowed !== null || fact.isSuspended);
    return some.length === 0 ? [] : [{ fact, roots: some }];
  });
  if (doubtful.length === 0) return [];
  const led = new Map(
    receivers.map((receiver) => [receiver.name, new Set(matchesFor(receiver).map(({ at }) => at))]),
  );
  return doubtful.flatMap(({ fact: { event, place, at }, roots }) => {
    const unled = [...led].flatMap(([name, places]) => (places.has(at) ? [] : [name]));
    return roots
      .filter(({ narrowed }) => unled.some((name) => narrowed?.includes(name) !== false))
      .map(({ root }) => ({ entry: place, eventId: event.id, root }));
  });
}

/** Receivers of a subscription's events; after its removal also those that were removed before and are back. */
export function receiversOf({
  receivers,
  awayReceivers,
  removedAtMs,
}: StoredSubscription): readonly string[] {
  return removedAtMs === null ? receivers : [...receivers, ...awayReceivers];
}

/** The events, among some of the log, that one receiver matches, in order. */
export async function matchesOf(
  receiver: StoredReceiver,
  facts: readonly Fact[],
  { registry, directory }: MatchDeps,
): Promise<Match[]> {
  return (await matchFacts(facts, { registry, directory }))(receiver);
}

/** The match of a receiver and a fact, or null. `roots` are the claims that lead to it; null for an operator's event. */
export function matchFact(
  { receiver, fact, roots }: { receiver: StoredReceiver; fact: Fact; roots: string[] | null },
  directory: Directory,
): Match | null {
  const { event, place, at, withheld } = fact;
  if (roots?.length === 0 || !wantsType(receiver.events, event.type)) return null;
  if (roots === null) {
    // An event about a receiver goes to the other receivers.
    const isItself = event.data.subject.id === operatorSubject('receiver', receiver.name);
    return isItself ? null : { event, entry: place, roots: [], at, isSuspended: false };
  }
  const wanted = passesFilter(receiver.filter, { record: event.data.record, roots }, directory);
  const isSuspended = fact.isSuspended || roots.every((root) => withheld.includes(root));
  return wanted ? { event, entry: place, roots, at, isSuspended } : null;
}
