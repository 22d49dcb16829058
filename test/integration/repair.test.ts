import { Redis } from 'ioredis';
import { beforeEach, describe, expect, inject, test } from 'vitest';
import type { Signals } from '../../src/signals.ts';
import { signalled, startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const HASH = hashOf(9);
const JOB = `poll-intent%3A${HASH}`;

const { later, started } = opening();

let redis: Redis;
let prefix: string;
let hook: TestReceiver;
let status: string;
let updatedAt: number;
let signals: Signals;

beforeEach(async () => {
  redis = new Redis(inject('redisUrl'));
  later(() => redis.quit());
  prefix = testPrefix();
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

async function repaired(what: string): Promise<void> {
  await signalled(
    (take: (repair: { what: string }) => void) => signals.on('repair.done', take),
    (repair) => repair.what === what,
  );
}

describe('the repeating check', () => {
  test('puts back the poll of a subject whose job has vanished, and counts it', async () => {
    await hook.until((events) => events.length === 1);
    const repair = repaired('poll-missing');
    // Between two polls the job stands among the delayed ones; while it is polled it cannot be taken away.
    while ((await redis.zrem(`{${prefix}}:q:status:delayed`, JOB)) === 0) await redis.ping();
    await redis.del(`{${prefix}}:q:status:${JOB}`);
    fill();
    await repair;
    await isFilled();
  });

  test('brings forward a poll that waits by a clock that was wrong', async () => {
    await hook.until((events) => events.length === 1);
    const repair = repaired('poll-stuck');
    const delayed = `{${prefix}}:q:status:delayed`;
    const nowMs = Date.now();
    // A process whose clock was an hour ahead has put the poll off, and died: the job waits, though long overdue.
    while ((await redis.zscore(delayed, JOB)) === null) await redis.ping();
    await redis.zadd(delayed, 'XX', (nowMs + 3_600_000) * 4_096, JOB);
    await redis.zadd(`{${prefix}}:due`, 'XX', nowMs - 120_000, `intent:${HASH}`);
    fill();
    await repair;
    await isFilled();
  });

  test('makes a Redis that was emptied what the config wants, and goes on', async () => {
    const [before] = await hook.until((events) => events.length === 1);
    const keys = await redis.keys(`{${prefix}}:*`);
    await redis.del(...keys);
    const events = await hook.until((all) => all.length >= 2);
    // First sight again, and under the same id, so that a receiver that knows it can leave it.
    expect(events[1]?.id).toBe(before?.id);
    fill();
    await isFilled();
  });
});
