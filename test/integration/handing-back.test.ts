import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const HASHES = [1, 2, 3, 4, 5].map(hashOf);

/** Sooner than leases run out. */
const AT_ONCE_MS = 6_000;

const { later, started } = opening();

describe('a daemon that ends while its requests hang', () => {
  test('hands its polls back: another one makes them at once, and nobody is taken for having crashed', async () => {
    let hangs = true;
    const release = Promise.withResolvers<void>();
    const upstream = await started(
      new ScriptedUpstream(async ({ query }) => {
        if (hangs) await release.promise;
        return { records: [intentRecord(query.intentHash ?? '', 'pending', 1_700_000_000)] };
      }),
    );
    later(async () => release.resolve());
    const hook = await started(new TestReceiver());
    const prefix = testPrefix();
    const config = {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: HASHES, receivers: ['hook'] }],
      more: {
        upstream: { baseUrl: upstream.url, apiKey: 'sandbox-key', requestsPerSecond: 100, timeout: '60s' },
      },
    };
    const first = await startDaemon(config);
    while (new Set(upstream.asked.map(({ query }) => query.intentHash)).size < HASHES.length) {
      await upstream.asks(() => true);
    }
    await first.daemon.close();
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    expect(await redis.hlen(`{${prefix}}:plan:status:claims`)).toBe(0);
    hangs = false;
    const second = await startDaemon(config);
    later(() => second.daemon.close());
    const startedMs = Date.now();
    await hook.until((events) => events.length === HASHES.length);
    expect(Date.now() - startedMs).toBeLessThan(AT_ONCE_MS);
    expect(await redis.hlen(`{${prefix}}:plan:status:crashes`)).toBe(0);
  });
});
