import { Redis } from 'ioredis';
import { beforeEach, describe, expect, inject, test } from 'vitest';
import type { Signals } from '../../src/signals.ts';
import { signalled, startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const HASH = hashOf(9);

const { later, started } = opening();

let redis: Redis;
let prefix: string;
let plan: string;
let hook: TestReceiver;
let status: string;
let updatedAt: number;
let signals: Signals;

beforeEach(async () => {
  redis = new Redis(inject('redisUrl'));
  later(() => redis.quit());
  prefix = testPrefix();
  plan = `{${prefix}}:plan:status`;
  status = 'pending';
  updatedAt = 1_700_000_000;
  const upstream = new ScriptedUpstream(() => ({ records: [intentRecord(HASH, status, updatedAt)] }));
  await started(upstream);
  hook = await started(new TestReceiver());
  const running = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: { hook: { url: hook.url } },
    subscriptions: [{ name: 's', intents: [HASH], receivers: ['hook'] }],
  });
  later(() => running.daemon.close());
  signals = running.signals;
});

function fill(): void {
  status = 'filled';
  updatedAt += 30;
}

async function isFilled(): Promise<void> {
  await hook.until((events) => events.some((event) => event.type === 'intent.filled'));
}

/** Removes the subject from the plan. Between two polls it rests; while it is polled it cannot be removed. */
async function takeAway(): Promise<void> {
  await eventually('it rests', async () => (await redis.zrem(`${plan}:resting`, `intent:${HASH}`)) > 0);
}

async function repaired(): Promise<void> {
  await signalled(
    (take: (repair: { what: string; subject: string }) => void) => signals.on('repair.done', take),
    ({ what, subject }) => what === 'poll-missing' && subject === `intent:${HASH}`,
  );
}

describe('the repeating check', () => {
  test('puts back a subject that is missing from the plan, and counts it', async () => {
    await hook.until((events) => events.length === 1);
    const repair = repaired();
    await takeAway();
    fill();
    await repair;
    await isFilled();
  });

  test('brings forward a poll that waits by a clock that was wrong', async () => {
    await hook.until((events) => events.length === 1);
    const repair = repaired();
    const far = Date.now() + 86_400_000;
    await eventually('it rests', async () =>
      Boolean(await redis.zadd(`${plan}:resting`, 'XX', 'CH', far, `intent:${HASH}`)),
    );
    fill();
    await repair;
    await isFilled();
  });

  test('is not needed for a claim that never came to a worker: its lease runs out', async () => {
    await hook.until((events) => events.length === 1);
    const returned = signalled(
      (take: (claims: { count: number }) => void) => signals.on('claims.returned', take),
      ({ count }) => count > 0,
    );
    // As if a process had claimed it, and had died before the job was in the queue.
    await takeAway();
    await redis
      .multi()
      .hset(`${plan}:claims`, `intent:${HASH}`, `lost gone 0 0 ${Date.now()} fair 0`)
      .zadd(`${plan}:leases`, Date.now() + 3_000, `intent:${HASH}`)
      .exec();
    fill();
    await returned;
    await isFilled();
  });

  test('counts a repair also where another of its steps fails', async () => {
    await hook.until((events) => events.length === 1);
    const repair = signalled(
      (take: (repair: { what: string; subject: string }) => void) => signals.on('repair.done', take),
      ({ what, subject }) => what === 'count-wrong' && subject === 'open',
    );
    await redis.set(`{${prefix}}:learned-names`, 'of another type');
    await redis.hset(`{${prefix}}:counts:open`, 'pending|a|b', 7);
    await repair;
  });

  test('restores from the config a Redis that was emptied, and goes on', async () => {
    const [before] = await hook.until((events) => events.length === 1);
    // In one step: what a process writes in between would survive.
    await redis.eval(
      "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end",
      0,
      `{${prefix}}:*`,
    );
    const events = await hook.until((all) => all.length >= 2);
    // The first event again, under the same id: a receiver that knows it can skip it.
    expect(events[1]?.id).toBe(before?.id);
    fill();
    await isFilled();
  });
});
