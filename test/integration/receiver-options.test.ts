import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { DeliveryStore } from '../../src/store/deliveries.ts';
import { Keys } from '../../src/store/keys.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const ALICE = '0x52908400098527886e0f7030069857d2e4169ee7';
const BOB = '0xde709f2102306220921060314715629080e2fb77';
const USDC = {
  8453: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
  10: '0x0b2c639c533813f4aa9d7837caf62653d097ff85',
  42161: '0xaf88d065e77c8cc2239327c5edb3a432268e5831',
};

function transfer(number: number, from: keyof typeof USDC, to: keyof typeof USDC, usdc: number): JsonObject {
  const tx = (chainId: keyof typeof USDC): JsonObject => ({
    chainId,
    txHash: hashOf(number * 1_000 + chainId),
    token: USDC[chainId],
    amount: String(usdc * 1_000_000),
  });
  return intentRecord(hashOf(number), 'settled', 1_700_000_000, {
    sourceTx: tx(from),
    destinationTx: tx(to),
  });
}

/** Resolves when every receiver is at the end of the log and has no delivery under way. */
async function drained(redis: RedisClient, keys: Keys, receivers: readonly string[]): Promise<void> {
  await eventually('all deliveries are over', async () => {
    const [newest] = await redis.xrevrange(keys.events, '+', '-', 'COUNT', 1);
    const cursors = await redis.hgetall(keys.cursors);
    const pending = await Promise.all(receivers.map((name) => redis.zcard(keys.pending(name))));
    return receivers.every((name) => cursors[name] === newest?.[0]) && pending.every((count) => count === 0);
  });
}

function openRedis(): RedisClient {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  return redis;
}

test('filters hold back the unwanted events of a receiver, and nothing else', async () => {
  const pages: Record<string, JsonObject[]> = {
    [ALICE]: [transfer(1, 8453, 10, 50), transfer(2, 8453, 42161, 5_000)],
    [BOB]: [transfer(3, 42161, 8453, 1_000), intentRecord(hashOf(4), 'settled', 1_700_000_000)],
  };
  const upstream = await started(
    new ScriptedUpstream(({ query }) => {
      const all = Object.values(pages).flat();
      const records = query.wallet ? (pages[query.wallet] ?? []) : all;
      return {
        records: query.intentHash ? all.filter(({ id }) => id === `intent:${query.intentHash}`) : records,
      };
    }),
  );
  const filters: Record<string, object> = {
    all: {},
    rich: { minAmount: '1000' },
    optimism: { chains: [10] },
    bob: { wallets: [BOB] },
    both: { chains: [42161], minAmount: '1000.01' },
  };
  const hooks = Object.fromEntries(
    await Promise.all(
      Object.keys(filters).map(async (name) => [name, await started(new TestReceiver())] as const),
    ),
  );
  const prefix = testPrefix();
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: Object.fromEntries(
      Object.entries(hooks).map(([name, { url }]) => [name, { url, more: filters[name] ?? {} }]),
    ),
    subscriptions: [
      { name: 's', wallets: [ALICE, BOB], history: 'emit', receivers: Object.keys(filters) },
      // Named by itself, so it passes for any wallet.
      { name: 'one', intents: [hashOf(1)], receivers: ['bob'] },
    ],
  });
  later(() => daemon.close());
  await hooks.all?.until((events) => events.length === 4);
  const redis = openRedis();
  await drained(redis, new Keys(prefix), Object.keys(filters));

  const numbers = (name: string): number[] =>
    (hooks[name]?.events ?? [])
      .map(({ data }) => Number(BigInt(data.subject.id.slice('intent:'.length))))
      .sort();
  expect({
    all: numbers('all'),
    rich: numbers('rich'),
    optimism: numbers('optimism'),
    bob: numbers('bob'),
    both: numbers('both'),
  }).toEqual({ all: [1, 2, 3, 4], rich: [2, 3, 4], optimism: [1, 4], bob: [1, 3, 4], both: [2, 4] });
});

