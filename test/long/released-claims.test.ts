import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const HASHES = [1, 2, 3, 4, 5].map(hashOf);

/** Number of requests that the upstream leaves open until all of them are under way. */
const AT_ONCE = 20;

/** Hanging requests are cut off after 3 s, and the rest may take 600 ms. */
const IN_TIME_MS = 3_500;

const { later, started, child } = opening();

describe('a daemon that ends while its requests hang', () => {
  test('releases its polls: another one makes them at once, and no process counts as crashed', async () => {
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
    const configOf = (prefix: string) => ({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: HASHES, receivers: ['hook'] }],
      more: {
        upstream: { baseUrl: upstream.url, apiKey: 'sandbox-key', requestsPerSecond: 100, timeout: '5m' },
      },
    });
    // A daemon out of time is cut off, also where the machine has used up the time.
    const prefix = await eventually('a daemon that had its time', async () => {
      const own = testPrefix();
      const from = upstream.requests.length;
      const { daemon } = await startDaemon(configOf(own));
      const requests = () => new Set(upstream.requests.slice(from).map(({ query }) => query.intentHash));
      while (requests().size < HASHES.length) await upstream.awaitRequest(() => true);
      const sinceMs = performance.now();
      await daemon.close();
      return performance.now() - sinceMs < IN_TIME_MS && own;
    });
    const config = configOf(prefix);
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    expect(await redis.hlen(`{${prefix}}:plan:status:claims`)).toBe(0);
    hangs = false;
    const second = await startDaemon(config);
    later(() => second.daemon.close());
    await hook.until((events) => events.length === HASHES.length);
    expect(await redis.hlen(`{${prefix}}:plan:status:crashes`)).toBe(0);
  });
});

describe('a daemon that is killed while many of its requests are under way', () => {
  test('releases them to another one, which makes them side by side', async () => {
    const hashes = Array.from({ length: 60 }, (_, index) => hashOf(index + 1));
    let hangs = true;
    let underWay = 0;
    const [release, enough] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const upstream = await started(
      new ScriptedUpstream(async ({ query }) => {
        if (hangs) await release.promise;
        else {
          underWay += 1;
          if (underWay === AT_ONCE) enough.resolve();
          await enough.promise;
        }
        return { records: [intentRecord(query.intentHash ?? '', 'pending', 1_700_000_000)] };
      }),
    );
    later(async () => release.resolve());
    const hook = await started(new TestReceiver());
    const config = {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: hashes, receivers: ['hook'] }],
      more: {
        upstream: { baseUrl: upstream.url, apiKey: 'sandbox-key', requestsPerSecond: 100, timeout: '5m' },
      },
    };
    const first = child(config);
    await first.start();
    while (new Set(upstream.requests.map(({ query }) => query.intentHash)).size < hashes.length) {
      await upstream.awaitRequest(() => true);
    }
    const second = await startDaemon(config);
    later(() => second.daemon.close());
    await first.kill();
    hangs = false;
    await hook.until((events) => new Set(events.map(({ data }) => data.subject.id)).size === hashes.length);
  });
});
