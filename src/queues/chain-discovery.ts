import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { BoundedMap, bytesOfTexts, CACHES } from '../domain/caches.ts';
import {
  type AddedChain,
  type AddedToken,
  COMMON_NAMES,
  type Directory,
  extendDirectory,
} from '../domain/transfers/chains.ts';
import {
  contradictions,
  discoveredDirectory,
  mergeTokens,
  parseChains,
  quoteSigners,
} from '../domain/transfers/discovered.ts';
import { Duty } from '../duty.ts';
import type { Signals } from '../signals.ts';
import { type RedisClient, redisTimeMs } from '../store/commands.ts';
import type { DirectoryStamps, DirectoryStore, StoredDirectory } from '../store/directory.ts';
import type { PlanStore } from '../store/plan.ts';
import type { UpstreamClient } from '../upstream/client/client.ts';
import { UpstreamFailure } from '../upstream/client/failure.ts';
import type { PublishedSigners } from '../upstream/client/quote-signers.ts';
import type { Answer } from '../upstream/client/send-request.ts';
import type { ChainEntry, ParsedList } from '../upstream/wire/chain-list.ts';

/** Dependencies of the discovery. `configured`: chains and tokens of the config. */
export type ChainDiscoveryDeps = {
  redis: RedisClient;
  client: UpstreamClient;
  store: DirectoryStore;
  plan: PlanStore;
  configured: { chains: readonly AddedChain[]; tokens: readonly AddedToken[] };
  signals: Signals;
  log: Logger;
};

/** Age at which the lists are read again. */
const STALE_MS = 3_600_000;

/** The same at a start, and after a record named a chain or token that is missing. Also the least time between two reads. */
const LEAST_AGE_MS = 300_000;

const CHECK_EVERY_MS = 10_000;
const MISSED_RETRY_MS = 1_000;

/** Wait after a failed read, twice as long each time in a row, up to the longest. */
const RETRY_MS = 60_000;
const LONGEST_RETRY_MS = STALE_MS;

/** A request that goes out later than its slot by more than this takes another slot. */
const LATE_MS = 30;

/**
 * Reads the upstream's lists of chains (with their quote signers) and tokens. One process reads them for all: at start, when they
 * are an hour old, and after a record named a chain or token that they lack. A read is two requests, each in a slot of the
 * budget of the endpoint group `status`. After a failed read the stored lists and the built-in ones stay in use.
 */
