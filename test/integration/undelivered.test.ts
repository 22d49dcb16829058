import { expect, inject, test, vi } from 'vitest';
import { assembleOperations } from '../../src/daemon/stores.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { retryDeadLetters } from '../../src/operations/deliveries.ts';
import { listReceivers } from '../../src/operations/receivers.ts';
import { listUndelivered } from '../../src/operations/undelivered.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { receiverText } from '../../src/store/definitions.ts';
import { Keys } from '../../src/store/keys.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

const ALL = { receivers: [], types: [] };

const EVERYTHING = { wallets: null, chains: null, minAmount: null };
const CONFIG = {
  retentionMs: 60_000,
  removal: { graceSpanMs: 0 },
  polling: {
    shortestSeconds: 1,
    longestSeconds: 30,
    confirmAfterMs: 60_000,
    fullSweepEveryMs: 60_000,
    finished: {},
  },
};

/** A Redis with dead letters of one receiver, all from the same ms, and open deliveries without an attempt. */
async function stage({ dead, waiting = 0 }: { dead: number; waiting?: number }) {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const onForeign = (): void => undefined;
  const deps = assembleOperations(CONFIG, {
    redis,
    keys,
    epoch: firstEpoch(redis, keys),
    directory: COMMON_NAMES,
    process: 'p1',
    onForeign,
  });
  const name = 'backend';
  await redis.hset(
    keys.receivers,
    name,
    receiverText({ name, type: 'webhook', events: ['*'], filter: EVERYTHING, ordering: 'none' }),
  );
  const idOf = (index: number): string => `evt_${String(index).padStart(40, '0')}`;
  const write = redis.pipeline();
  for (let index = 0; index < dead + waiting; index += 1) {
    const isDead = index < dead;
    const fact = { outcome: isDead ? 'dead' : 'pending', entry: '1-0', claimKeys: '[]' };
    write.hset(keys.delivery(name, idOf(index)), isDead ? { ...fact, tries: '1' } : fact);
    write.zadd(isDead ? keys.dead(name) : keys.pending(name), 1_000, idOf(index));
  }
  await write.exec();
  const gone = (id: string) => redis.zrem(keys.dead(name), id);
  return { deps, redis, keys, idOf, gone };
}

test('a list that grows shorter while it is read skips none of the remaining entries', async () => {
  const { deps, idOf, gone } = await stage({ dead: 40 });
  const seen: string[] = [];
  let from: Parameters<typeof listUndelivered>[0]['from'] = null;
  do {
    const page = await listUndelivered({ filter: ALL, from, limit: 7 }, deps);
    seen.push(...page.undelivered.map(({ event }) => event));
    from = page.next;
    // All but the first of a page are delivered meanwhile, including the one at which the page ended.
    for (const { event } of page.undelivered.slice(1)) await gone(event);
  } while (from !== null);
  expect(seen).toEqual(Array.from({ length: 40 }, (_, index) => idOf(index)));
});

test('to try one of very many again, no others are read', async () => {
  const { deps, idOf } = await stage({ dead: 300 });
  const read = vi.spyOn(deps.stores.deliveries, 'fact');
  expect(await retryDeadLetters('backend', { events: [idOf(7)] }, deps)).toMatchObject({
    all: 300,
    gone: 1,
  });
  expect(read).toHaveBeenCalledTimes(1);
});

test('an event that waits for its first attempt is not listed before failed ones', async () => {
  const { deps, idOf } = await stage({ dead: 3, waiting: 900 });
  const page = await listUndelivered({ filter: ALL, from: null, limit: 10 }, deps);
  expect(page.undelivered.map(({ event }) => event)).toEqual([0, 1, 2].map(idOf));
  expect(page.next).toBeNull();
});

test('events that wait for their first attempt at many receivers are skipped in bounded pages', async () => {
  const { deps, redis, keys, idOf } = await stage({ dead: 0 });
  const names = Array.from({ length: 6 }, (_, n) => `r-${n}`);
  const write = redis.pipeline();
  for (const name of names) {
    const text = receiverText({ name, type: 'webhook', events: ['*'], filter: EVERYTHING, ordering: 'none' });
    write.hset(keys.receivers, name, text);
    for (let index = 0; index < 900; index += 1) {
      const id = idOf(index);
      write.zadd(keys.pending(name), 1_000, id);
      write.hset(keys.delivery(name, id), { outcome: 'pending', entry: '1-0', claimKeys: '[]' });
    }
  }
  await write.exec();
  const listed = vi.spyOn(deps.stores.backlog, 'undelivered');
  const checked: number[] = [];
  let from: Parameters<typeof listUndelivered>[0]['from'] = null;
  do {
    const page = await listUndelivered({ filter: ALL, from, limit: 10 }, deps);
    expect(page.undelivered).toEqual([]);
    const results = await Promise.all(listed.mock.results.map(({ value }) => value));
    checked.push(results.reduce((sum, result) => sum + result.checked, 0));
    listed.mockClear();
    from = page.next;
  } while (from !== null);
  expect(checked.reduce((sum, one) => sum + one, 0)).toBe(5_400);
  expect(Math.max(...checked)).toBeLessThanOrEqual(2_000);
});

test('to list 40 receivers that are behind, 10,000 entries of the log are read at most', async () => {
  const { deps, redis, keys } = await stage({ dead: 0 });
  const write = redis.pipeline();
  for (const name of Array.from({ length: 39 }, (_, n) => `r-${n}`)) {
    const text = receiverText({ name, type: 'webhook', events: ['*'], filter: EVERYTHING, ordering: 'none' });
    write.hset(keys.receivers, name, text).hset(keys.cursors, name, '1-0');
  }
  await write.exec();
  const read = vi.spyOn(deps.stores.events, 'after');
  expect(await listReceivers(() => ({ origin: null, leftOut: null }), deps)).toHaveLength(40);
  expect(read.mock.calls.map(([, count]) => count)).toEqual(Array.from({ length: 40 }, () => 250));
});
