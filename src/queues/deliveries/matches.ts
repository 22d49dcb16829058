import type { Event } from '../../domain/events/event.ts';
import { passesFilter, wantsType } from '../../domain/events/filter.ts';
import { parseClaimKey } from '../../domain/subjects/subscription.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import type { JoinedAt, StoredReceiver, StoredSubscription } from '../../store/definitions.ts';
import type { EventLog } from '../../store/event-log.ts';
import {
  compareEntries,
  eventOf,
  isOfNewerVersion,
  type LogEntry,
  type UnreadableEntry,
} from '../../store/log-entry.ts';
import { operatorSubject } from '../../store/operator-event.ts';
import type { Continuing, Registry } from '../../store/registry.ts';
import type { RawEntry } from '../../store/undelivered.ts';
import type { WaitingEvent } from '../../store/waiting-events.ts';

/**
 * An event of the log with its place and its matching claims; null for the operator's events. `at` is the entry that states
 * the match; a subscribers entry is behind the event's. `withheld` are the suspended claims for which it waited.
 * `isSuspended`: it waited, and these are the claims that are back.
 */
export type Fact = {
  event: Event;
  place: string;
  claimKeys: readonly string[] | null;
  at: string;
  withheld: readonly string[];
  isSuspended: boolean;
};

/** A fact for a receiver that gets all events: with the claims for which it waited. */
export function wholeFact(fact: Fact): Fact {
  if (fact.claimKeys === null || fact.withheld.length === 0) return fact;
  return { ...fact, claimKeys: [...fact.claimKeys, ...fact.withheld] };
}

/** An event that was released to claims, at an entry, after it had expired from the log. */
export type GoneEvent = { at: string; eventId: string; claimKeys: readonly string[] };

/**
 * The content of some log entries. `read` and `last` state how far they were read. `unreadable` are entries that no version
 * can read. `gone` are entries whose event expired from the log while it waited. `stoppedBy` is the entry behind `last` that
 * only a newer version can read. `isCut`: it ends with `last` for its size, and more of these entries can be read.
 */
export type LogBatch = {
  facts: Fact[];
  unreadable: (RawEntry & { reason: string })[];
  gone: GoneEvent[];
  read: number;
  last: string | null;
  stoppedBy: UnreadableEntry | null;
  isCut: boolean;
};

/** Thrown when the relay stops before an entry that only a newer version can read. */
export class NewerEntryError extends Error {
  override readonly name = 'NewerEntryError';
  readonly entry: UnreadableEntry;

  constructor(entry: UnreadableEntry) {
    super(`entry ${entry.id} of the log is of version ${entry.version} and cannot be read: ${entry.reason}`);
    this.entry = entry;
  }
}

/**
 * Reads log entries up to the first that only a newer version can read. Subscribers entries are small and name events that may
 * be large: the batch ends before one whose event does not fit in (see EventLog.readSomeAt). It reads at least one.
 */
export async function readBatch(entries: readonly LogEntry[], events: EventLog): Promise<LogBatch> {
  const batch: LogBatch = {
    facts: [],
    unreadable: [],
    gone: [],
    read: 0,
    last: null,
    stoppedBy: null,
    isCut: false,
  };
  const places = entries.flatMap((entry) => (entry.kind === 'subscribers' ? [entry.entry] : []));
  const named = await events.readSomeAt(places);
  for (const entry of entries) {
    if (entry.kind === 'subscribers' && named.length === 0) return { ...batch, isCut: true };
    const meant = entry.kind === 'subscribers' ? (named.shift() ?? null) : entry;
    if (meant?.kind === 'unreadable') {
      if (isOfNewerVersion(meant)) return { ...batch, stoppedBy: meant };
      batch.unreadable.push(entry.kind === 'subscribers' ? { ...entry, reason: meant.reason } : meant);
    }
    // Null for a late subscribers entry of an event that has expired from the log: there is nothing to deliver.
    const event = eventOf(meant);
    if (event !== null) batch.facts.push(factOf(entry, event));
    else if (entry.kind === 'subscribers' && entry.isSuspended) {
      batch.gone.push({ at: entry.id, eventId: entry.eventId, claimKeys: entry.claimKeys });
    }
    batch.read += 1;
    batch.last = entry.id;
  }
  return batch;
}

