import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const WALLET = '0x1111111111111111111111111111111111111111';
const HASH = hashOf(4);

describe('a finished subject', () => {
  test('that a page shows in an older state is polled, and its regression accepted once it is confirmed', async () => {
    const updatedAt = Math.floor(Date.now() / 1_000) + 60;
    let status = 'settled';
    const upstream = await started(
      new ScriptedUpstream(() => ({ records: [intentRecord(HASH, status, updatedAt)] })),
    );
    const hook = await started(new TestReceiver());
    const { daemon } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', wallets: [WALLET], receivers: ['hook'] }],
      more: { polling: { confirmAfter: '1s' } },
    });
    later(() => daemon.close());
    await hook.until((events) => events.length === 1);
    status = 'filled';
    const events = await hook.until((all) => all.length === 2);
    expect(events.map(({ type, data }) => [type, data.regression])).toEqual([
      ['intent.settled', undefined],
      ['intent.filled', true],
    ]);
  });

  test('that has ended by its age is polled once more before, and its move is reported', async () => {
    const nowSeconds = Math.floor(Date.now() / 1_000);
    let [status, updatedAt] = ['expired', nowSeconds - 60];
    const upstream = await started(
      new ScriptedUpstream(() => ({ records: [intentRecord(HASH, status, updatedAt)] })),
    );
    const hook = await started(new TestReceiver());
    const prefix = testPrefix();
    const { daemon } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: [HASH], receivers: ['hook'] }],
    });
    later(() => daemon.close());
    await hook.until((events) => events.length === 1);
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    const plan = `{${prefix}}:plan:status`;
    await eventually(
      'it rests',
      async () => (await redis.zscore(`${plan}:resting`, `intent:${HASH}`)) !== null,
    );
    // As after a stop of 40 days, in which it moved on.
    [status, updatedAt] = ['refunded', nowSeconds - 30];
    const longAgo = nowSeconds - 40 * 86_400;
    await redis.hset(`{${prefix}}:subject:intent:${HASH}`, {
      updatedAt: String(longAgo),
      changedAtMs: String(longAgo * 1_000),
    });
    await redis.zadd(`${plan}:resting`, '1', `intent:${HASH}`);
    const events = await hook.until((all) => all.length === 2);
    expect(events.map(({ type }) => type)).toEqual(['intent.expired', 'intent.refunded']);
  });

  test('that a config names stores its snapshot beyond the retention, so that a restart reports nothing again', async () => {
    const upstream = await started(
      new ScriptedUpstream(() => ({ records: [intentRecord(HASH, 'settled', 1_700_000_000)] })),
    );
    const hook = await started(new TestReceiver());
    const prefix = testPrefix();
    const config = {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: [HASH], receivers: ['hook'] }],
    };
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    const first = await startDaemon(config);
    await hook.until((events) => events.length === 1);
    await eventually(
      'it is polled no more',
      async () => (await redis.hlen(`{${prefix}}:plan:status:items`)) === 0,
    );
    await first.daemon.close();

    expect(await redis.pttl(`{${prefix}}:subject:intent:${HASH}`)).toBe(-1);
    expect(await redis.pttl(`{${prefix}}:claims:intent:${HASH}`)).toBe(-1);
    const second = await startDaemon({
      ...config,
      subscriptions: [{ name: 's', intents: [hashOf(5)], receivers: ['hook'] }],
      more: { removal: { graceSpan: '0s' } },
    });
    later(() => second.daemon.close());
    // No subscription names it any more: from now on its time runs, by no clock of Redis.
    expect(await redis.pttl(`{${prefix}}:subject:intent:${HASH}`)).toBe(-1);
    expect(await redis.zscore(`{${prefix}}:ended`, `intent:${HASH}`)).not.toBe(null);
  });
});
