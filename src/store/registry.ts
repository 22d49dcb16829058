import { z } from 'zod';
import type { RouteDefinition } from '../domain/quotes/route.ts';
import { claimRoot, isTrackedRoot, parseClaimRoot, trackedRoot } from '../domain/subjects/claim.ts';
import { type Surface, surfaceOf } from '../domain/subjects/kinds.ts';
import { asSubjectId, type SubjectId } from '../domain/subjects/subject.ts';
import { chunks } from './chunks.ts';
import type { RedisClient } from './commands.ts';
import { redisTimeMs } from './connection.ts';
import { Definitions, receiverText, type StoredReceiver, type StoredSubscription } from './definitions.ts';
import type { Keys } from './keys.ts';
import type { OnForeign } from './stored.ts';
import type { SubjectStore } from './subjects.ts';

/**
 * What a config wants: its subscriptions with the subjects they name, its routes, each once, and its receivers, of which
 * `addedReceivers` names those that were made through the API.
 */
export type Wanted = {
  digest: string;
  receivers: Omit<StoredReceiver, 'removed'>[];
  addedReceivers?: ReadonlySet<string>;
  routes: readonly RouteDefinition[];
  subscriptions: (Omit<StoredSubscription, 'order' | 'removedAtMs'> & { subjects: SubjectId[] })[];
};

