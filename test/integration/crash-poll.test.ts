import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import type { ChildDaemon } from '../support/child-daemon.ts';
import { TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started, child } = opening();

describe('a daemon that is killed', () => {
  test('by the poll of one subject three times polls that one slowly and says so, and all others as ever', async () => {
    const [poison, other] = [hashOf(666), hashOf(1)];
    let restarts = 0;
    let othersAsked = 0;
    let daemon: ChildDaemon;
    const died = Promise.withResolvers<void>();
    const server = await started(
      new ScriptedUpstream(async ({ query }) => {
        if (query.intentHash === poison) {
          await daemon.kill();
          restarts += 1;
          if (restarts < 3) void daemon.start();
          else died.resolve();
        } else if (restarts === 3) {
          othersAsked += 1;
        }
        return { records: [intentRecord(query.intentHash ?? '', 'pending', 1_700_000_000)] };
      }),
    );
    const hook = await started(new TestReceiver());
    const prefix = testPrefix();
    daemon = child({
      baseUrl: server.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: [poison, other], receivers: ['hook'] }],
      // Requests far enough apart that the other poll is not under way as well whenever the process dies.
      more: { upstream: { baseUrl: server.url, apiKey: 'sandbox-key', requestsPerSecond: 4 } },
    });
    await Promise.race([daemon.start(), died.promise]);
    await died.promise;
    await daemon.start();
    await daemon.until((lines) => lines.some((line) => line.msg === 'poll.crashing'));
    const before = othersAsked;
    await server.asks(({ query }) => query.intentHash === other);
    await server.asks(({ query }) => query.intentHash === other);

    expect(restarts).toBe(3);
    expect(othersAsked).toBeGreaterThan(before);
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    // Put off, never dropped: it stays on the schedule, and its job waits among the delayed.
    expect(await redis.zscore(`{${prefix}}:due`, `intent:${poison}`)).not.toBeNull();
    expect(await redis.zscore(`{${prefix}}:q:status:delayed`, `poll-intent%3A${poison}`)).not.toBeNull();
    expect(hook.events.map((event) => event.data.subject.id)).toEqual([`intent:${other}`]);
  });
});
