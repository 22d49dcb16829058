import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { walletId } from '../../src/domain/subjects/subject.ts';
import { parseSweep, type SweepPage, Sweeps } from '../../src/queues/polls/sweeps.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { pageMember } from '../../src/store/plan-members.ts';
import { testPrefix } from '../support/daemon.ts';

const WHERE = { wallet: walletId('0x1111111111111111111111111111111111111111'), scope: 'all' };
const MEMBER = pageMember(WHERE.wallet, WHERE.scope);
const T0_MS = 1_800_000_000_000;
const SWEEP = { ...WHERE, id: String(T0_MS) };

let redis: RedisClient;
let keys: Keys;
let plan: PlanStore;
let sweeps: Sweeps;

beforeEach(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  keys = new Keys(testPrefix());
  plan = new PlanStore(redis, keys);
  sweeps = new Sweeps({ redis, keys, plan });
});

afterEach(() => redis.disconnect());

async function mayBegin(): Promise<boolean> {
  return sweeps.mayBegin(WHERE, T0_MS + 60_000);
}

describe('a sweep over the pages of a wallet', () => {
  beforeEach(() => sweeps.begin(WHERE, { cursor: 'a', limit: 50, nowMs: T0_MS, sinceMs: T0_MS }));

  test('is not begun a second time while it is under way, also while a page is polled', async () => {
    expect(await mayBegin()).toBe(false);
    const { polls } = await plan.claim('status', { process: 'p', most: 1, aheadMs: 10_000, sent: [] });
    expect(polls.map(({ member }) => member)).toEqual([MEMBER]);
    expect(await mayBegin()).toBe(false);
    await sweeps.next(SWEEP, { page: 2, cursor: 'b', limit: 50, nowMs: T0_MS + 1 });
    expect(await mayBegin()).toBe(false);
  });

  test('goes on at the page that is next, and ends where a cursor leads in a circle', async () => {
    const next = (page: number, cursor: string): Promise<boolean> =>
      sweeps.next(SWEEP, { page, cursor, limit: 50, nowMs: T0_MS + 1 });
    expect(await next(2, 'b')).toBe(true);
    expect(await next(2, 'b')).toBe(true);
    expect(await next(3, 'a')).toBe(false);
    expect(await redis.hmget(keys.sweep(WHERE.wallet, WHERE.scope), 'page', 'cursor')).toEqual(['3', 'b']);
  });

  test('reads 100,000 transfers at most, for any limit', async () => {
    const next = (page: number, limit: number): Promise<boolean> =>
      sweeps.next(SWEEP, { page, cursor: `c${page}`, limit, nowMs: T0_MS + 1 });
    expect(await next(1_999, 50)).toBe(true);
    expect(await next(2_000, 50)).toBe(false);
    expect(await next(99_999, 1)).toBe(true);
    expect(await next(100_000, 1)).toBe(false);
  });

  test('may begin anew where its process died before the plan had its page', async () => {
    await redis.del(`${keys.plan('status')}:items`);
    expect(await mayBegin()).toBe(true);
  });

  test('may begin anew once it has ended, and some time after it was cut short', async () => {
    await sweeps.end(SWEEP);
    expect(await mayBegin()).toBe(true);
    await sweeps.end(SWEEP, 'broken');
    expect(await sweeps.mayBegin(WHERE, T0_MS + 1_000)).toBe(false);
    expect(await mayBegin()).toBe(true);
  });
});

