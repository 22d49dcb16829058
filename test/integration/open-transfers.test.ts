import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { intentId } from '../../src/domain/subjects/subject.ts';
import type { OpenSums } from '../../src/store/wallets.ts';
import { OpenTransfersStage, record, sent, T0, T0_MS, TOKEN } from '../support/open-transfers-stage.ts';
import { hashOf } from '../support/scripted-upstream.ts';

let stage: OpenTransfersStage;

beforeEach(() => {
  stage = new OpenTransfersStage(inject('redisUrl'));
});

afterEach(() => stage.close());

async function oldest(state: OpenSums['oldest'][number]['state']): Promise<number | null | undefined> {
  return (await stage.read()).oldest.find((one) => one.state === state)?.since;
}

const [ONE, TWO] = [intentId(hashOf(1)), intentId(hashOf(2))];

test('transfers under way are counted with their sent amounts, to the last unit, and no longer after their end', async () => {
  const million = '1234567890123456789012345';
  await stage.take(record(ONE, 'pending', T0, sent(million)));
  await stage.take(record(TWO, 'pending', T0 + 5, sent('1')));
  expect(await stage.sums()).toEqual([`pending 56:* 56 token 2 ${BigInt(million) + 1n}`]);
  expect(await oldest('pending')).toBe(T0);
  await stage.take(record(ONE, 'filled', T0 + 20, sent(million)));
  expect(await stage.sums()).toEqual(['pending 56:* 56 token 1 1']);
  expect(await oldest('pending')).toBe(T0 + 5);
  await stage.take(record(TWO, 'settled', T0 + 30, sent('1')));
  expect(await stage.sums()).toEqual([]);
  expect(await stage.isEmpty()).toBe(true);
});

test('money that failed is counted until it is back', async () => {
  await stage.take(record(ONE, 'pending', T0, sent('7')));
  await stage.take(record(ONE, 'expired', T0 + 60, sent('7')));
  expect(await stage.sums()).toEqual(['expired 56:* 56 token 1 7']);
  await stage.take(record(ONE, 'REFUNDABLE', T0 + 90, sent('7')));
  expect(await stage.sums()).toEqual(['refundable 56:* 56 token 1 7']);
  expect(await oldest('refundable')).toBe(T0 + 90);
  await stage.take(record(ONE, 'refunded', T0 + 120, sent('7')));
  expect(await stage.isEmpty()).toBe(true);
});

test('a transfer that was reported as overdue counts as that, since its funding, and as nothing else', async () => {
  await stage.take(record(ONE, 'pending', T0, sent('7')));
  const nowMs = T0_MS + 3_600_000;
  await stage.reportOverdue(ONE, nowMs);
  expect(await stage.sums()).toEqual(['overdue 56:* 56 token 1 7']);
  expect(await oldest('overdue')).toBe(T0);
  expect(await oldest('pending')).toBe(null);
  await stage.take(record(ONE, 'filled', T0 + 4_000, sent('7')), { nowMs: nowMs + 1_000 });
  expect(await stage.isEmpty()).toBe(true);
});

test('an amount that becomes known, or another, takes the place of the one before', async () => {
  await stage.take(record(ONE, 'pending', T0, {}));
  expect(await stage.sums()).toEqual(['pending *   1 0']);
  await stage.take(record(ONE, 'pending', T0 + 1, sent('7')));
  await stage.take(record(ONE, 'pending', T0 + 2, sent('9')));
  expect(await stage.sums()).toEqual(['pending 56:* 56 token 1 9']);
  expect(await oldest('pending')).toBe(T0);
});

test.each([
  ['-5'],
  ['1e9'],
  ['9'.repeat(79)],
  ['|7|'],
])('a transfer without a valid amount (%s) is counted without one', async (amount) => {
  await stage.take(record(ONE, 'pending', T0, sent(amount, { token: 'a|b' })));
  expect(await stage.sums()).toEqual(['pending 56:*   1 0']);
  await stage.take(record(ONE, 'filled', T0 + 1, {}));
  expect(await stage.isEmpty()).toBe(true);
});

test('a uint256 is counted to the last unit', async () => {
  const most = 2n ** 256n - 1n;
  await stage.take(record(ONE, 'pending', T0, sent(String(most))));
  await stage.take(record(TWO, 'pending', T0, sent(String(most))));
  expect(await stage.sums()).toEqual([`pending 56:* 56 token 2 ${2n * most}`]);
  await stage.take(record(ONE, 'filled', T0 + 1, sent(String(most))));
  expect(await stage.sums()).toEqual([`pending 56:* 56 token 1 ${most}`]);
});

