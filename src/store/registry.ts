import { z } from 'zod';
import type { RouteDefinition } from '../domain/quotes/route.ts';
import { endpointGroupOf } from '../domain/subjects/kinds.ts';
import { asSubjectId, routeId, type SubjectId } from '../domain/subjects/subject.ts';
import { claimKey, isTrackedKey, parseClaimKey, trackedKey } from '../domain/subjects/subscription.ts';
import {
  type ContinuedKey,
  partKeys,
  planKeys,
  planSuspensions,
  type StoredKey,
  type SubscribedSubject,
  type SuspendedState,
} from '../domain/subjects/suspended-roots.ts';
import { chunks } from './chunks.ts';
import type { RedisClient } from './commands.ts';
import { readStamp } from './confirmed-time.ts';
import {
  Definitions,
  type Joining,
  joinedReceivers,
  type PresentReceiver,
  receiverText,
  type StoredReceiver,
  type StoredSubscription,
} from './definitions.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';
import type { OnForeign } from './stored.ts';
import type { SubjectStore } from './subjects.ts';
import { Suspensions } from './suspensions.ts';

/**
 * The content of a config: its subscriptions with their subjects, its routes, each once, and its receivers, of which
 * `addedReceivers` names those that were made through the API. `graceSpanMs`: length of a suspension.
 */
export type Desired = {
  digest: string;
  graceSpanMs: number;
  receivers: PresentReceiver[];
  addedReceivers?: ReadonlySet<string>;
  routes: readonly RouteDefinition[];
  subscriptions: (Omit<StoredSubscription, 'order' | 'awayReceivers' | 'joined' | 'removedAtMs'> & {
    subjects: SubjectId[];
  })[];
};