describe('a sweep whose page is too large', () => {
  beforeEach(() => sweeps.begin(WHERE, { cursor: 'a', limit: 50, nowMs: T0_MS, sinceMs: T0_MS }));

  async function stored(): Promise<SweepPage> {
    const sweep = parseSweep(
      WHERE.wallet,
      WHERE.scope,
      await redis.hgetall(keys.sweep(WHERE.wallet, WHERE.scope)),
    );
    if (sweep === null) throw new Error('found no sweep under way');
    return sweep;
  }

  test('requests it again with half of the limit, by the same cursor', async () => {
    await sweeps.shrink(await stored(), T0_MS + 1);
    expect(await stored()).toMatchObject({ page: 2, cursor: 'a', limit: 25, cursorLimit: 50 });
  });

  test('goes on with the smaller limit where the cursor is accepted', async () => {
    await sweeps.shrink(await stored(), T0_MS + 1);
    await sweeps.next(SWEEP, { page: 2, cursor: 'b', limit: 25, nowMs: T0_MS + 2 });
    expect(await stored()).toMatchObject({ page: 3, cursor: 'b', limit: 25, cursorLimit: 25 });
  });

  test('begins again at its first page where the cursor is refused, and may follow the same cursors', async () => {
    await sweeps.shrink(await stored(), T0_MS + 1);
    await sweeps.restart(await stored(), T0_MS + 2);
    expect(await stored()).toMatchObject({ id: SWEEP.id, page: 1, cursor: null, limit: 25, cursorLimit: 25 });
    expect(await sweeps.next(SWEEP, { page: 1, cursor: 'a', limit: 25, nowMs: T0_MS + 3 })).toBe(true);
    expect(await stored()).toMatchObject({ page: 2, cursor: 'a' });
  });

  test('may begin anew five minutes after it met a record that is too large', async () => {
    await sweeps.end(await stored(), 'blocked');
    expect(await sweeps.mayBegin(WHERE, T0_MS + 60_000)).toBe(false);
    expect(await sweeps.mayBegin(WHERE, T0_MS + 300_000)).toBe(true);
  });
});

test('a sweep that begins at the first page has no cursor', async () => {
  await sweeps.begin(WHERE, { cursor: null, limit: 50, nowMs: T0_MS, sinceMs: T0_MS });
  const fields = await redis.hgetall(keys.sweep(WHERE.wallet, WHERE.scope));
  expect(parseSweep(WHERE.wallet, WHERE.scope, fields)).toMatchObject({ page: 1, cursor: null });
});

test('a sweep may wait the longer for the next the more pages it read', async () => {
  await sweeps.begin(WHERE, { cursor: 'a', limit: 50, nowMs: T0_MS, sinceMs: T0_MS });
  await sweeps.next(SWEEP, { page: 2, cursor: 'b', limit: 50, nowMs: T0_MS });
  await sweeps.end(SWEEP);
  const everyMs = (pages: number): number => pages * 10_000;
  expect(await sweeps.mayBegin(WHERE, T0_MS + 29_000, { everyMs })).toBe(false);
  expect(await sweeps.mayBegin(WHERE, T0_MS + 30_000, { everyMs })).toBe(true);
});

describe('turns of sweeps whose pages are read back to back', () => {
  const OTHER = { wallet: walletId('0x2222222222222222222222222222222222222222'), scope: 'all' };

  test('are so many at once; each is stored until its sweep ends', async () => {
    expect(await sweeps.acquireTurn(WHERE, 1)).toBe(true);
    await sweeps.begin(WHERE, { cursor: 'a', limit: 50, nowMs: T0_MS, sinceMs: T0_MS, isHurried: true });
    expect(await sweeps.acquireTurn(OTHER, 1)).toBe(false);
    await sweeps.retainTurn(WHERE);
    await sweeps.retainTurn(OTHER);
    expect(await sweeps.acquireTurn(OTHER, 1)).toBe(false);
    await sweeps.end(SWEEP, 'broken');
    expect(await sweeps.acquireTurn(OTHER, 1)).toBe(true);
  });

  test('end by themselves where a process was killed, or a clock was wrong', async () => {
    const nowMs = Date.now();
    await redis.zadd(
      keys.sweepTurns,
      nowMs - 1_000,
      'page:all:wallet:0x01',
      nowMs + 86_400_000,
      'page:all:wallet:0x02',
    );
    expect(await sweeps.acquireTurn(WHERE, 1)).toBe(true);
  });

  test('have the next page requested at once', async () => {
    await sweeps.begin(WHERE, { cursor: 'a', limit: 50, nowMs: T0_MS, sinceMs: T0_MS, isHurried: true });
    const stored = await redis.hgetall(keys.sweep(WHERE.wallet, WHERE.scope));
    expect(parseSweep(WHERE.wallet, WHERE.scope, stored)).toMatchObject({
      page: 2,
      isHurried: true,
      movedAtMs: T0_MS,
    });
    expect(await redis.zrange(`${keys.plan('status')}:requested`, '0', '-1')).toEqual([MEMBER]);
  });
});
