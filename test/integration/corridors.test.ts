import { afterEach, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { CORRIDOR } from '../../src/domain/cadence/corridors.ts';
import { binOf } from '../../src/domain/cadence/hazard.ts';
import type { Statistic } from '../../src/domain/cadence/watch-rules.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { LearnedStore } from '../../src/store/learned.ts';
import { startDaemon, testPrefix } from '../support/daemon.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const closers: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const ANSWER = z.object({ corridors: z.array(CORRIDOR) });

test('the API shows the learned times of each pair of chains, the most observed first', async () => {
  const redisUrl = inject('redisUrl');
  const prefix = testPrefix();
  const { daemon } = await startDaemon({
    baseUrl: 'http://127.0.0.1:9',
    redisUrl,
    prefix,
    receivers: { hook: { url: 'http://127.0.0.1:9/' } },
    subscriptions: [{ name: 's', intents: [hashOf(1)], receivers: ['hook'] }],
  });
  closers.push(() => daemon.close());
  const request = async () =>
    ANSWER.parse(await (await fetch(`${daemon.url}/api/v1/corridors`)).json()).corridors;
  expect(await request()).toEqual([]);

  const redis = connect({ kind: 'server', url: redisUrl });
  closers.push(async () => redis.disconnect());
  const learned = new LearnedStore(redis, new Keys(prefix));
  const see = async (route: string, statistic: Statistic, ended: number) =>
    learned.add({ route, statistic, increments: [{ bin: binOf(10), ended, watchedSeconds: ended }] });
  await see('8453:10', 'pending', 200);
  await see('8453:10', 'pending-failed', 50);
  await see('8453:10', 'overdue', 25);
  await see('8453:10', 'refunded', 5);
  await see('1:10', 'pending', 5);
  await see('1:10', 'filled', 300);

  const [base, mainnet, ...others] = await request();
  expect(others).toEqual([]);
  expect(base).toMatchObject({
    corridor: '8453:10',
    fill: { observations: 200 },
    settlement: null,
    filled: 200,
    unfilled: 50,
    overdue: 25,
    refunded: 5,
    unfilledShare: 0.2,
    overdueShare: 0.1,
    refundedShare: 0.02,
  });
  const { p50Seconds = 0, p90Seconds = 0, p99Seconds = 0 } = base?.fill ?? {};
  expect([p50Seconds, p90Seconds, p99Seconds].toSorted((a, b) => a - b)).toEqual([
    p50Seconds,
    p90Seconds,
    p99Seconds,
  ]);
  expect(p50Seconds).toBeGreaterThan(5);
  expect(p50Seconds).toBeLessThan(15);
  // Too few transfers for times and shares, not for counts.
  expect(mainnet).toMatchObject({ corridor: '1:10', fill: null, filled: 5, unfilledShare: null });
  expect(mainnet?.settlement?.observations).toBe(300);
});
