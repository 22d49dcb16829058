import { z } from 'zod';
import type { RouteDefinition } from '../domain/quotes/route.ts';
import { isTrackedKey, parseClaimKey } from '../domain/subjects/subscription.ts';
import type { RedisClient } from './commands.ts';
import { Definitions, receiverText, type StoredReceiver, type StoredSubscription } from './definitions.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';
import type { OnForeign } from './stored.ts';
import type { SubjectStore } from './subjects.ts';
import { Suspensions } from './suspensions.ts';

/** The subscriptions and receivers, shared by all processes on one Redis. */
export class Registry {
  readonly redis: RedisClient;
  readonly keys: Keys;
  readonly subjects: SubjectStore;
  readonly definitions: Definitions;
  readonly suspensions: Suspensions;
  /** Time of the next check of the removed subscription keys, own clock: there can be as many as wallets. */
  #pruneContinuedAtMs = 0;

  constructor(
    redis: RedisClient,
    keys: Keys,
    subjects: SubjectStore,
    onForeign: OnForeign = () => undefined,
    process?: string,
  ) {
    this.redis = redis;
    this.keys = keys;
    this.subjects = subjects;
    this.definitions = new Definitions(keys, onForeign);
    const receiversOf = (claimKeys: readonly string[]) => this.#receiversOf(claimKeys);
    this.suspensions = new Suspensions(redis, keys, { subjects, process, receiversOf });
  }

  /** Reads the definition of a route from its stored text; null for one of another shape that this config does not have. */
  async readRoute(name: string, text: string): Promise<RouteDefinition | null> {
    const route = this.definitions.route(name, text);
    if (route !== null) return route;
    const own = this.definitions.own.routes.find((one) => one.name === name) ?? null;
    if (own !== null) await this.redis.hset(this.keys.routes, name, JSON.stringify(own));
    return own;
  }

  /** Returns the subjects of a kind that a subscription names, or named until it was suspended. */
  async namedOf(kind: string): Promise<Set<string>> {
    const claimKeys = (await this.redis.hkeys(this.keys.wanted)).filter((key) => !isTrackedKey(key));
    const subjects = claimKeys.map((key) => parseClaimKey(key).subject);
    return new Set(subjects.filter((subject) => subject.startsWith(`${kind}:`)));
  }

  /** True when only subjects that are tracked by themselves are wanted: where a config names something, that was lost. */
  async isLost(): Promise<boolean> {
    const { wanted, tracked, trackingEnded, receivers, subscriptions } = this.keys;
    const replies = await this.redis
      .multi()
      .hlen(wanted)
      .hlen(tracked)
      .zcard(trackingEnded)
      .hlen(receivers)
      .hlen(subscriptions)
      .exec();
    const [claimKeys, trackedCount, ended, named, defined] = COUNTS.parse(replies?.map(([, count]) => count));
    const { own } = this.definitions;
    if ((named === 0 && own.receivers.length > 0) || (defined === 0 && own.subscriptions.size > 0))
      return true;
    return own.subscriptions.size > 0 ? claimKeys <= trackedCount - ended : claimKeys < trackedCount - ended;
  }

  /** Omits subjects that are tracked by themselves, and receivers that were made through the API. */
  async named(): Promise<{ subjects: string[]; receivers: string[] }> {
    const suspended = await this.suspensions.states();
    const claimKeys = (await this.redis.hkeys(this.keys.wanted)).filter(
      (key) => !isTrackedKey(key) && suspended.get(key)?.state !== 'out',
    );
    const added = new Set(await this.redis.hkeys(this.keys.addedReceivers));
    const receivers = (await this.receivers()).filter(({ name, removed }) => !removed && !added.has(name));
    return {
      subjects: claimKeys.map((key) => parseClaimKey(key).subject),
      receivers: receivers.map(({ name }) => name),
    };
  }

  /** Returns the digest of the config that was synced last, null for none, and the number of syncs. */
  async newestConfig(): Promise<{ revision: number; digest: string | null }> {
    const [revision, digest = null] = await this.redis.hmget(this.keys.config, 'generation', 'digest');
    return { revision: Number(revision ?? 0), digest };
  }

  /** Returns all receivers that are stored, also removed ones, unordered. */
  async receivers(): Promise<StoredReceiver[]> {
    const receivers: StoredReceiver[] = [];
    for (const [name, text] of Object.entries(await this.redis.hgetall(this.keys.receivers))) {
      const receiver = this.definitions.receiver(name, text) ?? (await this.#rewriteReceiver(name));
      if (receiver !== null) receivers.push(receiver);
    }
    return receivers;
  }

  async #rewriteReceiver(name: string): Promise<StoredReceiver | null> {
    const own = this.definitions.own.receivers.find((one) => one.name === name);
    if (own === undefined) return null;
    await this.redis.hset(this.keys.receivers, name, receiverText(own));
    return { ...own, removed: false };
  }

  /**
   * Returns the subscription keys that continue removed ones, and the time since when they do (Redis time, ms). Omits suspended
   * keys, and those of a key that is back.
   */
  async continuing(claimKeys: readonly string[]): Promise<Map<string, Continuing>> {
    const distinct = [...new Set(claimKeys)];
    if (distinct.length === 0) return new Map();
    const { continued, wanted, suspended } = this.keys;
    const stored = await this.redis.hmget(continued, ...distinct);
    const found = distinct.flatMap((key, index) => {
      const [atMs = '', ...next] = stored[index]?.split('\n') ?? [];
      return next.length === 0 ? [] : [{ key, next, atMs: Number(atMs) }];
    });
    if (found.length === 0) return new Map();
    const named = [...new Set(found.flatMap(({ key, next }) => [key, ...next]))];
    const [at, out] = await Promise.all([
      this.redis.hmget(wanted, ...named),
      this.redis.hmget(suspended, ...named),
    ]);
    const isWanted = new Set(named.filter((_, index) => at[index] !== null));
    const isOut = new Set(named.filter((_, index) => out[index] !== null));
    return new Map(
      found.flatMap(({ key, next, atMs }): [string, Continuing][] => {
        if (isWanted.has(key)) return [];
        return [[key, { claimKeys: next.filter((one) => isWanted.has(one) && !isOut.has(one)), atMs }]];
      }),
    );
  }

