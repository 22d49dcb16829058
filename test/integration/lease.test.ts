import { expect, inject, test } from 'vitest';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { FencedLease, LeaseLostError } from '../../src/store/lease.ts';
import { testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
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

test('work whose lease expired writes on, until another process has acquired the lease', async () => {
  const { redis, lease, of } = stage();
  const work = of().during(async (held) => {
    const write = () => held.write([['HINCRBY', `${lease}:written`, 'times', '1']]);
    await redis.del(lease);
    expect(await write()).toBe('1');
    await eventually('the lease is renewed', async () => (await redis.get(lease)) === held.token);
    expect(await write()).toBe('2');
    await redis.del(lease);
    const other = of();
    await other.hold();
    await expect(write()).rejects.toThrow(LeaseLostError);
    await other.release();
    await expect(write()).rejects.toThrow(LeaseLostError);
    // Also where this process has the lease again, under another token.
    await eventually('the lease is acquired again', async () => (await redis.exists(lease)) === 1);
    await expect(write()).rejects.toThrow(LeaseLostError);
  });
  await work;
  expect(await redis.hgetall(`${lease}:written`)).toEqual({ times: '2' });
  expect(await redis.exists(lease)).toBe(0);
});
