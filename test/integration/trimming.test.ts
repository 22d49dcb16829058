import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { Backlog } from '../../src/store/backlog.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { testPrefix } from '../support/daemon.ts';

const SUBJECT = 'intent:0x1';

let redis: RedisClient;
let keys: Keys;
let events: EventLog;

beforeEach(() => {
  redis = connect({ kind: 'server', url: inject('redisUrl') });
  keys = new Keys(testPrefix());
  events = new EventLog(redis, keys);
});

afterEach(() => redis.disconnect());

async function store(
  atMs: number,
  outcome: 'delivered' | 'dead' | 'pending',
  replay = '',
  subject = SUBJECT,
): Promise<string> {
  const id = `evt_${atMs}`;
  const event = JSON.stringify({
    id,
    type: 'intent.filled',
    data: { subject: { kind: subject.split(':')[0], id: subject } },
  });
  await redis.xadd(keys.events, `${atMs}-0`, 'v', '1', 'kind', 'event', 'event', event, 'claimKeys', '[]');
  const delivery = replay === '' ? id : `${id}~${replay}`;
  await redis.hset(keys.delivery('hook', delivery), { outcome, entry: `${atMs}-0`, claimKeys: '[]' });
  await redis.set(`${keys.last('hook')}${replay}:${subject}`, delivery);
  if (outcome === 'dead') await redis.zadd(keys.dead('hook'), atMs + 500, delivery);
  if (outcome === 'pending') await redis.zadd(keys.pending('hook'), atMs, delivery);
  if (replay !== '') await redis.zadd(keys.replaysOf(id), 0, `hook ${replay}`);
  return delivery;
}

test('the outcomes of deliveries are removed with their event, those of resends too', async () => {
  const [first, resent, retained] = [
    await store(1_000, 'delivered'),
    await store(1_500, 'delivered', 'r1'),
    await store(2_000, 'delivered'),
  ];
  expect(await events.trim(1_600, ['hook'])).toEqual({ trimmed: 2, more: false });
  const present = await Promise.all(
    [first, resent, retained].map((id) => redis.exists(keys.delivery('hook', id))),
  );
  expect(present).toEqual([0, 0, 1]);
  expect(await redis.exists(keys.replaysOf('evt_1500'))).toBe(0);
  expect(await redis.exists(`${keys.last('hook')}r1:${SUBJECT}`)).toBe(0);
  expect(await redis.get(`${keys.last('hook')}:${SUBJECT}`)).toBe(retained);
  expect(await events.trimmed()).toBe('1500-0');
});

test.each([
  'swap:a"b',
  'swap:a\\',
  'swap:\u2028"}',
  'swap:é',
])('what is stored of the subject %s is removed with its event', async (subject) => {
  await store(1_000, 'delivered', '', subject);
  expect(await events.trim(1_600, ['hook'])).toEqual({ trimmed: 1, more: false });
  expect(await redis.keys(`${keys.prefix}:*swap*`)).toEqual([]);
});

test('the log is not trimmed beyond an event of which a delivery is open', async () => {
  await store(1_000, 'delivered');
  const open = await store(1_100, 'pending');
  await store(1_200, 'delivered');
  expect(await events.trim(2_000, ['hook'])).toEqual({ trimmed: 1, more: false });
  await redis.zrem(keys.pending('hook'), open);
  expect(await events.trim(2_000, ['hook'])).toEqual({ trimmed: 2, more: false });
});

test('a dead letter outlives its event, and is removed by the time of its death', async () => {
  const dead = await store(1_000, 'dead');
  await events.trim(1_400, ['hook']);
  await new Backlog(redis, keys).trim('hook', 1_400);
  expect(await redis.exists(keys.delivery('hook', dead))).toBe(1);
  await new Backlog(redis, keys).trim('hook', 1_600);
  expect(await redis.exists(keys.delivery('hook', dead))).toBe(0);
  expect(await redis.zcard(keys.dead('hook'))).toBe(0);
});