  /** Returns the subscriptions of some claims' subscription keys, by name; also those removed from the config. */
  async subscriptions(claimKeys: readonly string[]): Promise<Map<string, StoredSubscription>> {
    const names = [...new Set(claimKeys.map((key) => parseClaimKey(key).subscription))];
    const texts = await Promise.all([
      this.#texts(
        this.keys.subscriptions,
        names.filter((name) => !isTrackedKey(name)).map((name) => ({ name, field: name })),
      ),
      this.#texts(
        this.keys.tracked,
        names.filter(isTrackedKey).map((name) => ({ name, field: parseClaimKey(name).subject })),
      ),
    ]);
    const read = await this.readSubscriptions(texts.flat());
    // One that was lost alone.
    for (const name of names.filter((one) => !read.has(one))) {
      const own = await this.#rewriteSubscription(name);
      if (own !== null) read.set(name, own);
    }
    return read;
  }

  /** Returns the receivers of subscription keys, also those that are out of the config; omits a key without a definition. */
  async #receiversOf(claimKeys: readonly string[]): Promise<Map<string, readonly string[]>> {
    const subscriptions = await this.subscriptions(claimKeys);
    return new Map(
      claimKeys.flatMap((key): [string, readonly string[]][] => {
        const { subscription, receivers: narrowed } = parseClaimKey(key);
        const definition = subscriptions.get(subscription);
        if (narrowed !== null) return [[key, narrowed]];
        return definition === undefined
          ? []
          : [[key, [...definition.receivers, ...definition.awayReceivers]]];
      }),
    );
  }

  async #texts(
    key: string,
    wanted: readonly { name: string; field: string }[],
  ): Promise<(readonly [string, string])[]> {
    if (wanted.length === 0) return [];
    const stored = await this.redis.hmget(key, ...wanted.map(({ field }) => field));
    return wanted.flatMap(({ name }, index) => {
      const text = stored[index] ?? null;
      return text === null ? [] : [[name, text] as const];
    });
  }

  /** Reads subscriptions from their stored texts, by name. One of another shape is rewritten, if this config has it. */
  async readSubscriptions(
    texts: Iterable<readonly [string, string]>,
  ): Promise<Map<string, StoredSubscription>> {
    const subscriptions = new Map<string, StoredSubscription>();
    for (const [name, text] of texts) {
      const subscription =
        this.definitions.subscription(name, text) ?? (await this.#rewriteSubscription(name));
      if (subscription !== null) subscriptions.set(name, subscription);
    }
    return subscriptions;
  }

  async #rewriteSubscription(name: string): Promise<StoredSubscription | null> {
    const own = this.definitions.own.subscriptions.get(name) ?? null;
    if (own === null) return null;
    await this.redis.hset(this.keys.subscriptions, name, JSON.stringify(own));
    return own;
  }

  /** Removes subscriptions that were removed from the config before a time (ms): their events are gone as well. */
  async prune(beforeMs: number): Promise<void> {
    for (const [name, text] of Object.entries(await this.redis.hgetall(this.keys.subscriptions))) {
      const removedAtMs = this.definitions.subscription(name, text)?.removedAtMs ?? null;
      if (removedAtMs !== null && removedAtMs < beforeMs)
        await this.redis.hdel(this.keys.subscriptions, name);
    }
    await this.#pruneContinued(beforeMs);
  }

  async #pruneContinued(beforeMs: number): Promise<void> {
    if (performance.now() < this.#pruneContinuedAtMs) return;
    this.#pruneContinuedAtMs = performance.now() + PRUNE_CONTINUED_EVERY_MS;
    const { continued } = this.keys;
    for (const [key, text] of Object.entries(await this.redis.hgetall(continued))) {
      if (!(Number(text.split('\n')[0]) >= beforeMs)) await this.redis.hdel(continued, key);
    }
  }

  /** Returns a key's subscription time on the upstream's clock. `dateMs`: `Date` of a response; the first process decides. */
  async subscribedAt(claim: { key: string; atMs: number }, dateMs: number | null): Promise<SubscribedAt> {
    const args = { key: claim.key, atMs: claim.atMs, dateMs };
    return scripts.resolveSubscriptionStart(this.redis, { keys: this.keys, args });
  }

  /** Counts the tracked subjects by kind and status, in lower case, where a response has shown one. Wallets have none. */
  async counts(): Promise<{ kind: string; status: string; count: number }[]> {
    const stored = await this.redis.hgetall(this.keys.counts);
    return Object.entries(stored).map(([key, count]) => {
      const bar = key.indexOf('|');
      return { kind: key.slice(0, bar), status: key.slice(bar + 1), count: Number(count) };
    });
  }
}

/** Range of a subscription's time on the upstream's clock, seconds; equal ends where known. `news`: the newly known part. */
export type SubscribedAt = Awaited<ReturnType<typeof scripts.resolveSubscriptionStart>>;

const COUNTS = z.tuple([z.number(), z.number(), z.number(), z.number(), z.number()]);

const PRUNE_CONTINUED_EVERY_MS = 3_600_000;

/** Subscription keys that continue another one, and the time since when they do, ms of Redis time. */
export type Continuing = { claimKeys: string[]; atMs: number };