test('a transfer that is tracked again counts again, though nothing has changed', async () => {
  await stage.take(record(ONE, 'pending', T0, sent('7')));
  await stage.retire(ONE);
  expect(await stage.isEmpty()).toBe(true);
  await stage.take(record(ONE, 'pending', T0, sent('7')), { wallet: 'again' });
  expect(await stage.sums()).toEqual(['pending 56:* 56 token 1 7']);
  expect(await stage.redis.hgetall(stage.keys.counts)).toEqual({ 'intent|pending': '1' });
});

test('a transfer that is tracked no more is counted no more', async () => {
  await stage.take(record(ONE, 'pending', T0, sent('7')));
  await stage.retire(ONE);
  expect(await stage.isEmpty()).toBe(true);
});

test('however many tokens and chains an upstream names, a bounded number of sums is stored, and it comes to nothing', async () => {
  const { redis } = stage;
  const key = `${stage.keys.counts}:open`;
  const others = Array.from({ length: 3_000 }, (_, index) => [`pending|1:${index}|1:0x01`, '1']).flat();
  await redis.hset(key, ...others);
  await stage.take(record(ONE, 'pending', T0, sent('7')));
  await stage.take(record(TWO, 'refundable', T0, sent('7')));
  expect(await redis.hlen(key)).toBe(3_002);
  expect(await redis.hmget(key, 'pending|*|', 'refundable|*|')).toEqual(['1', '1']);
  await stage.take(record(ONE, 'pending', T0 + 5, sent('7', { chainId: 10 })));
  expect(await redis.hget(key, 'pending|*|')).toBe('1');
  await stage.take(record(ONE, 'filled', T0 + 9, sent('7')));
  await stage.take(record(TWO, 'refunded', T0 + 9, sent('7')));
  expect(await redis.hlen(key)).toBe(3_000);
});

describe('the check of the counts', () => {
  const pending = 'pending 56:* 56 token 1 7';

  beforeEach(async () => {
    await stage.take(record(ONE, 'pending', T0, sent('7')));
  });

  test('finds nothing where all is counted', async () => {
    expect(await stage.subjects.recount()).toEqual([]);
    expect(await stage.sums()).toEqual([pending]);
  });

  test('counts the transfers that a version before there were counts has stored, without an event', async () => {
    const { redis, keys } = stage;
    await redis.hdel(keys.subject(ONE), 'open', 'counted');
    await redis.del(keys.counts, `${keys.counts}:open`, `${keys.counts}:open:pending`);
    expect(await stage.subjects.recount()).toEqual([]);
    expect(await stage.sums()).toEqual([pending]);
    expect(await oldest('pending')).toBe(T0);
    expect(await redis.hgetall(keys.counts)).toEqual({ 'intent|pending': '1' });
  });

  test.each([
    ['lost', ['DEL', ':open']],
    ['wrong', ['HINCRBY', ':open', `pending|56:*|56:${TOKEN.toLowerCase()}`, '5']],
    ['no numbers', ['HSET', ':open', `pending|56:*|56:${TOKEN.toLowerCase()}`, 'x']],
    ['of nobody', ['HSET', ':open', 'expired|1:1|', '3']],
  ])('counts all anew, and reports it, where sums are %s', async (_, [
    command = '',
    suffix = '',
    ...more
  ]) => {
    await stage.take(record(TWO, 'refundable', T0 + 9, sent('1')));
    const truth = await stage.sums();
    await stage.redis.call(command, `${stage.keys.counts}${suffix}`, ...more);
    expect(await stage.subjects.recount()).toEqual(['open']);
    expect(await stage.sums()).toEqual(truth);
    expect([await oldest('pending'), await oldest('refundable')]).toEqual([T0, T0 + 9]);
    expect(await stage.subjects.recount()).toEqual([]);
  });

  test('subtracts the count of a transfer that is gone', async () => {
    const { redis, keys } = stage;
    await redis.del(keys.subject(ONE));
    await redis.hdel(`${keys.plan('status')}:items`, ONE);
    expect(await stage.subjects.recount()).toEqual([ONE, 'open']);
    expect(await stage.isEmpty()).toBe(true);
  });

  test.each(['odd', '9'.repeat(30)])('begins anew where its place is %s', async (place) => {
    const { redis, keys, subjects } = stage;
    await redis.hset(keys.repairCursors('status'), ':open:pending', place);
    expect(await subjects.recount()).toEqual([]);
    expect(await redis.hget(keys.repairCursors('status'), ':open:pending')).toBe('0');
  });

  test('counts a transfer by its state where its note has another one', async () => {
    await stage.redis.hset(stage.keys.subject(ONE), 'open', 'expired|1:1||');
    expect(await stage.subjects.recount()).toContain(ONE);
    await stage.subjects.recount();
    expect(await stage.sums()).toEqual([pending]);
    expect(await stage.subjects.recount()).toEqual([]);
  });
});