/** The subscriptions and receivers that all processes on one Redis share. */
export class Registry {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #subjects: SubjectStore;
  readonly #definitions: Definitions;
  /** What this process synced last: an entry of another shape is written anew from it. */
  #own: Pick<Wanted, 'receivers' | 'routes'> & {
    addedReceivers: ReadonlySet<string>;
    subscriptions: Map<string, StoredSubscription>;
  } = {
    receivers: [],
    addedReceivers: new Set(),
    routes: [],
    subscriptions: new Map(),
  };

  constructor(
    redis: RedisClient,
    keys: Keys,
    subjects: SubjectStore,
    onForeign: OnForeign = () => undefined,
  ) {
    this.#redis = redis;
    this.#keys = keys;
    this.#subjects = subjects;
    this.#definitions = new Definitions(keys, onForeign);
  }

  /**
   * Makes the registry what a config wants. Receivers come first, with a cursor at the end of the log, so that no
   * event of a new subscription can fall before its receiver's cursor. Whoever syncs last is the newest config, and
   * only it removes; the others see that by the digest. Repeating it changes nothing. What is named anew is polled soon.
   */
  async sync(wanted: Wanted, newestEntry: string): Promise<void> {
    this.#take(wanted);
    await this.#syncReceivers(wanted.receivers, newestEntry);
    await this.#syncSubscriptions(wanted.subscriptions);
    await this.#syncRoutes(wanted.routes);
    const roots = new Map<string, SubjectId>();
    for (const subscription of wanted.subscriptions) {
      for (const subject of subscription.subjects) roots.set(claimRoot(subscription.name, subject), subject);
    }
    // One whose time is of another shape is wanted anew.
    const stored = Object.entries(await this.#redis.hgetall(this.#keys.wanted));
    const known = new Set(stored.flatMap(([root, atMs]) => (/^\d+$/.test(atMs) ? [root] : [])));
    // What is tracked by itself is no config's.
    const unwanted = stored.map(([root]) => root).filter((root) => !roots.has(root) && !isTrackedRoot(root));
    for (const chunk of chunks(unwanted, CHUNK)) await this.#unwant(chunk);
    await this.#redis.hincrby(this.#keys.config, 'generation', 1);
    await this.#redis.hset(this.#keys.config, 'digest', wanted.digest);
    const missing = [...roots].filter(([root]) => !known.has(root));
    for (const [surface, some] of Map.groupBy(missing, ([, subject]) => surfaceOf(subject))) {
      for (const chunk of chunks(some, CHUNK)) await this.#want(surface, chunk);
    }
  }

  /**
   * Takes what a config wants for what this process wants. What the file wants is not written; of the receivers that were
   * made through the API every process writes what it has read last, and so the newest stands in the end.
   */
  async adopt(wanted: Wanted): Promise<void> {
    this.#take(wanted);
    await this.#syncAdded();
  }

  #take({ receivers, addedReceivers = new Set(), routes, subscriptions }: Wanted): void {
    this.#own = { receivers, addedReceivers, routes, subscriptions: definitionsOf(subscriptions) };
  }

  async #syncAdded(): Promise<void> {
    const { addedReceivers, receivers, cursors, events } = this.#keys;
    for (const receiver of this.#own.receivers) {
      const { name } = receiver;
      if (!this.#own.addedReceivers.has(name)) continue;
      await this.#redis.iwSyncAddedReceiver(
        addedReceivers,
        receivers,
        cursors,
        events,
        name,
        receiverText(receiver),
      );
    }
  }

  async #syncReceivers(receivers: Wanted['receivers'], newestEntry: string): Promise<void> {
    const names = new Set(receivers.map((receiver) => receiver.name));
    await this.#syncAdded();
    for (const receiver of receivers) {
      if (this.#own.addedReceivers.has(receiver.name)) continue;
      await this.#redis.hsetnx(this.#keys.cursors, receiver.name, newestEntry);
      await this.#redis.hset(this.#keys.receivers, receiver.name, receiverText(receiver));
    }
    // Those that were made through the API are no config's.
    for (const name of await this.#redis.hkeys(this.#keys.addedReceivers)) names.add(name);
    for (const stored of await this.receivers()) {
      if (names.has(stored.name) || stored.removed) continue;
      await this.#redis.hset(this.#keys.receivers, stored.name, JSON.stringify({ ...stored, removed: true }));
    }
  }

  /** Definitions of subscriptions; one that left the config is marked and stays for its committed events. */
  async #syncSubscriptions(wanted: Wanted['subscriptions']): Promise<void> {
    const definitions = definitionsOf(wanted);
    const nowMs = await redisTimeMs(this.#redis);
    for (const [name, text] of Object.entries(await this.#redis.hgetall(this.#keys.subscriptions))) {
      if (definitions.has(name)) continue;
      const stored = this.#definitions.subscription(name, text);
      if (stored === null) await this.#redis.hdel(this.#keys.subscriptions, name);
      if (stored === null || stored.removedAtMs !== null) continue;
      await this.#redis.hset(
        this.#keys.subscriptions,
        name,
        JSON.stringify({ ...stored, removedAtMs: nowMs }),
      );
    }
    for (const [name, definition] of definitions) {
      await this.#redis.hset(this.#keys.subscriptions, name, JSON.stringify(definition));
    }
  }

  /** What the names of routes mean, to every process alike: a route's prices are compared with each other. */
  async #syncRoutes(routes: readonly RouteDefinition[]): Promise<void> {
    const names = new Set(routes.map((route) => route.name));
    const unwanted = (await this.#redis.hkeys(this.#keys.routes)).filter((name) => !names.has(name));
    for (const route of routes) {
      await this.#redis.hset(this.#keys.routes, route.name, JSON.stringify(route));
    }
    for (const name of unwanted) await this.#redis.hdel(this.#keys.routes, name);
  }

  /** What a route's name means, from its stored text; null for one of another shape that this config does not have. */
  async readRoute(name: string, text: string): Promise<RouteDefinition | null> {
    const route = this.#definitions.route(name, text);
    if (route !== null) return route;
    const own = this.#own.routes.find((one) => one.name === name) ?? null;
    if (own !== null) await this.#redis.hset(this.#keys.routes, name, JSON.stringify(own));
    return own;
  }

  /** Takes roots out. What they named is taken off the schedule by its next poll, and kept for the retention. */
  async #unwant(roots: readonly string[]): Promise<void> {
    await this.#redis.hdel(this.#keys.wanted, ...roots);
    await this.#redis.hdel(this.#keys.since, ...roots);
    await Promise.all(roots.map((root) => this.#subjects.expire(asSubjectId(parseClaimRoot(root).subject))));
  }

  /** Claims again what is tracked by itself, where that was lost. */
  async wantTracked(subjects: readonly SubjectId[]): Promise<void> {
    const roots = subjects.map((subject) => [trackedRoot(subject), subject] as const);
    for (const [surface, some] of Map.groupBy(roots, ([, subject]) => surfaceOf(subject))) {
      for (const chunk of chunks(some, CHUNK)) await this.#want(surface, chunk);
    }
  }

  async #want(surface: Surface, chunk: readonly (readonly [string, SubjectId])[]): Promise<void> {
    const keys = this.#keys;
    const prefixes = [keys.claims(''), keys.subject('')];
    await this.#redis.iwWant(keys.wanted, keys.plan(surface), ...prefixes, '', ...chunk.flat());
  }

  /** Whether nothing is wanted but what is tracked by itself: where a config names something, that was lost. */
  async isForgotten(): Promise<boolean> {
    const { wanted, tracked, trackingEnded } = this.#keys;
    const replies = await this.#redis.multi().hlen(wanted).hlen(tracked).zcard(trackingEnded).exec();
    const [roots, known, ended] = COUNTS.parse(replies?.map(([, count]) => count));
    return roots <= known - ended;
  }

  /** The digest of the newest config that any process on this Redis runs. */
  async newestDigest(): Promise<string | null> {
    return this.#redis.hget(this.#keys.config, 'digest');
  }

  /** All receivers that ever were, in no order. */
  async receivers(): Promise<StoredReceiver[]> {
    const known: StoredReceiver[] = [];
    for (const [name, text] of Object.entries(await this.#redis.hgetall(this.#keys.receivers))) {
      const receiver = this.#definitions.receiver(name, text) ?? (await this.#rewriteReceiver(name));
      if (receiver !== null) known.push(receiver);
    }
    return known;
  }

  /** Writes an entry of another shape anew, if this process knows the receiver. */
  async #rewriteReceiver(name: string): Promise<StoredReceiver | null> {
    const own = this.#own.receivers.find((one) => one.name === name);
    if (own === undefined) return null;
    await this.#redis.hset(this.#keys.receivers, name, receiverText(own));
    return { ...own, removed: false };
  }

  /** The subscriptions that some claims' roots speak of, by name; also those that left the config. */
  async subscriptions(roots: readonly string[]): Promise<Map<string, StoredSubscription>> {
    const names = [...new Set(roots.map((root) => parseClaimRoot(root).subscription))];
    const texts = await Promise.all([
      this.#texts(
        this.#keys.subscriptions,
        names.filter((name) => !isTrackedRoot(name)).map((name) => ({ name, field: name })),
      ),
      this.#texts(
        this.#keys.tracked,
        names.filter(isTrackedRoot).map((name) => ({ name, field: parseClaimRoot(name).subject })),
      ),
    ]);
    return this.readSubscriptions(texts.flat());
  }

  /** The stored texts of some definitions, by name. */
  async #texts(
    key: string,
    wanted: readonly { name: string; field: string }[],
  ): Promise<(readonly [string, string])[]> {
    if (wanted.length === 0) return [];
    const stored = await this.#redis.hmget(key, ...wanted.map(({ field }) => field));
    return wanted.flatMap(({ name }, index) => {
      const text = stored[index] ?? null;
      return text === null ? [] : [[name, text] as const];
    });
  }

  /** Subscriptions from their stored texts, by name. One of another shape is written anew, if this config has it. */
  async readSubscriptions(
    texts: Iterable<readonly [string, string]>,
  ): Promise<Map<string, StoredSubscription>> {
    const known = new Map<string, StoredSubscription>();
    for (const [name, text] of texts) {
      const subscription =
        this.#definitions.subscription(name, text) ?? (await this.#rewriteSubscription(name));
      if (subscription !== null) known.set(name, subscription);
    }
    return known;
  }

  async #rewriteSubscription(name: string): Promise<StoredSubscription | null> {
    const own = this.#own.subscriptions.get(name) ?? null;
    if (own === null) return null;
    await this.#redis.hset(this.#keys.subscriptions, name, JSON.stringify(own));
    return own;
  }

  /** Forgets subscriptions that left the config before a moment (Redis time, ms): their events are gone as well. */
  async prune(beforeMs: number): Promise<void> {
    for (const [name, text] of Object.entries(await this.#redis.hgetall(this.#keys.subscriptions))) {
      const removedAtMs = this.#definitions.subscription(name, text)?.removedAtMs ?? null;
      if (removedAtMs !== null && removedAtMs < beforeMs)
        await this.#redis.hdel(this.#keys.subscriptions, name);
    }
  }

  /**
   * When a root was subscribed on the upstream's clock, in seconds. `dateMs` is the `Date` of an answer that has just
   * come; the first process that can tell decides.
   */
  async subscribedAt(claim: { root: string; atMs: number }, dateMs: number | null): Promise<number> {
    return Number(
      await this.#redis.iwSince(this.#keys.since, claim.root, String(claim.atMs), String(dateMs ?? '')),
    );
  }

  /**
   * The number of tracked subjects by kind and status, in lower case, where an answer has shown one. Wallets have none.
   */
  async counts(): Promise<{ kind: string; status: string; count: number }[]> {
    const stored = await this.#redis.hgetall(this.#keys.counts);
    return Object.entries(stored).map(([key, count]) => {
      const bar = key.indexOf('|');
      return { kind: key.slice(0, bar), status: key.slice(bar + 1), count: Number(count) };
    });
  }
}

const COUNTS = z.tuple([z.number(), z.number(), z.number()]);

/** So many roots go into one script. */
const CHUNK = 200;

/** What is stored of subscriptions, by name. */
function definitionsOf(wanted: Wanted['subscriptions']): Map<string, StoredSubscription> {
  return new Map(
    wanted.map(({ subjects: _, ...definition }, order) => [
      definition.name,
      { ...definition, order, removedAtMs: null },
    ]),
  );
}
