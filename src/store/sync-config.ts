import type { RouteDefinition } from '../domain/quotes/route.ts';
import { routeId, type SubjectId } from '../domain/subjects/subject.ts';
import { claimKey, isTrackedKey, parseClaimKey } from '../domain/subjects/subscription.ts';
import {
  partKeys,
  planKeys,
  planSuspensions,
  type StoredKey,
  type SubscribedSubject,
} from '../domain/subjects/suspended-keys.ts';
import { chunks } from './commands.ts';
import { readStamp } from './confirmed-time.ts';
import {
  type Joining,
  membersOf,
  type PresentReceiver,
  receiverText,
  type StoredSubscription,
} from './definitions.ts';
import type { Fence } from './lease.ts';
import type { Registry } from './registry.ts';
import { scripts } from './scripts.ts';
import {
  addSubscriptionKeys,
  continueKeys,
  removeSubscriptionKeys,
  type SyncedRegistry,
  startsOf,
} from './subscription-keys.ts';

const CHUNK = 200;

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
  subscriptions: (Omit<StoredSubscription, 'order' | 'awayReceivers' | 'joined' | 'left' | 'removedAtMs'> & {
    subjects: SubjectId[];
  })[];
};

/**
 * Syncs the registry with a config. New receivers come first, with a cursor at the end of the log, so that no event of a new
 * subscription is before its receiver's cursor. Receivers that come back are written last, before their subscription keys:
 * the relay would move them past events of subscriptions that do not name them yet. The last sync has the newest config, and
 * only it removes; the others see that by the digest. A repeated sync changes nothing. New subjects are polled soon.
 *
 * The order is safe for a crash between any two steps: keys are continued while their predecessors are still wanted, and by
 * definitions that still have their receivers.
 *
 * Every write is refused once another process has acquired the lease, which may have synced a newer config: then this throws a
 * LeaseLostError.
 */
export async function syncConfig(
  registry: Registry,
  wanted: Desired,
  { newestEntry, fence }: { newestEntry: string; fence: Fence },
): Promise<void> {
  const synced = { registry, fence };
  const { redis, keys, suspensions } = registry;
  const { epoch } = registry.subjects;
  await adoptConfig(registry, wanted);
  const returning = await syncReceivers(synced, wanted, newestEntry);
  const named = wanted.subscriptions.flatMap(({ name, receivers, subjects }) =>
    subjects.map((subject) => ({ subscription: name, receivers, subject })),
  );
  const claimKeys = new Map(named.map((one) => [claimKey(one.subscription, one.subject), one.subject]));
  await splitKeys(synced, wanted, named);
  const { stored, times, suspended, storedKeys } = await readWanted(registry);
  const { continued: goesOn, stays } = planKeys(storedKeys, named);
  const present = new Set(wanted.receivers.map(({ name }) => name));
  const reload = { stored: storedKeys, named, continued: goesOn, stays, suspended, present };
  const leaving = planSuspensions(reload, { isGraced: wanted.graceSpanMs > 0 });
  const ended = new Set(leaving.ended);
  // Suspended subscription keys are wanted like those that stay.
  const remaining = new Set(
    [...times.keys(), ...leaving.narrowed.map(({ key }) => key)].filter((key) => !ended.has(key)),
  );
  const continued = [...goesOn, ...leaving.narrowed];
  // The definitions of new subscriptions are stored before their subscription keys.
  const defined = [...registry.definitions.own.subscriptions];
  for (const chunk of chunks(defined, CHUNK))
    await fence.write(
      chunk.map(([name, definition]) => ['HSETNX', keys.subscriptions, name, JSON.stringify(definition)]),
    );
  const making = await suspensions.begin(leaving, fence);
  // The definitions that are written next no longer have the receivers of these.
  const narrowed = leaving.out.filter((key) => parseClaimKey(key).receivers !== null);
  if (making !== null) await suspensions.mark(making.out, narrowed, fence);
  // A receiver that joins a subscription in the sync that continues a key under it has the start of that key.
  const stampMs = await readStamp(redis, keys);
  await continueKeys(synced, continued, {
    isWanted: (key) => claimKeys.has(key) || remaining.has(key),
    stampMs,
  });
  await syncSubscriptions(synced, wanted, {
    at: { entry: newestEntry, atMs: stampMs },
    graceSpanMs: wanted.graceSpanMs,
    isBack: new Set(returning.map(({ name }) => name)),
    before: receiversBySubject(storedKeys),
  });
  await writeReceivers(synced, returning);
  const remainingSubjects = new Set([...remaining].map((key) => parseClaimKey(key).subject));
  await syncRoutes(synced, wanted.routes, remainingSubjects);
  if (making !== null) await suspensions.mark(making.out, leaving.out, fence);
  const unwanted = stored.map(([key]) => key).filter((key) => !claimKeys.has(key) && !remaining.has(key));
  await removeSubscriptionKeys(synced, unwanted, new Set([...claimKeys.values(), ...remainingSubjects]));
  const revision = await fence.write([['HINCRBY', keys.config, 'generation', '1']]);
  // Later: where the count is refused, the config before is still the newest.
  await fence.write([['HSET', keys.config, 'digest', wanted.digest]]);
  epoch.noteRevision(Number(revision), wanted.digest);
  const isContinued = new Set(continued.map(({ key }) => key));
  const missing = [...claimKeys].filter(([key]) => !times.has(key) && !isContinued.has(key));
  await addSubscriptionKeys(
    synced,
    missing.map(([key, subject]) => ({ key, subject, atMs: epoch.startOf(key), from: [] })),
  );
  const starts = await startsOf(
    registry,
    missing.map(([key]) => key),
  );
  epoch.starts = new Map([...times, ...starts]);
  await suspensions.complete(making, fence);
}

