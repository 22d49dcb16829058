import { expect, inject, test } from 'vitest';
import { type RedisClient, redisTimeMs } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

const HOUR_MS = 3_600_000;
const CLAIM_KEY = 'treasury|wallet:0x11';

/** A claim that was just made; `at` is its start on Redis' clock, in seconds. */
async function stage() {
  const redis: RedisClient = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const options = { retentionMs: HOUR_MS, epoch: firstEpoch(redis, keys), onForeign: () => undefined };
  const registry = new Registry(redis, keys, new SubjectStore(redis, keys, options), () => undefined);
  const atMs = await redisTimeMs(redis);
  /** A response whose `Date` is so much ahead of Redis; null for one without. */
  const respond = async (aheadMs: number | null) => {
    const dateMs = aheadMs === null ? null : (await redisTimeMs(redis)) + aheadMs;
    const { earliest, latest, news } = await registry.subscribedAt({ key: CLAIM_KEY, atMs }, dateMs);
    const hours = [earliest, latest].map((seconds) => Math.round((seconds * 1_000 - atMs) / HOUR_MS) + 0);
    return [...hours, news];
  };
  /** Several responses with the same lead of the upstream's clock. */
  const agree = async (aheadMs: number): Promise<void> => {
    await redis.hset(keys.clock, 'upstreamMs', String(aheadMs), 'state', 'steady');
  };
  return { redis, keys, atMs, respond, agree };
}

test('counts at once by a response that agrees with Redis, and by one without a time', async () => {
  const { respond, redis, keys } = await stage();
  expect(await respond(0)).toEqual([0, 0, '']);
  await redis.del(keys.since);
  expect(await respond(null)).toEqual([0, 0, '']);
  expect(await respond(6 * HOUR_MS)).toEqual([0, 0, '']);
});

test('is doubtful by one that is off, until the next that is not', async () => {
  const { respond } = await stage();
  expect(await respond(6 * HOUR_MS)).toEqual([0, 6, 'doubted']);
  expect(await respond(-6 * HOUR_MS)).toEqual([-6, 0, '']);
  expect(await respond(0)).toEqual([0, 0, '']);
  expect(await respond(6 * HOUR_MS)).toEqual([0, 0, '']);
});

test('is believed to be off where several responses are, however far', async () => {
  const { respond, agree } = await stage();
  expect(await respond(60 * HOUR_MS)).toEqual([0, 60, 'doubted']);
  await agree(60 * HOUR_MS);
  expect(await respond(0)).toEqual([0, 60, '']);
  expect(await respond(60 * HOUR_MS)).toEqual([60, 60, 'believed']);
  await agree(0);
  expect(await respond(0)).toEqual([60, 60, '']);
});

test('is corrected by later responses, once', async () => {
  const { respond, agree } = await stage();
  expect(await respond(0)).toEqual([0, 0, '']);
  await agree(-6 * HOUR_MS);
  expect(await respond(-6 * HOUR_MS)).toEqual([-6, -6, 'corrected']);
  await agree(0);
  expect(await respond(0)).toEqual([-6, -6, '']);
});

test('is doubtful for an hour at most; then Redis time counts', async () => {
  const { respond, redis, keys, atMs } = await stage();
  expect(await respond(6 * HOUR_MS)).toEqual([0, 6, 'doubted']);
  await redis.hset(keys.since, CLAIM_KEY, `${atMs}:d${atMs - HOUR_MS - 1_000}`);
  expect(await respond(6 * HOUR_MS)).toEqual([0, 0, '']);
});

test('is doubtful while the clock of Redis has jumped', async () => {
  const { respond, redis, keys } = await stage();
  await redis.hset(keys.clock, 'state', 'jumped', 'jumpMs', String(HOUR_MS));
  expect(await respond(-HOUR_MS)).toEqual([-1, 0, 'doubted']);
  expect(await respond(null)).toEqual([-1, 0, '']);
  await redis.hset(keys.clock, 'state', 'steady');
  expect(await respond(0)).toEqual([0, 0, '']);
});
