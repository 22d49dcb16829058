import { BoundedMap, CACHES } from '../../domain/caches.ts';
import { isTrackedKey, parseClaimKey } from '../../domain/subjects/subscription.ts';
import type { Definitions, StoredReceiver, StoredSubscription } from '../../store/definitions.ts';
import type { EntriesBehind, RelayMemory } from '../../store/deliveries.ts';
import { compareEntries, type ExpectedEntry, type LogEntry, writtenEntry } from '../../store/log-entry.ts';
import type { Registry } from '../../store/registry.ts';
import { MOST_TO_ADVANCE, openDeliveries } from './follow.ts';
import { type Match, matchFacts, readBatch } from './matches.ts';
import type { RelayContext } from './relay-context.ts';

/** More receivers make the check of what is remembered cost more than a round. */
const MOST_RECEIVERS = 20;

/** Receivers that are all at one entry of the log, and the subscriptions that their last round read. */
export type Remembered = {
  token: string;
  at: string;
  receivers: readonly StoredReceiver[];
  subscriptions: ReadonlyMap<string, StoredSubscription>;
};

/**
 * Memory of the relay between rounds, so that it opens the next entries in one step without any other read. The script that
 * opens them compares it with what is stored, and does nothing where something has changed.
 *
 *   State       Entered when                                      Left when
 *   none        the start; a round begins; an entry that needs a  a round left all receivers, that are at most 20, at one entry,
 *               round; a failed step; another fencing token       with none failing, being enabled or replaying ─► remembered
 *   remembered  a round ended so                                  a step begins ─► stepping; a round begins ─► none
 *   stepping    a step is under way, for entries in the log or    it moved all receivers ─► remembered, at the new entry; it was
 *               for those that are expected                       refused for other entries in the log ─► remembered; else
 *                                                                 ─► none
 */
export class RelayMemoryState {
  #remembered: Remembered | null = null;
  /** By name. */
  readonly #subscriptions: BoundedMap<string, StoredSubscription>;

  constructor(definitions: Definitions) {
    this.#subscriptions = new BoundedMap({
      ...CACHES.relaySubscriptions,
      bytesOf: (_name, subscription) => definitions.bytesOf(subscription),
    });
  }

  /** Notes the result of a round; null where it left receivers at several places, or some need another round. */
  note(round: Remembered | null): void {
    for (const [name, subscription] of round?.subscriptions ?? [])
      this.#subscriptions.set(name, subscription);
    this.#remembered = round !== null && round.receivers.length <= MOST_RECEIVERS ? round : null;
  }

  /**
   * Opens the deliveries of entries behind the one at which all receivers are, in one step for each receiver. Returns the entry
   * that they reached; null where a round must do it. What it did before is not done twice by the round. Entries that this
   * process wrote are opened only where the log has no other before them; null then lets the same be tried with the log's.
   */
  async open({ after, entries, token, isOwn }: OpenedEntries, deps: RelayContext): Promise<string | null> {
    const remembered = this.#take(token);
    if (remembered === null || compareEntries(remembered.at, after) < 0) return null;
    // Those before it were opened while they were expected.
    const behind = entries.filter(({ id }) => compareEntries(id, remembered.at) > 0);
    if (behind.length === 0) {
      this.#remembered = remembered;
      return remembered.at;
    }
    const log = isOwn ? behind.map(({ id }) => id) : [];
    return this.#open({ ...remembered, entries: behind }, { log, expected: [] }, deps);
  }

  /**
   * Opens the deliveries of entries whose commits are on their way to Redis, over the same connection (that of `deps`), in one
   * step for each receiver. Returns the entry that they reached; null where the log has others, or a round must do it.
   */
  async openExpected(
    { entries, token }: { entries: readonly ExpectedEntry[]; token: string | null },
    deps: RelayContext,
  ): Promise<string | null> {
    const remembered = this.#take(token);
    if (remembered === null) return null;
    const size = entries.reduce((sum, { packed }) => sum + packed.length, 0) * remembered.receivers.length;
    if (size > MOST_EXPECTED_SIZE) {
      this.#remembered = remembered;
      return null;
    }
    const expected = entries.map((entry, index) => ({ name: `${NO_ENTRY}-${index + 1}`, entry }));
    const named = expected.map(({ name, entry }) => writtenEntry(name, entry).entry);
    return this.#open({ ...remembered, entries: named }, { log: [], expected }, deps);
  }

  /** Takes what is remembered, so that one step is under way at a time; null where that is of another token. */
  #take(token: string | null): Remembered | null {
    const remembered = this.#remembered;
    this.#remembered = null;
    return remembered?.token === token ? remembered : null;
  }

  async #open(
    remembered: Remembered & { entries: readonly LogEntry[] },
    behind: EntriesBehind,
    deps: RelayContext,
  ): Promise<string | null> {
    const step = await stepOf({ ...remembered, behind }, this.#subscriptions, deps);
    if (step === null) return null;
    const { to, openings, memory } = step;
    const opened = await Promise.all(
      openings.map(async (opening, index) => {
        // The first moves those that no event is for.
        const part = index === 0 ? memory : { ...memory, passed: [], isCounted: false };
        const plan = {
          token: remembered.token,
          ...opening,
          replay: null,
          cursor: { from: memory.from, to },
          memory: part,
        };
        // A round meets the error again, and isolates the receiver.
        return openDeliveries(plan, deps).catch(() => null);
      }),
    );
    if (opened.includes(null)) {
      // A script that did something has moved a cursor: it is refused again.
      this.#remembered = behind.log.length + behind.expected.length > 0 ? remembered : null;
      return null;
    }
    const { token, receivers, subscriptions } = remembered;
    const at = opened[0]?.at(-1) ?? to;
    this.#remembered = { token, at, receivers, subscriptions };
    return at;
  }
}