/**
 * Sets this process's definitions without writing them. Only the API's receivers are written: every process writes those it
 * read last, and so the newest is stored in the end.
 */
export async function adoptConfig({ redis, keys, definitions }: Registry, wanted: Desired): Promise<void> {
  const { receivers, addedReceivers, routes, subscriptions } = wanted;
  definitions.own = {
    receivers,
    routes,
    subscriptions: new Map(
      subscriptions.map(({ subjects: _, ...definition }, order) => [
        definition.name,
        { ...definition, order, awayReceivers: [], joined: {}, left: {}, removedAtMs: null },
      ]),
    ),
  };
  for (const receiver of receivers.filter(({ name }) => addedReceivers?.has(name))) {
    const args = { name: receiver.name, definition: receiverText(receiver) };
    await scripts.syncAddedReceiver(redis, { keys, args });
  }
}

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

/** Reads the wanted subscription keys of all earlier configs, with those of them that are suspended. */
async function readWanted(registry: Registry) {
  // A subscription key whose time is of another shape is wanted anew. Subjects tracked by themselves belong to no config.
  const stored = Object.entries(await registry.redis.hgetall(registry.keys.wanted)).filter(
    ([key]) => !isTrackedKey(key),
  );
  const times = new Map(stored.flatMap(([key, at]) => (/^\d+$/.test(at) ? [[key, Number(at)]] : [])));
  const suspended = await registry.suspensions.states();
  const definitions = await registry.subscriptions([...times.keys()]);
  const storedKeys = [...times].map(([key, atMs]) => {
    const { subscription, receivers: narrowed } = parseClaimKey(key);
    const all = definitions.get(subscription)?.receivers ?? [];
    // A suspended subscription key counts for its own receivers, whatever its subscription has meanwhile.
    if (narrowed !== null && suspended.has(key)) return { key, atMs, receivers: narrowed };
    const receivers = narrowed === null ? all : all.filter((name) => narrowed.includes(name));
    return { key, atMs, receivers };
  });
  return { stored, times, suspended, storedKeys };
}

/**
 * Splits the subscription keys whose subscription has lost some of their receivers (see `partKeys`), by the definitions
 * that still have them: a crash between any two steps leaves keys that count for the same receivers.
 */
async function splitKeys(
  synced: SyncedRegistry,
  wanted: Desired,
  named: readonly SubscribedSubject[],
): Promise<void> {
  const { registry, fence } = synced;
  const { storedKeys, suspended, times } = await readWanted(registry);
  const receivers = new Map(wanted.subscriptions.map((one) => [one.name, one.receivers]));
  const isGraced = wanted.graceSpanMs > 0;
  const parts = partKeys({ stored: storedKeys, named, suspended, receivers }, { isGraced });
  if (parts.length === 0) return;
  const stampMs = await readStamp(registry.redis, registry.keys);
  await continueKeys(synced, parts, { isWanted: (key) => times.has(key), stampMs });
  await registry.suspensions.part(parts, fence);
  const wholes = [...new Set(parts.flatMap(({ from }) => from))];
  await removeSubscriptionKeys(synced, wholes, new Set(parts.map(({ subject }) => subject)));
}