function factOf(entry: LogEntry, event: Event): Fact {
  const place = entry.kind === 'subscribers' ? entry.entry : entry.id;
  const claimKeys = entry.kind === 'event' || entry.kind === 'subscribers' ? entry.claimKeys : null;
  const withheld = entry.kind === 'event' ? entry.withheld : [];
  const isSuspended = entry.kind === 'subscribers' && entry.isSuspended;
  return { event, place, claimKeys, at: entry.id, withheld, isSuspended };
}

/**
 * An event that a receiver matches: its place in the log, the claims that lead to the receiver, and the entry that states the
 * match; a subscribers entry is behind the event's. `isSuspended`: it waited until its claims were back.
 */
export type Match = { event: Event; entry: string; claimKeys: string[]; at: string; isSuspended: boolean };

/** Sources for matching receivers and events: subscriptions, and the decimals of tokens for `minAmount`. */
export type MatchDeps = { registry: Registry; directory: Directory };

/** Returns the events, among some of the log, that a receiver matches, in order. */
export type MatchesOf = (receiver: StoredReceiver) => Match[];

/** The subscriptions of some events' subscription keys, and the keys that continue those. The latter were read after the former. */
export type ClaimDefinitions = {
  subscriptions: ReadonlyMap<string, StoredSubscription>;
  continuing: ReadonlyMap<string, Continuing>;
};

/**
 * Reads the receivers of some events once, or uses `definitions` where they were read already. The returned function does no I/O.
 * After a reload moved an event's subject to another subscription, no claim of the event may lead to a receiver. Then the
 * claims that continue them lead to it, also where it joined their subscription in that reload.
 */
export async function matchFacts(
  facts: readonly Fact[],
  { registry, directory }: MatchDeps,
  definitions?: ClaimDefinitions,
): Promise<MatchesOf> {
  const all = facts.flatMap(({ claimKeys }) => claimKeys ?? []);
  const read = definitions ?? (await definitionsOf(all, registry));
  const { continuing } = read;
  const subscriptions =
    continuing.size === 0
      ? read.subscriptions
      : await registry.subscriptions([...all, ...nextClaimKeys(continuing)]);
  const claims = claimsBy(subscriptions, continuing);
  const claimed = facts.map(({ claimKeys, at }) =>
    claimKeys === null
      ? null
      : { own: claimKeys.map((key) => claims.own(key, at)), next: claims.next(claimKeys) },
  );
  return (receiver) => {
    const leading = (some: readonly ParsedClaim[]): string[] =>
      some.flatMap(({ key, has }) => (has(receiver) ? [key] : []));
    return facts.flatMap((fact, index) => {
      const of = claimed[index] ?? null;
      const own = of === null ? null : leading(of.own);
      const claimKeys = of !== null && own?.length === 0 ? leading(of.next) : own;
      return matchFact({ receiver, fact, claimKeys }, directory) ?? [];
    });
  };
}

/** Reads the definitions of some subscription keys in one round trip: the keys that continue them first. */
async function definitionsOf(claimKeys: readonly string[], registry: Registry): Promise<ClaimDefinitions> {
  const [continuing, subscriptions] = await Promise.all([
    registry.continuing(claimKeys),
    registry.subscriptions(claimKeys),
  ]);
  return { subscriptions, continuing };
}

type ParsedClaim = { key: string; has: (receiver: StoredReceiver) => boolean };

/** Maps the subscription keys of an event to its claims: `own` at the entry that states them, `next` those that continue them. */
type EventClaims = {
  own: (key: string, entry: string) => ParsedClaim;
  next: (claimKeys: readonly string[]) => ParsedClaim[];
};

function nextClaimKeys(continuing: ReadonlyMap<string, Continuing>): string[] {
  return [...continuing.values()].flatMap(({ claimKeys }) => claimKeys);
}

