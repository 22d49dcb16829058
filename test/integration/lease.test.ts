import { expect, inject, test } from 'vitest';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { FencedLease } from '../../src/store/lease.ts';
import { testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

function stage() {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const { relayLease: lease, relayFence: fence } = new Keys(testPrefix());
  return { redis, lease, of: () => new FencedLease(redis, { lease, fence }) };
}

test('a holder of an expired lease has it again, with any number of its calls under way', async () => {
  const { redis, lease, of } = stage();
  const one = of();
  expect(await one.hold()).toBe('1');
  await redis.del(lease);
  expect(await Promise.all([one.hold(), one.hold(), one.hold()])).toEqual(['2', '2', '2']);
  expect(one.token).toBe('2');
  await one.release();
  expect(await redis.exists(lease)).toBe(0);
});

test('a lease claimed under a clock an hour ahead outlives its holder by a lease at most', async () => {
  const { redis, lease, of } = stage();
  await redis.set(lease, 'of a process that died', 'PX', 3_600_000);
  expect(await of().hold()).toBe(null);
  expect(await redis.pttl(lease)).toBeLessThanOrEqual(5_000);
});

test('a release waits for the call that is under way', async () => {
  const { redis, lease, of } = stage();
  const one = of();
  const holding = one.hold();
  await one.release();
  await holding;
  expect(await redis.exists(lease)).toBe(0);
});