test('a rate limit holds over two processes', async () => {
  const perSecond = 10;
  const hashes = Array.from({ length: 25 }, (_, index) => hashOf(index + 1));
  const upstream = await started(
    new ScriptedUpstream(({ query }) => ({
      records: [intentRecord(query.intentHash ?? '', 'settled', 1_700_000_000)],
    })),
  );
  const times: number[] = [];
  const hook = await started(
    new Hook(() => {
      times.push(performance.now());
      return 204;
    }),
  );
  const prefix = testPrefix();
  const config = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: { hook: { url: hook.url, more: { rateLimit: perSecond } } },
    subscriptions: [{ name: 's', intents: hashes, receivers: ['hook'] }],
  };
  for (const { daemon } of [await startDaemon(config), await startDaemon(config)])
    later(() => daemon.close());
  await hook.until((all) => all.length === hashes.length);
  await drained(openRedis(), new Keys(prefix), ['hook']);

  expect(times).toHaveLength(hashes.length);
  const most = Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length));
  // One more for each process, as with the budget of the upstream.
  expect(most).toBeLessThanOrEqual(perSecond + 2);
});

test('after a timeout the next attempt waits at least as long as the timeout, however short the delays', async () => {
  const upstream = await started(
    new ScriptedUpstream(({ query }) => ({
      records: [intentRecord(query.intentHash ?? '', 'settled', 1_700_000_000)],
    })),
  );
  let requests = 0;
  const server = createServer((_, response) => {
    requests += 1;
    if (requests > 1) response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  later(async () => {
    server.closeAllConnections();
    server.close();
  });
  const prefix = testPrefix();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { daemon, signals } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: { hook: { url, more: { timeout: '3s', retries: { delays: ['1ms'], jitter: 0 } } } },
    subscriptions: [{ name: 's', intents: [hashOf(1)], receivers: ['hook'] }],
  });
  later(() => daemon.close());
  const eventId = await new Promise<string>((resolve) =>
    signals.on('delivery.ended', (ended) => resolve(ended.eventId)),
  );
  const store = new DeliveryStore(openRedis(), new Keys(prefix));
  const [first] = (await store.fact('hook', eventId))?.attempts ?? [];
  if (first?.nextAtMs == null) throw new Error('expected a second attempt');
  expect(first.reason).toBe('no answer within 3000 ms');
  expect(first.nextAtMs - first.atMs).toBeGreaterThanOrEqual(6_000 - 50);
  expect(requests).toBe(2);
});

test('an event that was cut is whole behind its link, as its receiver gets it', async () => {
  const note = 'x'.repeat(30_000);
  const upstream = await started(
    new ScriptedUpstream(({ query }) => ({
      records: [intentRecord(query.intentHash ?? '', 'settled', 1_700_000_000, { note })],
    })),
  );
  const hook = await started(new TestReceiver());
  const token = 'token-4711-4711-4711';
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { hook: { url: hook.url }, other: { url: 'http://127.0.0.1:1/' } },
    subscriptions: [
      { name: 's', intents: [hashOf(1)], receivers: ['hook'], metadata: { order: '1042' } },
      { name: 'others', intents: [hashOf(1)], receivers: ['other'], metadata: { order: '7' } },
    ],
    more: { server: { host: '127.0.0.1', port: 0, token, publicUrl: 'https://watch.example.com/a' } },
  });
  later(() => daemon.close());
  const [event] = await hook.until((all) => all.length === 1);
  if (event === undefined) throw new Error('expected an event');
  const { recordTruncated, recordUrl, ...cut } = event.data;
  expect([recordTruncated, cut.record.note]).toEqual([true, undefined]);
  const path = String(recordUrl).replace('https://watch.example.com/a', '');
  expect(path.startsWith(`/api/v1/events/${event.id}?receiver=hook&`)).toBe(true);
  // It opens this event for this receiver; the events of another stay closed.
  const answer = await fetch(`${daemon.url}${path}`);
  const others = await fetch(`${daemon.url}${path.replace('receiver=hook', 'receiver=other')}`);
  expect(others.status).toBe(403);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({ ...event, data: { ...cut, record: { ...cut.record, note } } });
});
