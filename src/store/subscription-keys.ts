import { asSubjectId, type SubjectId } from '../domain/subjects/subject.ts';
import { parseClaimKey, trackedKey } from '../domain/subjects/subscription.ts';
import type { ContinuedKey } from '../domain/subjects/suspended-keys.ts';
import { chunks } from './commands.ts';
import type { Fence } from './lease.ts';
import type { Registry } from './registry.ts';
import { scripts } from './scripts.ts';

/** A subscription key to be wanted: its start (Redis time, ms; null for now), and the keys that it continues. */
type WantedKey = { key: string; subject: SubjectId; atMs: number | null; from: readonly string[] };

const CHUNK = 200;

/** A registry that is synced under a lease. */
export type SyncedRegistry = { registry: Registry; fence: Fence };

/** Makes subscription keys wanted, and gives their subjects a place in the plan. */
export async function addSubscriptionKeys(
  { registry: { redis, keys }, fence }: SyncedRegistry,
  claimKeys: readonly WantedKey[],
): Promise<void> {
  const { wanted, events, since } = keys;
  const [claimsPrefix, subjectPrefix] = [keys.claims(''), keys.subject('')];
  for (const [endpointGroup, some] of Map.groupBy(claimKeys, ({ subject }) => keys.groupOf(subject))) {
    const groupKeys = { wanted, plan: keys.plan(endpointGroup), events, ...fence.keys };
    for (const chunk of chunks(some, CHUNK)) {
      const named = chunk.map(({ key, subject, atMs, from: [from = ''] }) => ({
        claimKey: key,
        subject,
        at: String(atMs ?? ''),
        from,
      }));
      const args = { token: fence.token, claimsPrefix, subjectPrefix, atMs: null, since, named };
      fence.passed(await scripts.addSubscriptionKeys(redis, { keys: groupKeys, args }));
    }
  }
}

/** Claims subjects that are tracked by themselves again, where their claims were lost. */
export async function wantTracked(synced: SyncedRegistry, subjects: readonly SubjectId[]): Promise<void> {
  await addSubscriptionKeys(
    synced,
    subjects.map((subject) => ({ key: trackedKey(subject), subject, atMs: null, from: [] })),
  );
}

/**
 * Adds the subscription keys that continue removed ones. After several reloads each key leads to those that are wanted
 * now; also one that came back with a later start: a transfer that was not polled meanwhile has its claim from before. That of
 * some receivers leads to that of these alone once there is one: others join a whole subscription, and get no earlier event.
 */
export async function continueKeys(
  synced: SyncedRegistry,
  continued: readonly ContinuedKey[],
  { isWanted, stampMs }: { isWanted: (key: string) => boolean; stampMs: number },
): Promise<void> {
  const { registry, fence } = synced;
  const { redis, keys } = registry;
  const stored = await redis.hgetall(keys.continued);
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
    const leading = alone(left, [...claimKeys]);
    const text = [next.has(left) ? stampMs : atMs, ...leading].join('\n');
    if (leading.length === 0) over.push(left);
    else if (text !== stored[left]) changed.push([left, text]);
  }
  for (const chunk of chunks(over, CHUNK)) await fence.write([['HDEL', keys.continued, ...chunk]]);
  for (const chunk of chunks(changed, CHUNK)) await fence.write([['HSET', keys.continued, ...chunk.flat()]]);
  await addSubscriptionKeys(synced, continued);
}

/** Of the keys that continue one of some receivers, those of the same receivers and of none, where there is one of the same. */
function alone(left: string, claimKeys: readonly string[]): readonly string[] {
  const receiversOf = (key: string): string | undefined => parseClaimKey(key).receivers?.join();
  const own = receiversOf(left);
  if (own === undefined || own === '' || !claimKeys.some((key) => receiversOf(key) === own)) return claimKeys;
  return claimKeys.filter((key) => receiversOf(key) === own || receiversOf(key) === '');
}

/**
 * Removes subscription keys. The next poll of a subject not in `named` ends its tracking; it is stored for the retention. A
 * subject that another process names again meanwhile is in the plan, and stays as it is.
 */
export async function removeSubscriptionKeys(
  { registry: { keys, subjects }, fence }: SyncedRegistry,
  claimKeys: readonly string[],
  named: ReadonlySet<string>,
): Promise<void> {
  for (const chunk of chunks(claimKeys, CHUNK)) {
    await fence.write([keys.since, keys.wanted, keys.begun].map((key) => ['HDEL', key, ...chunk]));
    const left = chunk.map((key) => asSubjectId(parseClaimKey(key).subject)).filter((one) => !named.has(one));
    await Promise.all(left.map((subject) => subjects.expire(subject)));
  }
}

/** Reads the starts of wanted subscription keys, ms of Redis time. */
export async function startsOf(
  { redis, keys }: Registry,
  claimKeys: readonly string[],
): Promise<[string, number][]> {
  const found: [string, number][] = [];
  for (const chunk of chunks(claimKeys, CHUNK)) {
    const starts = await redis.hmget(keys.wanted, ...chunk);
    for (const [index, key] of chunk.entries()) found.push([key, Number(starts[index])]);
  }
  return found;
}
