/** Bounds of one cache of the daemon process. */
export type CacheLimits = {
  /** Name of the cache in docs/limits.md. */
  place: string;
  /** `null`: limited by `bytes` alone. */
  entries: number | null;
  /** Texts count as UTF-16, two bytes per character, where `place` names no other count. `null`: each entry has a fixed size. */
  bytes: number | null;
  /** Effect of a full cache, as docs/limits.md states it. */
  full: string;
};

/** Everything in the memory of the process that grows with load or input. docs/limits.md is generated from it. */
export const CACHES = {
  seenPages: {
    place: 'Last pages of wallets, with the digests of their records',
    entries: null,
    bytes: 16_777_216,
    full: 'Takes no further page until one is 10 min old. Such a page is compared with Redis at each poll.',
  },
  openTransfers: {
    place: 'Open transfers of wallets',
    entries: null,
    bytes: 25_165_824,
    full: 'Drops those of the wallet that was polled longest ago. They are read from Redis again.',
  },
  // A usual one has 1 kB.
  heldSubjects: {
    place: 'Transfers under way as this process last stored them',
    entries: null,
    bytes: 8_388_608,
    full: 'Drops the transfer that changed longest ago. It is read from Redis when it changes.',
  },
  // An entry that the relay read is read again when it is sent, up to 1,000 entries later. A usual entry has 2 kB.
  logEntries: {
    place: 'Parsed entries of the event log (unpacked texts, as UTF-8)',
    entries: 1_500,
    bytes: 8_388_608,
    full: 'Drops the entry that was read first. It is parsed again when it is needed.',
  },
  ownEntries: {
    place: 'Entries of the event log that this process wrote and its relay has not opened',
    entries: 16,
    bytes: 1_048_576,
    full: 'Takes no further entry. The relay reads it from the log.',
  },
  // A usual one has 250 characters; one with the longest metadata has 5,000.
  subscriptions: {
    place: 'Parsed subscriptions and tracked subjects',
    entries: 20_000,
    bytes: 16_777_216,
    full: 'Drops the one that was used longest ago. It is parsed again when it is needed.',
  },
  receivers: {
    place: 'Parsed definitions of receivers',
    entries: 2_000,
    bytes: 4_194_304,
    full: 'Drops the one that was used longest ago. It is parsed again when it is needed.',
  },
  relaySubscriptions: {
    place: 'Subscriptions by which the relay opens events without a read',
    entries: 1_000,
    bytes: 4_194_304,
    full: 'Drops the one that was used longest ago. The relay reads it for its next event.',
  },
  blocks: {
    place: 'Blocks that one RPC endpoint has shown',
    entries: 256,
    bytes: 131_072,
    full: 'Drops the block that was used longest ago. It is requested again.',
  },
  hostNames: {
    place: 'Resolved host names of one receiver, or of the upstream',
    entries: 64,
    bytes: 262_144,
    full: 'Drops the name that was used longest ago. It is resolved again.',
  },
  failedLogins: {
    place: 'Addresses of clients with wrong sign-ins',
    entries: 10_000,
    bytes: 4_194_304,
    full: 'Drops the address that failed longest ago. Its delay begins anew.',
  },
  waitingSignIns: {
    place: 'Wrong sign-ins that wait for their answer',
    entries: 128,
    bytes: null,
    full: 'Answers the one that has waited longest.',
  },
  unusedConnections: {
    place: 'Open connections to receivers, of which unused ones are closed',
    entries: 256,
    bytes: null,
    full: 'Closes the unused connections of the receiver that was used longest ago.',
  },
  logLines: {
    place: 'Log lines that wait for a full disk (characters)',
    entries: null,
    bytes: 16_777_216,
    full: 'Drops further lines.',
  },
  rpcFailures: {
    place: 'Failures of RPC endpoints that were logged within a minute',
    entries: 1_000,
    bytes: 1_048_576,
    full: 'Drops the oldest failure. It may be logged again within the minute.',
  },
  foreignEntries: {
    place: 'Places of unreadable entries in Redis that were logged',
    entries: 1_000,
    bytes: 1_048_576,
    full: 'Logs no further place. `intentwatch_foreign_entries_total` counts on.',
  },
  missedNames: {
    place: 'Chains and tokens that the upstream’s lists lack',
    entries: 10_000,
    bytes: 4_194_304,
    full: 'Reads the lists for no further name, only when they are an hour old.',
  },
  contradictions: {
    place: 'Contradictions between the config and the upstream’s lists that were logged',
    entries: 1_000,
    bytes: 1_048_576,
    full: 'Drops the oldest one. It may be logged again.',
  },
  undecidedQuotes: {
    place: 'Imported quotes whose signature is undecided',
    entries: 10_000,
    bytes: 4_194_304,
    full: 'Drops the oldest quote. It is verified again at once.',
  },
  statusDifferences: {
    place: 'Transfers whose status differs between both sources, as last logged',
    entries: 1_000,
    bytes: 1_048_576,
    full: 'Drops the transfer that was compared longest ago. Its difference may be logged again.',
  },
  receiverMoves: {
    place: 'Prepared events about moves of receivers',
    entries: 1_000,
    bytes: 4_194_304,
    full: 'Drops the one that was used longest ago. It is made again.',
  },
  timeZones: {
    place: 'Formats of time zones',
    entries: 100,
    bytes: 8_192,
    full: 'Drops the zone that was used longest ago. Its format is made again.',
  },
  statements: {
    place: 'Statements of the books in the form of Postgres',
    entries: 500,
    bytes: 4_194_304,
    full: 'Drops the one that was used longest ago. It is made again.',
  },
  labelSets: {
    place: 'Label sets of metrics',
    entries: 20_000,
    bytes: 8_388_608,
    full: 'Drops the set that was made first. It is made again.',
  },
  // Imported quotes and tracked transfers choose the pairs.
  routeSeries: {
    place: 'Pairs of chains with their own series of metrics',
    entries: 50,
    bytes: 8_192,
    full: 'Counts further pairs as `other`.',
  },
  tokenSeries: {
    place: 'Symbols of tokens with their own series of metrics',
    entries: 10,
    bytes: 8_192,
    full: 'Counts further symbols as `other`.',
  },
  // 2,000 names are stored in Redis, so that more are of no use.
  learnedBatches: {
    place: 'Statistics of stages that are not written yet, each second',
    entries: 2_000,
    bytes: null,
    full: 'Drops the oldest one: it is an estimate, and more follow.',
  },
  learnedEstimates: {
    place: 'Estimates of quotes that are not written yet, each second',
    entries: 2_000,
    bytes: 262_144,
    full: 'Drops the oldest one: the next quote has another.',
  },
} as const satisfies Readonly<Record<string, CacheLimits>>;