/** The subscriptions and receivers, shared by all processes on one Redis. */
export class Registry {
  readonly suspensions: Suspensions;
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #subjects: SubjectStore;
  readonly #definitions: Definitions;
  /** The definitions of this process's last sync: a stored entry of another shape is rewritten from them. */
  #own: {
    receivers: readonly PresentReceiver[];
    routes: readonly RouteDefinition[];
    addedReceivers: ReadonlySet<string>;
    subscriptions: Map<string, StoredSubscription>;
  } = {
    receivers: [],
    addedReceivers: new Set(),
    routes: [],
    subscriptions: new Map(),
  };

  /** Time of the next check of the removed subscription keys, own clock: there can be as many as wallets. */
  #pruneContinuedAtMs = 0;

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
    this.suspensions = new Suspensions(redis, keys, subjects);
  }

  /**
   * Syncs the registry with a config. New receivers come first, with a cursor at the end of the log, so that no event of a new
   * subscription is before its receiver's cursor. Receivers that come back are written last, before their subscription keys:
   * the relay would move them past events of subscriptions that do not name them yet. The last sync has the newest config, and
   * only it removes; the others see that by the digest. A repeated sync changes nothing. New subjects are polled soon.
   *
   * The order is safe for a crash between any two steps: keys are continued while their predecessors are still wanted, and by
   * definitions that still have their receivers.
   */
  async sync(wanted: Desired, newestEntry: string): Promise<void> {
    this.#take(wanted);
    const returning = await this.#syncReceivers(wanted.receivers, newestEntry);
    const claimKeys = new Map<string, SubjectId>();
    for (const subscription of wanted.subscriptions) {
      for (const subject of subscription.subjects)
        claimKeys.set(claimKey(subscription.name, subject), subject);
    }
    const named = namedSubjects(wanted);
    await this.#partKeys(wanted, named);
    const { stored, known, suspended, storedKeys } = await this.#stored();
    const { continued: goesOn, stays } = planKeys(storedKeys, named);
    const present = new Set(wanted.receivers.map(({ name }) => name));
    const reload = { stored: storedKeys, named, continued: goesOn, stays, suspended, present };
    const leaving = planSuspensions(reload, { isGraced: wanted.graceSpanMs > 0 });
    const ended = new Set(leaving.ended);
    // Suspended subscription keys are wanted like those that stay.
    const remaining = new Set(
      [...known.keys(), ...leaving.narrowed.map(({ key }) => key)].filter((key) => !ended.has(key)),
    );
    const continued = [...goesOn, ...leaving.narrowed];
    await this.#addSubscriptions(wanted.subscriptions);
    const making = await this.suspensions.begin(leaving);
    // The definitions that are written next no longer have the receivers of these.
    if (making !== null) await this.suspensions.mark(making.out, leaving.out.filter(isNarrowed));
    // A receiver that joins a subscription in the sync that continues a key under it has the start of that key.
    const stampMs = await readStamp(this.#redis, this.#keys);
    await this.#noteContinued(continued, {
      isWanted: (key) => claimKeys.has(key) || remaining.has(key),
      stampMs,
    });
    await this.#addSubscriptionKeys(
      continued.map(({ key, subject, atMs, from: [from = ''] }) => ({
        root: key,
        subject,
        at: String(atMs),
        from,
      })),
    );
    const isBack = new Set(returning.map(({ name }) => name));
    const at = { entry: newestEntry, atMs: stampMs };
    await this.#syncSubscriptions(wanted, { at, isBack, before: receiversBySubject(storedKeys) });
    await this.#writeReceivers(returning);
    await this.#syncRoutes(wanted.routes, new Set([...remaining].map((key) => parseClaimKey(key).subject)));
    if (making !== null) await this.suspensions.mark(making.out, leaving.out);
    const stillNamed = new Set([
      ...claimKeys.values(),
      ...[...remaining].map((key) => parseClaimKey(key).subject),
    ]);
    const unwanted = stored.map(([key]) => key).filter((key) => !claimKeys.has(key) && !remaining.has(key));
    for (const chunk of chunks(unwanted, CHUNK)) await this.#unwant(chunk, stillNamed);
    await this.#noteNewest(wanted.digest);
    const isContinued = new Set(continued.map(({ key }) => key));
    const missing = [...claimKeys].filter(([key]) => !known.has(key) && !isContinued.has(key));
    const { epoch } = this.#subjects;
    await this.#addSubscriptionKeys(
      missing.map(([key, subject]) => ({
        root: key,
        subject,
        at: String(epoch.startOf(key) ?? ''),
        from: '',
      })),
    );
    epoch.starts = new Map([...known, ...(await this.#startsOf(missing.map(([key]) => key)))]);
    await this.suspensions.complete(making);
  }

  /** Reads the wanted subscription keys of all earlier configs, with those of them that are suspended. */
  async #stored(): Promise<{
    stored: [string, string][];
    known: Map<string, number>;
    suspended: Map<string, SuspendedState>;
    storedKeys: StoredKey[];
  }> {
    // A subscription key whose time is of another shape is wanted anew. Subjects tracked by themselves belong to no config.
    const stored = Object.entries(await this.#redis.hgetall(this.#keys.wanted)).filter(
      ([key]) => !isTrackedKey(key),
    );
    const known = new Map(stored.flatMap(([key, at]) => (/^\d+$/.test(at) ? [[key, Number(at)]] : [])));
    const suspended = await this.suspensions.states();
    return { stored, known, suspended, storedKeys: await this.#storedKeys(known, suspended) };
  }

  /**
   * Splits the subscription keys whose subscription has lost some of their receivers (see `partKeys`), by the definitions
   * that still have them: a crash between any two steps leaves keys that count for the same receivers.
   */
  async #partKeys(wanted: Desired, named: readonly SubscribedSubject[]): Promise<void> {
    const { storedKeys, suspended, known } = await this.#stored();
    const receivers = new Map(wanted.subscriptions.map((one) => [one.name, one.receivers]));
    const isGraced = wanted.graceSpanMs > 0;
    const parts = partKeys({ stored: storedKeys, named, suspended, receivers }, { isGraced });
    if (parts.length === 0) return;
    const stampMs = await readStamp(this.#redis, this.#keys);
    await this.#noteContinued(parts, { isWanted: (key) => known.has(key), stampMs });
    await this.#addSubscriptionKeys(
      parts.map(({ key, subject, atMs, from: [from = ''] }) => ({
        root: key,
        subject,
        at: String(atMs),
        from,
      })),
    );
    await this.suspensions.part(parts);
    const wholes = [...new Set(parts.flatMap(({ from }) => from))];
    for (const chunk of chunks(wholes, CHUNK)) {
      await this.#redis.hdel(this.#keys.wanted, ...chunk);
      await this.#redis.hdel(this.#keys.since, ...chunk);
    }
  }

  async #noteNewest(digest: string): Promise<void> {
    const { config } = this.#keys;
    const revision = await this.#redis.hincrby(config, 'generation', 1);
    await this.#redis.hset(config, 'digest', digest);
    this.#subjects.epoch.noteRevision(revision, digest);
  }

  async #startsOf(claimKeys: readonly string[]): Promise<[string, number][]> {
    const found: [string, number][] = [];
    for (const chunk of chunks(claimKeys, CHUNK)) {
      const starts = await this.#redis.hmget(this.#keys.wanted, ...chunk);
      for (const [index, key] of chunk.entries()) found.push([key, Number(starts[index])]);
    }
    return found;
  }

  async #storedKeys(
    known: ReadonlyMap<string, number>,
    suspended: ReadonlyMap<string, SuspendedState>,
  ): Promise<StoredKey[]> {
    const definitions = await this.subscriptions([...known.keys()]);
    return [...known].map(([key, atMs]) => {
      const { subscription, receivers: narrowed } = parseClaimKey(key);
      const all = definitions.get(subscription)?.receivers ?? [];
      // A suspended subscription key counts for its own receivers, whatever its subscription has meanwhile.
      if (narrowed !== null && suspended.has(key)) return { key, atMs, receivers: narrowed };
      return {
        key,
        atMs,
        receivers: narrowed === null ? all : all.filter((name) => narrowed.includes(name)),
      };
    });
  }

  /**
   * Writes the subscription keys that continue removed ones. After several reloads each key leads to those that are wanted
   * now; also one that came back with a later start: a transfer that was not polled meanwhile has its claim from before.
   */
  async #noteContinued(
    continued: readonly ContinuedKey[],
    { isWanted, stampMs }: { isWanted: (key: string) => boolean; stampMs: number },
  ): Promise<void> {
    const key = this.#keys.continued;
    const stored = await this.#redis.hgetall(key);
    const next = new Map<string, Set<string>>();
    for (const { key, from } of continued) {
      for (const left of from) next.set(left, (next.get(left) ?? new Set()).add(key));
    }
    const changed: [string, string][] = [];
    const over: string[] = [];
    for (const left of new Set([...Object.keys(stored), ...next.keys()])) {
      const [atMs = '', ...before] = stored[left]?.split('\n') ?? [];
      // A subscription key that is continued for readers of the log alone may itself stay, suspended.
      const later = before.flatMap((key) => [...(next.get(key) ?? []), ...(isWanted(key) ? [key] : [])]);
      const claimKeys = new Set([...(next.get(left) ?? []), ...later]);
      claimKeys.delete(left);
      const text = [next.has(left) ? stampMs : atMs, ...claimKeys].join('\n');
      if (claimKeys.size === 0) over.push(left);
      else if (text !== stored[left]) changed.push([left, text]);
    }
    for (const chunk of chunks(over, CHUNK)) await this.#redis.hdel(key, ...chunk);
    for (const chunk of chunks(changed, CHUNK)) await this.#redis.hset(key, ...chunk.flat());
  }

  /**
   * Sets this process's definitions without writing them. Only the API's receivers are written: every process writes those it
   * read last, and so the newest is stored in the end.
   */
  async adopt(wanted: Desired): Promise<void> {
    this.#take(wanted);
    await this.#syncAdded();
  }

  #take({ receivers, addedReceivers = new Set(), routes, subscriptions }: Desired): void {
    this.#own = { receivers, addedReceivers, routes, subscriptions: definitionsOf(subscriptions) };
  }

  async #syncAdded(): Promise<void> {
    for (const receiver of this.#own.receivers) {
      const { name } = receiver;
      if (!this.#own.addedReceivers.has(name)) continue;
      const args = { name, definition: receiverText(receiver) };
      await scripts.syncAddedReceiver(this.#redis, { keys: this.#keys, args });
    }
  }

  /** Writes all receivers but those that had been removed from the config and come back; returns these. */
  async #syncReceivers(receivers: Desired['receivers'], newestEntry: string): Promise<Desired['receivers']> {
    const names = new Set(receivers.map((receiver) => receiver.name));
    await this.#syncAdded();
    const stored = await this.receivers();
    const left = new Set(stored.flatMap(({ name, removed }) => (removed ? [name] : [])));
    const own = receivers.filter(({ name }) => !this.#own.addedReceivers.has(name));
    for (const { name } of own) await this.#redis.hsetnx(this.#keys.cursors, name, newestEntry);
    await this.#writeReceivers(own.filter(({ name }) => !left.has(name)));
    // Receivers that were made through the API belong to no config.
    for (const name of await this.#redis.hkeys(this.#keys.addedReceivers)) names.add(name);
    for (const receiver of stored) {
      if (names.has(receiver.name) || receiver.removed) continue;
      const text = JSON.stringify({ ...receiver, removed: true });
      await this.#redis.hset(this.#keys.receivers, receiver.name, text);
    }
    return own.filter(({ name }) => left.has(name));
  }

  async #writeReceivers(receivers: Desired['receivers']): Promise<void> {
    for (const receiver of receivers) {
      await this.#redis.hset(this.#keys.receivers, receiver.name, receiverText(receiver));
    }
  }

  /** Stores the definitions of new subscriptions, before their subscription keys. */
  async #addSubscriptions(wanted: Desired['subscriptions']): Promise<void> {
    for (const [name, definition] of definitionsOf(wanted)) {
      await this.#redis.hsetnx(this.#keys.subscriptions, name, JSON.stringify(definition));
    }
  }

  /**
   * Stores the definitions of subscriptions; one removed from the config is marked and stays for its committed events. A receiver
   * removed from the config stays noted with its subscriptions until it is back: one of them may be renamed meanwhile, and its
   * receivers still get its earlier events. A receiver that joins a subscription gets its events behind the newest entry; one that
   * is back in the config goes on from its place, whatever it was in: a restore may have lost that.
   */
  async #syncSubscriptions({ subscriptions, receivers }: Desired, sync: Joining): Promise<void> {
    const definitions = definitionsOf(subscriptions);
    const subjects = new Map(subscriptions.map((one) => [one.name, one.subjects]));
    const present = new Set(receivers.map(({ name }) => name));
    for (const [name, text] of Object.entries(await this.#redis.hgetall(this.#keys.subscriptions))) {
      const stored = this.#definitions.subscription(name, text);
      const definition = definitions.get(name);
      if (definition !== undefined) {
        const had = stored === null ? [] : [...stored.receivers, ...stored.awayReceivers];
        const awayReceivers = [...new Set(had)].filter((receiver) => !present.has(receiver));
        const next = { receivers: definition.receivers, subjects: subjects.get(name) ?? [] };
        const joined = stored === null ? {} : joinedReceivers(stored, next, sync);
        definitions.set(name, { ...definition, awayReceivers, joined });
        continue;
      }
      if (stored === null) await this.#redis.hdel(this.#keys.subscriptions, name);
      if (stored === null || stored.removedAtMs !== null) continue;
      await this.#redis.hset(
        this.#keys.subscriptions,
        name,
        JSON.stringify({ ...stored, removedAtMs: sync.at.atMs }),
      );
    }
    for (const [name, definition] of definitions) {
      await this.#redis.hset(this.#keys.subscriptions, name, JSON.stringify(definition));
    }
  }

  /**
   * Stores routes, equal for every process, since their prices are compared. A suspended one stays, since it is still polled.
   */
  async #syncRoutes(routes: readonly RouteDefinition[], remaining: ReadonlySet<string>): Promise<void> {
    const names = new Set(routes.map((route) => route.name));
    const stored = Object.entries(await this.#redis.hgetall(this.#keys.routes));
    const unwanted = stored.flatMap(([name, text]) => {
      const route = names.has(name) ? null : this.#definitions.route(name, text);
      return names.has(name) || (route !== null && remaining.has(routeId(route))) ? [] : [name];
    });
    for (const route of routes) {
      await this.#redis.hset(this.#keys.routes, route.name, JSON.stringify(route));
    }
    for (const name of unwanted) await this.#redis.hdel(this.#keys.routes, name);
  }

  /** Reads the definition of a route from its stored text; null for one of another shape that this config does not have. */
  async readRoute(name: string, text: string): Promise<RouteDefinition | null> {
    const route = this.#definitions.route(name, text);
    if (route !== null) return route;
    const own = this.#own.routes.find((one) => one.name === name) ?? null;
    if (own !== null) await this.#redis.hset(this.#keys.routes, name, JSON.stringify(own));
    return own;
  }

  /** Removes subscription keys. The next poll of an unnamed subject ends its tracking; it is stored for the retention. */
  async #unwant(claimKeys: readonly string[], named: ReadonlySet<string>): Promise<void> {
    await this.#redis.hdel(this.#keys.wanted, ...claimKeys);
    await this.#redis.hdel(this.#keys.since, ...claimKeys);
    const subjects = claimKeys.map((key) => asSubjectId(parseClaimKey(key).subject));
    await Promise.all(
      subjects.filter((subject) => !named.has(subject)).map((one) => this.#subjects.expire(one)),
    );
  }

  /** Returns the subjects of a kind that a subscription names, or named until it was suspended. */
  async namedOf(kind: string): Promise<Set<string>> {
    const claimKeys = (await this.#redis.hkeys(this.#keys.wanted)).filter((key) => !isTrackedKey(key));
    const subjects = claimKeys.map((key) => parseClaimKey(key).subject);
    return new Set(subjects.filter((subject) => subject.startsWith(`${kind}:`)));
  }

  /** Claims subjects that are tracked by themselves again, where their claims were lost. */
  async wantTracked(subjects: readonly SubjectId[]): Promise<void> {
    await this.#addSubscriptionKeys(
      subjects.map((subject) => ({ root: trackedKey(subject), subject, at: '', from: '' })),
    );
  }

  async #addSubscriptionKeys(claimKeys: readonly WantedKey[]): Promise<void> {
    const { wanted, since } = this.#keys;
    const [claimsPrefix, subjectPrefix] = [this.#keys.claims(''), this.#keys.subject('')];
    for (const [endpointGroup, some] of Map.groupBy(claimKeys, ({ subject }) => endpointGroupOf(subject))) {
      const keys = { wanted, plan: this.#keys.plan(endpointGroup) };
      for (const chunk of chunks(some, CHUNK)) {
        const args = { claimsPrefix, subjectPrefix, atMs: null, since, named: chunk };
        await scripts.addSubscriptionKeys(this.#redis, { keys, args });
      }
    }
  }

  /** True when only subjects that are tracked by themselves are wanted: where a config names something, that was lost. */
  async isLost(): Promise<boolean> {
    const { wanted, tracked, trackingEnded } = this.#keys;
    const replies = await this.#redis.multi().hlen(wanted).hlen(tracked).zcard(trackingEnded).exec();
    const [claimKeys, known, ended] = COUNTS.parse(replies?.map(([, count]) => count));
    return claimKeys <= known - ended;
  }

  /** Omits subjects that are tracked by themselves, and receivers that were made through the API. */
  async named(): Promise<{ subjects: string[]; receivers: string[] }> {
    const suspended = await this.suspensions.states();
    const claimKeys = (await this.#redis.hkeys(this.#keys.wanted)).filter(
      (key) => !isTrackedKey(key) && suspended.get(key)?.state !== 'out',
    );
    const added = new Set(await this.#redis.hkeys(this.#keys.addedReceivers));
    const receivers = (await this.receivers()).filter(({ name, removed }) => !removed && !added.has(name));
    return {
      subjects: claimKeys.map((key) => parseClaimKey(key).subject),
      receivers: receivers.map(({ name }) => name),
    };
  }

  async newestDigest(): Promise<string | null> {
    return this.#redis.hget(this.#keys.config, 'digest');
  }

  /** Returns all receivers that are stored, also removed ones, unordered. */
  async receivers(): Promise<StoredReceiver[]> {
    const known: StoredReceiver[] = [];
    for (const [name, text] of Object.entries(await this.#redis.hgetall(this.#keys.receivers))) {
      const receiver = this.#definitions.receiver(name, text) ?? (await this.#rewriteReceiver(name));
      if (receiver !== null) known.push(receiver);
    }
    return known;
  }

  async #rewriteReceiver(name: string): Promise<StoredReceiver | null> {
    const own = this.#own.receivers.find((one) => one.name === name);
    if (own === undefined) return null;
    await this.#redis.hset(this.#keys.receivers, name, receiverText(own));
    return { ...own, removed: false };
  }

  /**
   * Returns the subscription keys that continue removed ones, and the time since when they do (Redis time, ms). Omits suspended
   * keys, and those of a key that is back.
   */
  async continuing(claimKeys: readonly string[]): Promise<Map<string, Continuing>> {
    const distinct = [...new Set(claimKeys)];
    if (distinct.length === 0) return new Map();
    const { continued, wanted, suspended } = this.#keys;
    const stored = await this.#redis.hmget(continued, ...distinct);
    const found = distinct.flatMap((key, index) => {
      const [atMs = '', ...next] = stored[index]?.split('\n') ?? [];
      return next.length === 0 ? [] : [{ key, next, atMs: Number(atMs) }];
    });
    if (found.length === 0) return new Map();
    const named = [...new Set(found.flatMap(({ key, next }) => [key, ...next]))];
    const [at, out] = await Promise.all([
      this.#redis.hmget(wanted, ...named),
      this.#redis.hmget(suspended, ...named),
    ]);
    const isWanted = new Set(named.filter((_, index) => at[index] !== null));
    const isOut = new Set(named.filter((_, index) => out[index] !== null));
    return new Map(
      found.flatMap(({ key, next, atMs }): [string, Continuing][] => {
        if (isWanted.has(key)) return [];
        return [[key, { roots: next.filter((one) => isWanted.has(one) && !isOut.has(one)), atMs }]];
      }),
    );
  }

  /** Returns the subscriptions of some claims' subscription keys, by name; also those removed from the config. */
  async subscriptions(claimKeys: readonly string[]): Promise<Map<string, StoredSubscription>> {
    const names = [...new Set(claimKeys.map((key) => parseClaimKey(key).subscription))];
    const texts = await Promise.all([
      this.#texts(
        this.#keys.subscriptions,
        names.filter((name) => !isTrackedKey(name)).map((name) => ({ name, field: name })),
      ),
      this.#texts(
        this.#keys.tracked,
        names.filter(isTrackedKey).map((name) => ({ name, field: parseClaimKey(name).subject })),
      ),
    ]);
    return this.readSubscriptions(texts.flat());
  }

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

  /** Reads subscriptions from their stored texts, by name. One of another shape is rewritten, if this config has it. */
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

  /** Removes subscriptions that were removed from the config before a time (ms): their events are gone as well. */
  async prune(beforeMs: number): Promise<void> {
    for (const [name, text] of Object.entries(await this.#redis.hgetall(this.#keys.subscriptions))) {
      const removedAtMs = this.#definitions.subscription(name, text)?.removedAtMs ?? null;
      if (removedAtMs !== null && removedAtMs < beforeMs)
        await this.#redis.hdel(this.#keys.subscriptions, name);
    }
    await this.#pruneContinued(beforeMs);
  }

  async #pruneContinued(beforeMs: number): Promise<void> {
    if (performance.now() < this.#pruneContinuedAtMs) return;
    this.#pruneContinuedAtMs = performance.now() + PRUNE_CONTINUED_EVERY_MS;
    const { continued } = this.#keys;
    for (const [key, text] of Object.entries(await this.#redis.hgetall(continued))) {
      if (!(Number(text.split('\n')[0]) >= beforeMs)) await this.#redis.hdel(continued, key);
    }
  }

  /** Returns a key's subscription time on the upstream's clock. `dateMs`: `Date` of a response; the first process decides. */
  async subscribedAt(claim: { key: string; atMs: number }, dateMs: number | null): Promise<SubscribedAt> {
    const args = { key: claim.key, atMs: claim.atMs, dateMs };
    return scripts.resolveSubscriptionStart(this.#redis, { keys: this.#keys, args });
  }

  /** Counts the tracked subjects by kind and status, in lower case, where a response has shown one. Wallets have none. */
  async counts(): Promise<{ kind: string; status: string; count: number }[]> {
    const stored = await this.#redis.hgetall(this.#keys.counts);
    return Object.entries(stored).map(([key, count]) => {
      const bar = key.indexOf('|');
      return { kind: key.slice(0, bar), status: key.slice(bar + 1), count: Number(count) };
    });
  }
}

/** Range of a subscription's time on the upstream's clock, seconds; equal ends where known. `news`: the newly known part. */
export type SubscribedAt = Awaited<ReturnType<typeof scripts.resolveSubscriptionStart>>;

/** A subscription key to be wanted: its start (ms as text, empty for now), and the key that it continues (empty: none). */
type WantedKey = { root: string; subject: SubjectId; at: string; from: string };

function namedSubjects({ subscriptions }: Desired): SubscribedSubject[] {
  return subscriptions.flatMap(({ name, receivers, subjects }) =>
    subjects.map((subject) => ({ subscription: name, receivers, subject })),
  );
}

const COUNTS = z.tuple([z.number(), z.number(), z.number()]);

const PRUNE_CONTINUED_EVERY_MS = 3_600_000;

function isNarrowed(key: string): boolean {
  return parseClaimKey(key).receivers !== null;
}

const CHUNK = 200;

function definitionsOf(wanted: Desired['subscriptions']): Map<string, StoredSubscription> {
  return new Map(
    wanted.map(({ subjects: _, ...definition }, order) => [
      definition.name,
      { ...definition, order, awayReceivers: [], joined: {}, removedAtMs: null },
    ]),
  );
}

/** Subscription keys that continue another one, and the time since when they do, ms of Redis time. */
export type Continuing = { roots: string[]; atMs: number };

/** Maps each subject to the receivers that it had before a sync. */
function receiversBySubject(stored: readonly StoredKey[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { key, receivers } of stored) {
    const { subject } = parseClaimKey(key);
    const some = found.get(subject) ?? new Set();
    found.set(subject, some);
    for (const name of receivers) some.add(name);
  }
  return found;
}