export class ChainDiscovery {
  readonly #deps: ChainDiscoveryDeps;
  #stored: StoredDirectory = { chains: [], tokens: [], chainsAtMs: null, tokensAtMs: null };
  #merged: Directory;
  #signers: PublishedSigners | null = null;
  readonly #polling: Duty;
  /** Age at which the lists are read again, ms; it is lower at a start and after a missing name. */
  #mostAgeMs = LEAST_AGE_MS;
  #failures = 0;
  /** A name was missed since the last poll began. */
  #isMissed = false;
  /** A stored name requests the lists no second time. */
  readonly #missed = new BoundedMap<string, true>({
    ...CACHES.missedNames,
    bytesOf: (name) => bytesOfTexts(name),
  });
  readonly #reported = new BoundedMap<string, true>({
    ...CACHES.contradictions,
    bytesOf: (name) => bytesOfTexts(name),
  });

  constructor(deps: ChainDiscoveryDeps) {
    this.#deps = deps;
    this.listed = extendDirectory(deps.configured);
    this.#merged = this.#directoryOf(this.#stored);
    this.#polling = new Duty({
      everyMs: CHECK_EVERY_MS,
      run: (signal) => this.#poll(signal),
      onError: (error) => {
        deps.log.warn({ error }, 'directory.error');
        return { waitMs: this.#isMissed ? MISSED_RETRY_MS : CHECK_EVERY_MS };
      },
    });
  }

  /** Chains and tokens of the config and the built-in ones, without those of the upstream. */
  readonly listed: Directory;

  /** Names and decimals, with those of the upstream. A failed lookup requests the lists again. */
  readonly directory: Directory = {
    chain: (chainId) => this.#merged.chain(chainId) ?? this.#miss(chainId),
    token: (chainId, address) => this.#merged.token(chainId, address) ?? this.#miss(chainId, address),
  };

  get signers(): PublishedSigners | null {
    return this.#signers;
  }

  async start(): Promise<void> {
    await this.#load();
    this.#polling.start(0);
  }

  /** Reads the upstream's chains now, for a caller that has a slot of the budget, and stores them for all. */
  async chains(): Promise<Answer<ParsedList<ChainEntry>>> {
    const atMs = await redisTimeMs(this.#deps.redis);
    const answer = await this.#deps.client.chains();
    await this.#storeChains(answer.value, atMs);
    return answer;
  }

  #miss(chainId: string, address?: string): null {
    // The text is from a record of the upstream, which may hold anything.
    if (!/^\d{1,16}$/.test(chainId) || (address?.length ?? 0) > 100) return null;
    const name = `${chainId} ${address ?? ''}`;
    if (this.#missed.has(name) || !this.#missed.fits(name, true) || this.#polling.isClosed) return null;
    this.#missed.set(name, true);
    this.#mostAgeMs = LEAST_AGE_MS;
    this.#isMissed = true;
    this.#polling.soon();
    return null;
  }

  async #poll(signal: AbortSignal): Promise<void> {
    this.#isMissed = false;
    const { redis, store } = this.#deps;
    const stamps = await store.stamps();
    if (!isSame(stamps, this.#stored)) {
      // Another process has fetched new lists, with the missing names if there are any.
      if (stamps.tokensAtMs !== this.#stored.tokensAtMs) this.#mostAgeMs = STALE_MS;
      await this.#load();
    }
    const nowMs = await redisTimeMs(redis);
    if (ageMs(this.#stored, nowMs) < this.#mostAgeMs) return;
    if (await store.claimTurn(LEAST_AGE_MS)) await this.#read(signal);
  }

  /** Reads both lists. After a failure one of the processes retries it. */
  async #read(signal: AbortSignal): Promise<void> {
    const { redis, client, store, log } = this.#deps;
    try {
      await this.#slot(signal);
      // Before the request: the answer may lack a signer that is published while the request runs.
      const atMs = await redisTimeMs(redis);
      await this.#storeChains((await client.chains({ signal })).value, atMs);
      await this.#slot(signal);
      const { value } = await client.tokens({ signal });
      const { entries, skipped } = mergeTokens((await store.read()).tokens, value.entries);
      this.#report('tokens', entries.length, skipped + value.unreadable.length);
      await store.writeTokens(entries, atMs);
      await this.#load();
      this.#failures = 0;
      this.#mostAgeMs = STALE_MS;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof UpstreamFailure || error instanceof NoSlotError)) throw error;
      const backoffMs = Math.min(LONGEST_RETRY_MS, RETRY_MS * 2 ** this.#failures++);
      const retryAfterMs = error instanceof UpstreamFailure ? (error.retryAfterMs ?? 0) : 0;
      const nextInMs = Math.min(LONGEST_RETRY_MS, Math.max(backoffMs, retryAfterMs));
      await store.delayNextTurn(nextInMs);
      log.warn({ reason: error.message, nextInMs }, 'directory.not_read');
    }
  }

  async #storeChains({ entries: listed, unreadable }: ParsedList<ChainEntry>, atMs: number): Promise<void> {
    const { entries, skipped } = parseChains(listed);
    const members = listed.reduce((sum, entry) => sum + entry.unreadable.length, 0);
    this.#report('chains', entries.length, skipped + unreadable.length + members);
    await this.#deps.store.writeChains(entries, atMs);
    await this.#load();
  }

  #report(list: 'chains' | 'tokens', count: number, skipped: number): void {
    const { signals, log } = this.#deps;
    const reason = `an entry or a member of ${list} is not as the interface describes it`;
    for (let at = 0; at < skipped; at += 1) signals.emit('record.unreadable', { where: list, reason });
    log[skipped === 0 ? 'info' : 'warn']({ list, count, skipped }, 'directory.read');
  }

  /** Waits for a slot of the budget. Throws NoSlotError while the endpoint group is down or paused. */
  async #slot(signal: AbortSignal): Promise<void> {
    for (;;) {
      const inMs = await this.#deps.plan.spareSlot('status');
      if (inMs === null) throw new NoSlotError();
      const atMs = performance.now() + inMs;
      await wait(inMs, undefined, { signal });
      if (performance.now() - atMs <= LATE_MS) return;
    }
  }

  async #load(): Promise<void> {
    const { redis, store, log } = this.#deps;
    this.#stored = await store.read();
    this.#merged = this.#directoryOf(this.#stored);
    const { chains, chainsAtMs } = this.#stored;
    if (chainsAtMs !== null) {
      const readAtMs = performance.now() - Math.max(0, (await redisTimeMs(redis)) - chainsAtMs);
      this.#signers = { signers: quoteSigners(chains), readAtMs };
    }
    for (const found of contradictions(this.listed, this.#stored)) {
      const name = JSON.stringify(found);
      if (this.#reported.has(name)) continue;
      this.#reported.set(name, true);
      log.error(found, 'directory.contradicted');
    }
  }

  #directoryOf(stored: StoredDirectory): Directory {
    return extendDirectory(this.#deps.configured, discoveredDirectory(COMMON_NAMES, stored));
  }

  async close(): Promise<void> {
    await this.#polling.close();
  }
}

class NoSlotError extends Error {
  constructor() {
    super('the upstream is not polled as usual now');
    this.name = 'NoSlotError';
  }
}

/** Age of the older list. A list with a later time than now is read again: the clock of Redis has gone back. */
function ageMs({ chainsAtMs, tokensAtMs }: DirectoryStamps, nowMs: number): number {
  if (chainsAtMs === null || tokensAtMs === null) return Number.POSITIVE_INFINITY;
  const atMs = Math.min(chainsAtMs, tokensAtMs);
  return atMs > nowMs ? Number.POSITIVE_INFINITY : nowMs - atMs;
}

function isSame(one: DirectoryStamps, other: DirectoryStamps): boolean {
  return one.chainsAtMs === other.chainsAtMs && one.tokensAtMs === other.tokensAtMs;
}
