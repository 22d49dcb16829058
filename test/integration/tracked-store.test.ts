import { expect, inject, test } from 'vitest';
import { asSubjectId, intentId, quoteId } from '../../src/domain/subjects/subject.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { ImportedQuotes } from '../../src/store/imported-quotes.ts';
import { Keys } from '../../src/store/keys.ts';
import { TrackedStore } from '../../src/store/tracked.ts';
import { testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { syncFence } from '../support/sync-config.ts';

const { later } = opening();

const WISH = {
  metadata: {},
  receivers: ['backend'],
  overdueAfterMs: null,
  recipients: [],
  watchVault: false,
};
const INTENT = intentId(hashOf(1));
const QUOTE = quoteId('3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41');
const IMPORTED = { subject: QUOTE, raw: { id: QUOTE, expiresAt: 1 } };

function stage() {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const store = new TrackedStore(redis, keys);
  return { redis, keys, store, quotes: new ImportedQuotes(redis, keys) };
}

const NEVER = (): boolean => false;

test('stores the first time of tracking, for any later request', async () => {
  const { store } = stage();
  const first = await store.track(INTENT, WISH, null);
  const again = await store.track(INTENT, { ...WISH, metadata: { order: '7' } }, null);
  expect(first.created).toBe(true);
  expect(again).toEqual({ created: false, createdAtMs: first.createdAtMs });
  expect(await store.of(INTENT)).toMatchObject({ metadata: { order: '7' }, createdAtMs: first.createdAtMs });
});

test('an ended tracking is stored for the events that are committed, then removed with its quote', async () => {
  const { redis, keys, store } = stage();
  await store.track(QUOTE, WISH, IMPORTED);
  expect(await store.untrack(QUOTE)).toBe(true);
  expect(await store.untrack(QUOTE)).toBe(false);
  expect(await store.of(QUOTE)).toBeNull();
  await store.prune(Date.now() - 60_000, NEVER);
  expect(await store.count()).toBe(1);
  expect(await redis.hexists(keys.importedQuotes, QUOTE)).toBe(1);
  await store.prune(Date.now() + 60_000, (quote) => quote === QUOTE);
  expect(await store.count()).toBe(0);
  expect(await redis.hexists(keys.importedQuotes, QUOTE)).toBe(1);
  expect(await redis.zcard(keys.trackingEnded)).toBe(0);
  expect(await redis.hlen(keys.wanted)).toBe(0);
});

test('a subject that is tracked again before it is removed stays', async () => {
  const { store } = stage();
  await store.track(INTENT, WISH, null);
  await store.untrack(INTENT);
  expect(await store.track(INTENT, WISH, null)).toMatchObject({ created: true });
  await store.prune(0, NEVER);
  expect(await store.of(INTENT)).not.toBeNull();
});

test('a subject that has ended and been silent for the retention is ended, and nothing else', async () => {
  const { redis, keys, store } = stage();
  const [open, silent, recent] = [1, 2, 3].map((number) => intentId(hashOf(number)));
  if (open === undefined || silent === undefined || recent === undefined) throw new Error('three are needed');
  for (const subject of [open, silent, recent]) await store.track(subject, WISH, null);
  // As the end of tracking leaves them.
  for (const subject of [silent, recent]) await redis.hdel(`${keys.plan('status')}:items`, subject);
  const laterMs = Date.now() + 60_000;
  await redis.hset(keys.subject(recent), 'observedAtMs', String(laterMs + 1));
  await store.prune(laterMs, NEVER);
  expect(await store.of(silent)).toBeNull();
  expect(await store.of(open)).not.toBeNull();
  expect(await store.of(recent)).not.toBeNull();
});

test('a sync of the imported quotes of the config does not remove tracked quotes', async () => {
  const { redis, keys, store, quotes } = stage();
  await store.track(QUOTE, WISH, IMPORTED);
  const other = asSubjectId('quote:00000000-0000-4000-8000-000000000001');
  await redis.hset(keys.importedQuotes, other, '{}');
  expect(await quotes.sync([], await syncFence(redis, keys))).toEqual([QUOTE]);
  expect(await redis.hkeys(keys.importedQuotes)).toEqual([QUOTE]);
});

test('a sync of the imported quotes of the config does not remove suspended quotes', async () => {
  const { redis, keys, quotes } = stage();
  await quotes.sync([IMPORTED], await syncFence(redis, keys));
  await quotes.sync([], await syncFence(redis, keys), new Set([QUOTE]));
  expect(await redis.hkeys(keys.importedQuotes)).toEqual([QUOTE]);
  await quotes.sync([], await syncFence(redis, keys));
  expect(await redis.hkeys(keys.importedQuotes)).toEqual([]);
});

test('the promise of a quote is stored though it is found valid while another process syncs', async () => {
  const { redis, keys, quotes } = stage();
  const imported = { subject: QUOTE, raw: { ...IMPORTED.raw, intentHash: hashOf(1) } };
  await quotes.sync([imported], await syncFence(redis, keys));
  const deciding = async (): Promise<void> => {
    await quotes.promise(imported);
    await quotes.decide(imported, 'valid');
  };
  // It comes between the sync's read of quotes and its read of promises.
  const syncing = new Proxy(redis, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return async (...args: unknown[]): Promise<unknown> => {
        if (name === 'hkeys' && args[0] === keys.promised) await deciding();
        return Reflect.apply(member, target, args);
      };
    },
  });
  await new ImportedQuotes(syncing, keys).sync([imported], await syncFence(redis, keys));
  expect(await redis.hkeys(keys.promised)).toEqual([INTENT]);
});

test('a quote replaces no promise of another quote about its own intent, in any order', async () => {
  const { redis, keys, quotes } = stage();
  const own = { subject: QUOTE, raw: { ...IMPORTED.raw, intentHash: hashOf(1), refundRecipient: '0xback' } };
  const other = {
    subject: asSubjectId('quote:00000000-0000-4000-8000-000000000001'),
    raw: { ...IMPORTED.raw, steps: [{ intents: [{ role: 'local', intentHash: hashOf(1) }] }] },
  };
  const promise = async (): Promise<unknown> => JSON.parse((await redis.hget(keys.promised, INTENT)) ?? '{}');
  await quotes.decide(other, 'valid');
  expect(await promise()).toEqual({ quote: other.subject, local: true });
  await quotes.decide(own, 'valid');
  await quotes.promise(other);
  await quotes.decide(other, 'valid');
  expect(await promise()).toMatchObject({ quote: QUOTE, refundRecipient: '0xback' });
});