/** Parses few claims for many events. A receiver that joined a subscription later has no claim of it, see `joined`. */
function claimsBy(
  subscriptions: ReadonlyMap<string, StoredSubscription>,
  continuing: ReadonlyMap<string, Continuing>,
): EventClaims {
  const receivers = new Map(
    [...subscriptions].map(([name, subscription]) => {
      const all = new Set([...subscription.receivers, ...subscription.awayReceivers]);
      const current = new Set(receiversOf(subscription));
      return [name, { current, all, joined: subscription.joined }] as const;
    }),
  );
  const claimOf = (key: string, isBefore: (joined: JoinedAt) => boolean): ParsedClaim => {
    const { subscription, receivers: narrowed } = parseClaimKey(key);
    const cached = receivers.get(subscription);
    return {
      key,
      has: ({ name, removed }) => {
        if ((removed ? cached?.all : cached?.current)?.has(name) !== true) return false;
        // The key of some receivers states their start itself.
        if (narrowed !== null) return narrowed.includes(name);
        const joined = cached?.joined[name];
        return joined === undefined || isBefore(joined);
      },
    };
  };
  return {
    own: (key, entry) => claimOf(key, (joined) => compareEntries(joined.entry, entry) < 0),
    next: (claimKeys) =>
      claimKeys.flatMap((key) => {
        const { claimKeys: next, atMs } = continuing.get(key) ?? { claimKeys: [], atMs: 0 };
        return next.map((one) => claimOf(one, (joined) => joined.atMs <= atMs));
      }),
  };
}

/** Returns, per receiver and in order, the events that expired from the log before they were released to it. */
export async function goneFor(
  gone: readonly GoneEvent[],
  registry: Registry,
): Promise<(receiver: StoredReceiver) => GoneEvent[]> {
  const all = gone.flatMap(({ claimKeys }) => claimKeys);
  const continuing = await registry.continuing(all);
  const subscriptions = await registry.subscriptions([...all, ...nextClaimKeys(continuing)]);
  const claims = claimsBy(subscriptions, continuing);
  const claimed = gone.map((event) => ({
    event,
    claims: [...event.claimKeys.map((key) => claims.own(key, event.at)), ...claims.next(event.claimKeys)],
  }));
  return (receiver) =>
    claimed.flatMap(({ event, claims: some }) => (some.some(({ has }) => has(receiver)) ? [event] : []));
}

/** Events whose subscription key leads to none of the receivers named when it was logged, or waited. It may be suspended. */
export function unledBy(
  facts: readonly Fact[],
  receivers: readonly StoredReceiver[],
  matchesFor: MatchesOf,
): WaitingEvent[] {
  const doubtful = facts.flatMap((fact) => {
    const claimKeys = (fact.claimKeys ?? []).map((key) => ({ key, narrowed: parseClaimKey(key).receivers }));
    const some = claimKeys.filter(({ narrowed }) => narrowed !== null || fact.isSuspended);
    return some.length === 0 ? [] : [{ fact, claimKeys: some }];
  });
  if (doubtful.length === 0) return [];
  const led = new Map(
    receivers.map((receiver) => [receiver.name, new Set(matchesFor(receiver).map(({ at }) => at))]),
  );
  return doubtful.flatMap(({ fact: { event, place, at }, claimKeys }) => {
    const unled = [...led].flatMap(([name, places]) => (places.has(at) ? [] : [name]));
    return claimKeys
      .filter(({ narrowed }) => unled.some((name) => narrowed?.includes(name) !== false))
      .map(({ key }) => ({ entry: place, eventId: event.id, key }));
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

/** The match of a receiver and a fact, or null. `claimKeys` are those of its claims; null for an operator's event. */
export function matchFact(
  { receiver, fact, claimKeys }: { receiver: StoredReceiver; fact: Fact; claimKeys: string[] | null },
  directory: Directory,
): Match | null {
  const { event, place, at, withheld } = fact;
  if (claimKeys?.length === 0 || !wantsType(receiver.events, event.type)) return null;
  if (claimKeys === null) {
    // An event about a receiver goes to the other receivers.
    const isItself = event.data.subject.id === operatorSubject('receiver', receiver.name);
    return isItself ? null : { event, entry: place, claimKeys: [], at, isSuspended: false };
  }
  const wanted = passesFilter(receiver.filter, { record: event.data.record, claimKeys }, directory);
  const isSuspended = fact.isSuspended || claimKeys.every((key) => withheld.includes(key));
  return wanted ? { event, entry: place, claimKeys, at, isSuspended } : null;
}