/** Bytes of an entry beside its texts, as V8 stores a small object in a map. */
const ENTRY_BYTES = 120;

/** Returns the bytes of an entry with some texts, as UTF-16. */
export function bytesOfTexts(...texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + 2 * text.length, ENTRY_BYTES);
}

/** Bounds of a map, and the bytes of an entry, which are counted once, when it is set. */
type MapBounds<K, V> = {
  entries: number | null;
  bytes: number | null;
  bytesOf: (key: K, value: V) => number;
};

/** An entry between the one that was used before it and the one that was used after it. */
type Entry<K, V> = {
  readonly key: K;
  readonly value: V;
  readonly bytes: number;
  older: Entry<K, V> | null;
  newer: Entry<K, V> | null;
};

/**
 * A map that never has more entries or bytes than its bounds: a full one drops the entries that were used longest ago. An entry
 * larger than all bytes is not stored. The order of use is a list: that of a `Map` would be found with an iterator, and V8 passes
 * all removed places with a new one, and holds all former tables, with what they held, for a lasting one.
 */
export class BoundedMap<K, V> {
  readonly #mostEntries: number;
  readonly #mostBytes: number;
  readonly #bytesOf: (key: K, value: V) => number;
  readonly #entries = new Map<K, Entry<K, V>>();
  #oldest: Entry<K, V> | null = null;
  #newest: Entry<K, V> | null = null;
  #bytes = 0;

  constructor({ entries, bytes, bytesOf }: MapBounds<K, V>) {
    this.#mostEntries = entries ?? Number.POSITIVE_INFINITY;
    this.#mostBytes = bytes ?? Number.POSITIVE_INFINITY;
    this.#bytesOf = bytesOf;
  }

  /** Returns a value, which counts as used now. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#takeOut(entry);
    this.#append(entry);
    return entry.value;
  }

  /** As `get`, but the value does not count as used. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  /** Returns true where `set` would drop no other entry, and store this one. */
  fits(key: K, value: V): boolean {
    const before = this.#entries.get(key);
    const entries = this.#entries.size + (before === undefined ? 1 : 0);
    const bytes = this.#bytes - (before?.bytes ?? 0) + this.#bytesOf(key, value);
    return entries <= this.#mostEntries && bytes <= this.#mostBytes;
  }

  set(key: K, value: V): void {
    this.delete(key);
    const bytes = this.#bytesOf(key, value);
    if (bytes > this.#mostBytes) return;
    const entry = { key, value, bytes, older: null, newer: null };
    this.#entries.set(key, entry);
    this.#append(entry);
    this.#bytes += bytes;
    while (this.#entries.size > this.#mostEntries || this.#bytes > this.#mostBytes) {
      if (this.#oldest !== null) this.delete(this.#oldest.key);
    }
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#takeOut(entry);
    this.#bytes -= entry.bytes;
  }

  clear(): void {
    this.#entries.clear();
    this.#oldest = null;
    this.#newest = null;
    this.#bytes = 0;
  }

  /** Yields all entries, the one that was used longest ago first. The one that came last may be removed meanwhile, no other. */
  *entries(): Generator<[K, V]> {
    let entry = this.#oldest;
    while (entry !== null) {
      const { key, value, newer }: Entry<K, V> = entry;
      yield [key, value];
      entry = newer;
    }
  }

  #append(entry: Entry<K, V>): void {
    entry.older = this.#newest;
    if (this.#newest === null) this.#oldest = entry;
    else this.#newest.newer = entry;
    this.#newest = entry;
  }

  #takeOut(entry: Entry<K, V>): void {
    const { older, newer } = entry;
    if (older === null) this.#oldest = newer;
    else older.newer = newer;
    if (newer === null) this.#newest = older;
    else newer.older = older;
    entry.older = null;
    entry.newer = null;
  }
}