/** Most characters of events on their way, over all receivers: each one's script compares them. Others are opened by their ids. */
const MOST_EXPECTED_SIZE = 65_536;

/** Comes after the time of every entry in the log. */
const NO_ENTRY = '18446744073709551615';

/** Entries behind the one that all receivers reached, `after`; `isOwn`: they were not read from the log. */
type OpenedEntries = {
  after: string;
  entries: readonly LogEntry[];
  token: string | null;
  isOwn: boolean;
};

type ReceiverOpening = { receiver: StoredReceiver; matched: readonly Match[] };

type RelayStep = { to: string; openings: readonly ReceiverOpening[]; memory: RelayMemory };

/** Decides by what is remembered what to open; null where an entry, or a claim of it, needs more than that. */
async function stepOf(
  { at, receivers, entries, behind }: Remembered & { entries: readonly LogEntry[]; behind: EntriesBehind },
  remembered: BoundedMap<string, StoredSubscription>,
  { stores: { events, registry }, directory }: RelayContext,
): Promise<RelayStep | null> {
  const to = entries.at(-1)?.id;
  const keys = entries.map(plainKeysOf);
  if (to === undefined || keys.includes(null)) return null;
  const claimKeys = [...new Set(keys.flatMap((some) => some ?? []))];
  const names = new Set(claimKeys.map((key) => parseClaimKey(key).subscription));
  const subscriptions = new Map(
    [...names].flatMap((name) => {
      const subscription = remembered.get(name);
      return subscription === undefined ? [] : [[name, subscription] as const];
    }),
  );
  if (subscriptions.size < names.size) return null;
  const definitions = definitionsOf({ receivers, subscriptions }, registry);
  if (definitions === null) return null;
  const { facts } = await readBatch(entries, events);
  const matchesFor = await matchFacts(
    facts,
    { registry, directory },
    { subscriptions, continuing: new Map() },
  );
  const all = receivers.map((receiver) => ({ receiver, matched: matchesFor(receiver) }));
  const openings = all.filter(({ matched }) => matched.length > 0);
  const found = new Set(openings.flatMap(({ matched }) => matched.map((match) => match.at)));
  // A round counts the events that no receiver gets, with the reason.
  if (found.size < entries.length) return null;
  const passed = all.flatMap(({ receiver, matched }) => (matched.length === 0 ? [receiver.name] : []));
  const memory = {
    ...behind,
    from: at,
    most: MOST_TO_ADVANCE,
    definitions,
    claimKeys,
    passed,
    isCounted: true,
  };
  return { to, openings, memory };
}

/** Subscription keys of an event that need no other data; null where it waits, or its keys name receivers. */
function plainKeysOf(entry: LogEntry): readonly string[] | null {
  if (entry.kind !== 'event' || entry.withheld.length > 0) return null;
  const isPlain = entry.claimKeys.every((key) => parseClaimKey(key).receivers === null);
  return isPlain && entry.claimKeys.length > 0 ? entry.claimKeys : null;
}

/** Returns the definitions that decide who gets the events of these keys; null where one was not read from a text. */
function definitionsOf(
  {
    receivers,
    subscriptions,
  }: { receivers: readonly StoredReceiver[]; subscriptions: ReadonlyMap<string, StoredSubscription> },
  { definitions }: Registry,
): RelayMemory['definitions'] | null {
  const all = [
    ...receivers.map((receiver) => ({
      of: 'receivers' as const,
      field: receiver.name,
      digest: definitions.digestOf(receiver),
    })),
    ...[...subscriptions].map(([name, subscription]) => {
      const digest = definitions.digestOf(subscription);
      return isTrackedKey(name)
        ? { of: 'tracked' as const, field: parseClaimKey(name).subject, digest }
        : { of: 'subscriptions' as const, field: name, digest };
    }),
  ];
  const complete = all.flatMap(({ digest, ...one }) => (digest === null ? [] : [{ ...one, digest }]));
  return complete.length === all.length ? complete : null;
}