/** Writes the receivers of the config but those that had been removed from it and come back; returns these. */
async function syncReceivers(
  synced: SyncedRegistry,
  { receivers, addedReceivers }: Desired,
  newestEntry: string,
): Promise<PresentReceiver[]> {
  const { registry, fence } = synced;
  const { redis, keys } = registry;
  const names = new Set(receivers.map((receiver) => receiver.name));
  const stored = await registry.receivers();
  const left = new Set(stored.flatMap(({ name, removed }) => (removed ? [name] : [])));
  const own = receivers.filter(({ name }) => !addedReceivers?.has(name));
  // A cursor that was lost alone: the log is read from the beginning, and the facts show earlier deliveries.
  const existing = new Set(stored.map(({ name }) => name));
  for (const chunk of chunks(own, CHUNK))
    await fence.write(
      chunk.map(({ name }) => ['HSETNX', keys.cursors, name, existing.has(name) ? '0-0' : newestEntry]),
    );
  await writeReceivers(
    synced,
    own.filter(({ name }) => !left.has(name)),
  );
  // Receivers that were made through the API belong to no config.
  for (const name of await redis.hkeys(keys.addedReceivers)) names.add(name);
  for (const receiver of stored) {
    if (names.has(receiver.name) || receiver.removed) continue;
    const text = JSON.stringify({ ...receiver, removed: true });
    await fence.write([['HSET', keys.receivers, receiver.name, text]]);
  }
  return own.filter(({ name }) => left.has(name));
}

async function writeReceivers(
  { registry: { keys }, fence }: SyncedRegistry,
  receivers: readonly PresentReceiver[],
): Promise<void> {
  for (const chunk of chunks(receivers, CHUNK))
    await fence.write(
      chunk.map((receiver) => ['HSET', keys.receivers, receiver.name, receiverText(receiver)]),
    );
}

/**
 * Stores the definitions of subscriptions; one removed from the config is marked and stays for its committed events. A receiver
 * removed from the config stays noted with its subscriptions until it is back: one of them may be renamed meanwhile, and its
 * receivers still get its earlier events. A receiver that joins a subscription gets its events behind the newest entry; one that
 * is back in it within the grace span, or in the config, goes on from its place, whatever that was in: a restore may have lost it.
 */
async function syncSubscriptions(
  { registry: { redis, keys, definitions }, fence }: SyncedRegistry,
  { subscriptions, receivers }: Desired,
  sync: Joining,
): Promise<void> {
  const next = new Map(definitions.own.subscriptions);
  const subjects = new Map(subscriptions.map((one) => [one.name, one.subjects]));
  const present = new Set(receivers.map(({ name }) => name));
  for (const [name, text] of Object.entries(await redis.hgetall(keys.subscriptions))) {
    const stored = definitions.subscription(name, text);
    const definition = next.get(name);
    if (definition !== undefined) {
      const had = stored === null ? [] : [...stored.receivers, ...stored.awayReceivers];
      const awayReceivers = [...new Set(had)].filter((receiver) => !present.has(receiver));
      const content = { receivers: definition.receivers, subjects: subjects.get(name) ?? [] };
      const members = stored === null ? {} : membersOf(stored, content, sync);
      next.set(name, { ...definition, awayReceivers, ...members });
      continue;
    }
    if (stored === null) await fence.write([['HDEL', keys.subscriptions, name]]);
    if (stored === null || stored.removedAtMs !== null) continue;
    const removed = { ...stored, removedAtMs: sync.at.atMs };
    await fence.write([['HSET', keys.subscriptions, name, JSON.stringify(removed)]]);
  }
  for (const chunk of chunks([...next], CHUNK))
    await fence.write(
      chunk.map(([name, definition]) => ['HSET', keys.subscriptions, name, JSON.stringify(definition)]),
    );
}

/**
 * Stores routes, equal for every process, since their prices are compared. A suspended one stays, since it is still polled.
 */
async function syncRoutes(
  { registry: { redis, keys, definitions }, fence }: SyncedRegistry,
  routes: readonly RouteDefinition[],
  remaining: ReadonlySet<string>,
): Promise<void> {
  const names = new Set(routes.map((route) => route.name));
  const stored = Object.entries(await redis.hgetall(keys.routes));
  const unwanted = stored.flatMap(([name, text]) => {
    const route = names.has(name) ? null : definitions.route(name, text);
    return names.has(name) || (route !== null && remaining.has(routeId(route))) ? [] : [name];
  });
  for (const route of routes) await fence.write([['HSET', keys.routes, route.name, JSON.stringify(route)]]);
  for (const name of unwanted) await fence.write([['HDEL', keys.routes, name]]);
}
