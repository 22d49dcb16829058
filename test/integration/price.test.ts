import { describe, expect, inject, test } from 'vitest';
import { intentId } from '../../src/domain/subject.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { PriceStore } from '../../src/store/prices.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const HASHES = Array.from({ length: 120 }, (_, index) => hashOf(index));

/** An upstream on which everything has been pending for a minute, two daemons, and their Redis. */
async function watching(budget: number) {
  const updatedAt = Math.floor(Date.now() / 1_000) - 60;
  const upstream = await started(
    new ScriptedUpstream(({ query }) => ({
      records: [intentRecord(query.intentHash ?? '', 'pending', updatedAt)],
    })),
  );
  const hook = await started(new TestReceiver());
  const prefix = testPrefix();
  const config = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', intents: HASHES, receivers: ['hook'] }],
    more: { upstream: { baseUrl: upstream.url, apiKey: 'sandbox-key', requestsPerSecond: budget } },
  };
  for (const { daemon } of [await startDaemon(config), await startDaemon(config)]) {
    later(() => daemon.close());
  }
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(async () => redis.disconnect());
  const keys = new Keys(prefix);
  return { upstream, prices: new PriceStore(redis, keys), redis, keys };
}

describe('the price that two daemons share', () => {
  test('makes what they want together fit the budget, and keeps the queue short', async () => {
    const budget = 25;
    const { upstream, prices, redis } = await watching(budget);
    const state = async () => (await prices.read('status'))?.state;
    const asks = async (count: number): Promise<void> => {
      const until = upstream.asked.length + count;
      while (upstream.asked.length < until) await upstream.asks(() => true);
    };
    await asks(20 * budget);
    const wanted: number[] = [];
    const behind: number[] = [];
    for (let round = 0; round < 5; round++) {
      await asks(budget);
      const { price = 1, demand = null } = (await state()) ?? {};
      wanted.push((demand ?? 0) / Math.sqrt(price));
      const [seconds] = await redis.time();
      behind.push((await prices.overdue(Number(seconds) * 1_000)).length);
    }
    expect(Math.max(...wanted)).toBeLessThan(1.3 * budget);
    expect(Math.min(...wanted)).toBeGreaterThan(0.4 * budget);
    // Without a price 120 subjects would want four times the budget, and fall further behind each second.
    expect(Math.max(...behind)).toBeLessThan(budget);
  });

  test('rises when the upstream asks for a pause', async () => {
    const { upstream, prices } = await watching(25);
    while (upstream.asked.length < 250) await upstream.asks(() => true);
    const answer = upstream.answer;
    let pushed = false;
    upstream.answer = (asked) => {
      if (pushed) return answer(asked);
      pushed = true;
      return { status: 429, body: '{}', headers: { 'retry-after': '1' } };
    };
    const penalty = async (): Promise<number> => (await prices.read('status'))?.state.penalty ?? 1;
    while ((await penalty()) < 2) await new Promise((resolve) => setImmediate(resolve));
    expect(await penalty()).toBeLessThanOrEqual(4);
  });
});

test('looks at wallets are counted as planned, and leave the budget to plans', async () => {
  const upstream = await started(new ScriptedUpstream(() => ({ records: [] })));
  const hook = await started(new TestReceiver());
  const prefix = testPrefix();
  const wallets = ['1', '2', '3'].map((digit) => `0x${digit.repeat(40)}`);
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', wallets, receivers: ['hook'] }],
  });
  later(() => daemon.close());
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(async () => redis.disconnect());
  const asked = new PriceStore(redis, new Keys(prefix));
  const counts = async () => (await asked.demanded('status')).asked;
  while ((await counts()).served < 20) await upstream.asks(() => true);
  expect((await counts()).unplanned).toBe(0);
});

test('the running sum of the demand follows plans, moves and ends, and is counted anew', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(async () => redis.disconnect());
  const keys = new Keys(testPrefix());
  const subjects = new SubjectStore(redis, keys, { retentionMs: 60_000 });
  const prices = new PriceStore(redis, keys);
  const [one, two] = [intentId('0x01'), intentId('0x02')];
  for (const subject of [one, two]) {
    await redis.hset(keys.wanted, `s|${subject}`, '1');
    await redis.hset(keys.claims(subject), `s|${subject}`, '1::1');
  }
  const total = async (): Promise<number[]> => {
    const { demand, planned } = await prices.demanded('status');
    return [Math.round(demand * 1_000) / 1_000, planned];
  };
  await subjects.endPoll(one, { afterMs: 1_000, demand: 0.25 });
  await subjects.endPoll(two, { afterMs: 1_000, demand: 1e-7 });
  await subjects.endPoll(one, { afterMs: 1_000, demand: 0.5 });
  expect(await total()).toEqual([0.5, 2]);
  await subjects.endPoll(one, { afterMs: 5_000, demand: null });
  expect(await total()).toEqual([0.5, 2]);
  expect(await subjects.movePoll(one, 60_000)).toBe(60_000);
  expect(await total()).toEqual([0, 1]);
  await subjects.endPoll(one, { afterMs: 1_000, demand: 0.5 });
  await redis.set(keys.totalDemand('status'), '77');
  await redis.hset(keys.demand('status'), 'intent:0x99', '3');
  await prices.recount('status');
  expect(await total()).toEqual([0.5, 2]);
  await subjects.endPoll(one, null);
  await subjects.endPoll(two, null);
  expect(await total()).toEqual([0, 0]);
});

test('a poll moves away from pages no further than an hour after the last of its own', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(async () => redis.disconnect());
  const keys = new Keys(testPrefix());
  const subjects = new SubjectStore(redis, keys, { retentionMs: 60_000 });
  const subject = intentId('0x03');
  await redis.hset(keys.wanted, `s|${subject}`, '1');
  await redis.hset(keys.claims(subject), `s|${subject}`, '1::1');
  await subjects.endPoll(subject, { afterMs: 1_000, demand: 0.25 });
  expect(await subjects.movePoll(subject, 60_000)).toBe(60_000);

  const agoMs = 50 * 60_000;
  await redis.hincrby(keys.own, subject, -agoMs);
  const movedMs = (await subjects.movePoll(subject, 1_200_000)) ?? 0;
  expect(movedMs).toBeLessThanOrEqual(600_000);
  expect(movedMs).toBeGreaterThan(60_000);
  await redis.hincrby(keys.own, subject, -agoMs);
  expect(await subjects.movePoll(subject, 1_200_000)).toBeNull();
  await subjects.endPoll(subject, null);
  expect(await redis.hexists(keys.own, subject)).toBe(0);
});
