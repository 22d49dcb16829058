import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { walletId } from '../../src/domain/subjects/subject.ts';
import { Sweeps } from '../../src/queues/polls/sweeps.ts';
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

/** Whether another sweep on the scope might begin a minute later. */
async function mayBegin(): Promise<boolean> {
  return sweeps.mayBegin(WHERE, T0_MS + 60_000);
}

describe('a sweep over the pages of a wallet', () => {
  beforeEach(() => sweeps.begin(WHERE, { cursor: 'a', nowMs: T0_MS, sinceMs: T0_MS }));

  test('is not begun a second time while it is under way, also while a page is polled', async () => {
    expect(await mayBegin()).toBe(false);
    const { polls } = await plan.claim('status', { process: 'p', most: 1, aheadMs: 10_000, handed: [] });
    expect(polls.map(({ member }) => member)).toEqual([MEMBER]);
    expect(await mayBegin()).toBe(false);
    await sweeps.next(SWEEP, { page: 2, cursor: 'b', nowMs: T0_MS + 1 });
    expect(await mayBegin()).toBe(false);
  });

  test('goes on at the page that is next, and ends where a cursor leads in a circle', async () => {
    const next = (page: number, cursor: string): Promise<boolean> =>
      sweeps.next(SWEEP, { page, cursor, nowMs: T0_MS + 1 });
    expect(await next(2, 'b')).toBe(true);
    expect(await next(2, 'b')).toBe(true);
    expect(await next(3, 'a')).toBe(false);
    expect(await redis.hmget(keys.sweep(WHERE.wallet, WHERE.scope), 'page', 'cursor')).toEqual(['3', 'b']);
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
