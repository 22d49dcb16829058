import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { corridorsOf } from '../../src/domain/cadence/corridors.ts';
import { binOf } from '../../src/domain/cadence/hazard.ts';
import { knowledgeOf, LEARNED_HALF_LIFE_MS } from '../../src/domain/cadence/knowledge.ts';
import { ARRIVAL_RULE, WATCH_RULES } from '../../src/domain/cadence/watch-rules.ts';
import type { Snapshot } from '../../src/domain/subjects/record.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { Learning } from '../../src/queues/polls/learning.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { LearnedStore } from '../../src/store/learned.ts';
import { testPrefix } from '../support/daemon.ts';

const NOW_MS = Date.now();
const SNAPSHOT: Snapshot = {
  version: 1,
  sequence: 1,
  commit: 1,
  status: 'pending',
  updatedAt: null,
  record: { sourceTx: { chainId: 1, amount: '1' }, destinationTx: { chainId: 10, amount: '1' } },
  observedAtMs: NOW_MS - 10_000,
  changedAtMs: NOW_MS - 10_000,
  pendingSince: null,
  flags: [],
  unconfirmed: null,
  ahead: null,
  former: [],
  emitted: [],
  epoch: 1,
  reported: true,
};

let redis: RedisClient;
let keys: Keys;
let learned: LearnedStore;

beforeEach(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  keys = new Keys(testPrefix());
  learned = new LearnedStore(redis, keys);
});

afterEach(() => redis.disconnect());

function process(): Learning {
  const log = pino({ level: 'silent' });
  return new Learning({ learned, rules: WATCH_RULES, arrivals: ARRIVAL_RULE, log });
}

function seeFills(learning: Learning, count: number): void {
  for (let index = 0; index < count; index++) {
    const seenAtMs = NOW_MS - 1_000;
    const subject = intentId(`0x${index}`);
    learning.saw({ subject, before: SNAPSHOT, seenAtMs, status: 'filled', nowMs: NOW_MS });
  }
}

describe('a learned tally', () => {
  test('is added up over processes, by route and for all routes, and is there after a restart', async () => {
    const [one, other] = [process(), process()];
    await one.start();
    await other.start();
    seeFills(one, 60);
    seeFills(other, 40);
    await Promise.all([one.close(), other.close()]);
    const again = process();
    await again.start();
    const at = (learning: Learning, route: string) => learning.model.curve(route, 'pending')[binOf(9.5)] ?? 0;
    expect(at(again, '1:10')).toBeGreaterThan(3 * at(process(), '1:10'));
    expect(at(again, '5:6')).toBeCloseTo(at(again, '1:10'), 3);
    const seen = (await learned.all()).map(({ route, statistic, tally }) => [
      route,
      statistic,
      Math.round(tally.ended.reduce((sum, ended) => sum + ended, 0)),
    ]);
    expect(seen.sort()).toEqual([
      ['*', 'pending', 100],
      ['1:10', 'pending', 100],
    ]);
    expect(again.overdueAfterMs(intentId('0xaa'), SNAPSHOT)).toBeGreaterThan(9_000);
    await again.close();
  });

  test('gets a new landmark when its weight grows out of hand, and stays the same', async () => {
    const at = { route: '1:10', statistic: 'pending' as const };
    await learned.add({ ...at, increments: [{ bin: 3, ended: 8, watchedSeconds: 16 }] });
    const key = keys.learned('1:10:pending');
    const old = Number(await redis.hget(key, 'landmark')) - 65 * LEARNED_HALF_LIFE_MS;
    await redis.hset(key, 'landmark', old, 'e3', 8 * 2 ** 65, 's3', 16 * 2 ** 65);
    await learned.add({ ...at, increments: [{ bin: 3, ended: 1, watchedSeconds: 2 }] });
    const [stored] = await learned.all();
    expect(stored?.landmarkMs).toBeGreaterThan(old + 60 * LEARNED_HALF_LIFE_MS);
    expect(stored?.tally.ended[3]).toBeCloseTo(9, 3);
    expect(stored?.tally.watchedSeconds[3]).toBeCloseTo(18, 3);
  });

  test('can be removed, on one route or on all', async () => {
    for (const route of ['1:10', '1:*', '*']) {
      await learned.add({
        route,
        statistic: 'filled',
        increments: [{ bin: 3, ended: 8, watchedSeconds: 16 }],
      });
    }
    expect(await learned.reset('1:10')).toBe(1);
    expect((await learned.all()).map(({ route }) => route).sort()).toEqual(['*', '1:*']);
    expect(await learned.reset(null)).toBe(2);
    expect(await learned.all()).toEqual([]);
    expect(await redis.keys(`${keys.prefix}:*`)).toEqual([]);
  });
});

describe('the outcome of a transfer', () => {
  test('is counted by route and for all routes, each once', async () => {
    const learning = process();
    await learning.start();
    const poll = { seenAtMs: NOW_MS - 1_000, nowMs: NOW_MS };
    const saw = (hash: string, from: string, status: string) =>
      learning.saw({ ...poll, subject: intentId(hash), before: { ...SNAPSHOT, status: from }, status });
    seeFills(learning, 30);
    for (const hash of ['0xb1', '0xb2', '0xb3']) {
      saw(hash, 'pending', 'expired');
      saw(hash, 'expired', 'refundable');
    }
    saw('0xb1', 'refundable', 'REFUNDED');
    saw('0xb1', 'REFUNDED', 'refunded');
    saw('0xb4', 'pending', 'refunded');
    learning.sawOverdue(SNAPSHOT);
    await learning.close();
    const stored = await learned.all();
    const knowledge = knowledgeOf(stored, { rules: WATCH_RULES, arrivals: ARRIVAL_RULE, nowMs: NOW_MS });
    const counts = { filled: 30, unfilled: 4, overdue: 1, refunded: 2 };
    const shares = { unfilledShare: 0.118, overdueShare: 0.029, refundedShare: 0.059 };
    expect(corridorsOf(knowledge)).toEqual(
      ['1:10', '*'].map((corridor) => expect.objectContaining({ corridor, ...counts, ...shares })),
    );
    expect(corridorsOf(knowledge)[0]).toMatchObject({ fill: { observations: 30 }, settlement: null });
  });
});

describe('the duration of a delivery in a quote', () => {
  test('counts in every process until enough was seen', async () => {
    const [one, other] = [process(), process()];
    await one.start();
    await other.start();
    expect(other.overdueAfterMs(intentId('0xaa'), SNAPSHOT)).toBe(null);
    one.sawEstimate('1:10', 20);
    one.sawEstimate('1:59', 0);
    one.sawEstimate('1:60', Number.NaN);
    await one.close();
    await other.close();
    const later = process();
    await later.start();
    const overdueMs = later.overdueAfterMs(intentId('0xaa'), SNAPSHOT) ?? 0;
    expect(overdueMs / 1_000).toBeGreaterThan(200);
    expect(overdueMs / 1_000).toBeLessThan(400);
    expect(await learned.estimates()).toEqual(new Map([['1:10', 20]]));
    seeFills(later, 2_000);
    await later.close();
    const taught = process();
    await taught.start();
    expect(taught.overdueAfterMs(intentId('0xaa'), SNAPSHOT)).toBeLessThan(overdueMs / 4);
    await taught.close();
  });
});
