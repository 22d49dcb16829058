import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { walletId } from '../../src/domain/subjects/subject.ts';
import { Walks } from '../../src/queues/polls/walks.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { PlanStore, pageMember } from '../../src/store/plan.ts';
import { testPrefix } from '../support/daemon.ts';

const WHERE = { wallet: walletId('0x1111111111111111111111111111111111111111'), route: 'all' };
const MEMBER = pageMember(WHERE.wallet, WHERE.route);
const T0_MS = 1_800_000_000_000;
const WALK = { ...WHERE, id: String(T0_MS) };

let redis: RedisClient;
let keys: Keys;
let plan: PlanStore;
let walks: Walks;

beforeEach(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  keys = new Keys(testPrefix());
  plan = new PlanStore(redis, keys);
  walks = new Walks({ redis, keys, plan });
});

afterEach(() => redis.disconnect());

/** Whether another walk on the route might begin a minute later. */
async function mayBegin(): Promise<boolean> {
  return walks.mayBegin(WHERE, T0_MS + 60_000);
}

describe('a walk over the pages of a wallet', () => {
  beforeEach(() => walks.begin(WHERE, { cursor: 'a', nowMs: T0_MS, sinceMs: T0_MS }));

  test('is not begun a second time while it is under way, also while a page is polled', async () => {
    expect(await mayBegin()).toBe(false);
    const { polls } = await plan.claim('status', { process: 'p', most: 1, aheadMs: 10_000, handed: [] });
    expect(polls.map(({ member }) => member)).toEqual([MEMBER]);
    expect(await mayBegin()).toBe(false);
    await walks.next(WALK, { page: 2, cursor: 'b', nowMs: T0_MS + 1 });
    expect(await mayBegin()).toBe(false);
  });

  test('goes on at the page that is next, and ends where a cursor leads in a circle', async () => {
    const next = (page: number, cursor: string): Promise<boolean> =>
      walks.next(WALK, { page, cursor, nowMs: T0_MS + 1 });
    expect(await next(2, 'b')).toBe(true);
    expect(await next(2, 'b')).toBe(true);
    expect(await next(3, 'a')).toBe(false);
    expect(await redis.hmget(keys.walk(WHERE.wallet, WHERE.route), 'page', 'cursor')).toEqual(['3', 'b']);
  });

  test('may begin anew where its process died before the plan had its page', async () => {
    await redis.del(`${keys.plan('status')}:items`);
    expect(await mayBegin()).toBe(true);
  });

  test('may begin anew once it has ended, and some time after it was cut short', async () => {
    await walks.end(WALK);
    expect(await mayBegin()).toBe(true);
    await walks.end(WALK, 'broken');
    expect(await walks.mayBegin(WHERE, T0_MS + 1_000)).toBe(false);
    expect(await mayBegin()).toBe(true);
  });
});
