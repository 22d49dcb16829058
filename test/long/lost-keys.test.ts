import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import { walletId } from '../../src/domain/subjects/subject.ts';
import { Keys } from '../../src/store/keys.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const WALLETS = Array.from({ length: 5 }, (_, index) => `0x${String(index).padStart(40, '0')}`);

function redisOf(): Redis {
  const redis = new Redis(inject('redisUrl'));
  later(async () => redis.disconnect());
  return redis;
}

describe('a failover loses', () => {
  const WHAT: readonly [string, string][] = [
    ['the plan', 'plan:status*'],
    ['the clock of the plan', 'plan:status'],
    ['the entries of the plan', 'plan:status:items'],
    ['the wanted subjects', 'wanted'],
  ];

  test.each(
    WHAT.flatMap(([what, pattern]) => [
      { what, pattern, when: 'while it runs' },
      { what, pattern, when: 'while it is down' },
    ]),
  )('$what, $when: the daemon goes on polling, at its budget', async ({ pattern, when }) => {
    const redis = redisOf();
    const upstream = await started(new ScriptedUpstream(() => ({ records: [] })));
    const prefix = testPrefix();
    const start = async (): ReturnType<typeof startDaemon> => {
      const running = await startDaemon({
        baseUrl: upstream.url,
        redisUrl: inject('redisUrl'),
        prefix,
        receivers: { hook: { url: 'http://127.0.0.1:9/' } },
        subscriptions: [{ name: 's', wallets: WALLETS, receivers: ['hook'] }],
      });
      later(() => running.daemon.close());
      return running;
    };
    const requestedSince = (from: number): Set<unknown> =>
      new Set(upstream.requests.slice(from).map(({ query }) => query.wallet));
    const { daemon } = await start();
    await eventually('all wallets were requested', () => requestedSince(0).size === WALLETS.length);
    const budget = await redis.hget(new Keys(prefix).plan('status'), 'budget');
    if (when === 'while it is down') await daemon.close();
    await redis.del(...(await redis.keys(`{${prefix}}:${pattern}`)));
    const lostAt = upstream.requests.length;
    if (when === 'while it is down') await start();
    // Polls under way when the keys were lost may still end: a second request proves a new poll.
    await eventually('all are requested again and again', () => {
      const requests = upstream.requests.slice(lostAt).map(({ query }) => query.wallet);
      return WALLETS.every((wallet) => requests.filter((one) => one === wallet).length >= 3);
    });
    await eventually(
      'the budget is as it was',
      async () => (await redis.hget(new Keys(prefix).plan('status'), 'budget')) === budget,
    );
  });

  test.each([
    'lost',
    '9223372036854775807',
    'foreign',
  ])('the commit counter (%s): changes are reported, once', async (what) => {
    const redis = redisOf();
    const hash = hashOf(9);
    let status = 'pending';
    let updatedAt = Math.floor(Date.now() / 1_000) - 300;
    const upstream = await started(
      new ScriptedUpstream(() => ({ records: [intentRecord(hash, status, updatedAt)] })),
    );
    const hook = await started(new TestReceiver());
    const prefix = testPrefix();
    const { daemon } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: [hash], receivers: ['hook'] }],
    });
    later(() => daemon.close());
    const keys = new Keys(prefix);
    for (const next of ['filled', 'settled']) {
      await hook.until((events) => events.some(({ data }) => data.status === status));
      if (what === 'lost') await redis.del(keys.commit);
      else await redis.set(keys.commit, what);
      status = next;
      updatedAt += 30;
    }
    await hook.until((events) => events.length === 3);
    expect(hook.events.map(({ type }) => type)).toEqual([
      'intent.pending',
      'intent.filled',
      'intent.settled',
    ]);
    expect(await redis.xlen(keys.events)).toBe(3);
  });
});

test('a wallet is swept also where a clock that was an hour ahead noted that it had been', async () => {
  const redis = redisOf();
  const upstream = await started(
    new ScriptedUpstream(({ query }) => ({
      records: query.cursor === undefined ? [intentRecord(hashOf(1), 'pending', 1_700_000_000)] : [],
      nextCursor: query.cursor === undefined ? 'second' : null,
    })),
  );
  const prefix = testPrefix();
  const [wallet = ''] = WALLETS;
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: { hook: { url: 'http://127.0.0.1:9/' } },
    subscriptions: [{ name: 's', wallets: [wallet], receivers: ['hook'] }],
  });
  later(() => daemon.close());
  const sweptFrom = (from: number): boolean =>
    upstream.requests.slice(from).some(({ query }) => query.cursor !== undefined);
  await eventually('the wallet was swept', () => sweptFrom(0));
  const facts = new Keys(prefix).wallet(walletId(wallet));
  await eventually('the sweep is noted', async () => Number(await redis.hget(facts, 'sweptAtMs')) > 0);
  await redis.hset(facts, 'sweptAtMs', Date.now() + 3_600_000);
  const from = upstream.requests.length;
  await eventually('the wallet is swept again', () => sweptFrom(from));
});
