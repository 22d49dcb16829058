import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import type { ChildDaemon, LogLine } from '../support/child-daemon.ts';
import { TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started, child } = opening();

describe('a daemon that is killed', () => {
  test('by the poll of one subject three times polls that one slowly with a warning, and all others as ever', async () => {
    const [poison, other] = [hashOf(666), hashOf(1)];
    let deaths = 0;
    let isKilled = false;
    let otherRequests = 0;
    let daemon: ChildDaemon;
    const died = Promise.withResolvers<void>();
    const server = await started(
      new ScriptedUpstream(async ({ query }) => {
        if (query.intentHash === poison) {
          isKilled = true;
          await daemon.kill();
          deaths += 1;
          // It may be killed again before it has started.
          if (deaths < 3) daemon.start().catch(() => undefined);
          else died.resolve();
        } else if (deaths === 3) {
          otherRequests += 1;
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
      // Requests far enough apart that only one poll is under way when the process dies.
      more: { upstream: { baseUrl: server.url, apiKey: 'sandbox-key', requestsPerSecond: 4 } },
    });
    // Here too it may be killed before it has started.
    await daemon.start().catch((error: unknown) => {
      if (!isKilled) throw error;
    });
    await died.promise;
    await daemon.start();
    // Polls that died with their process are found when their lease has expired.
    const isPoison = (line: LogLine): boolean => line.subject === `intent:${poison}` && line.crashes === 3;
    const isReported = (line: LogLine): boolean => line.msg === 'poll.crashed' && isPoison(line);
    await daemon.until((lines) => lines.some(isReported));
    const statedMs = Number(daemon.lines.find(isReported)?.time);
    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    // Postponed, never dropped.
    const next = await redis.zscore(`{${prefix}}:plan:status:suspects`, `intent:${poison}`);
    expect(Number(next)).toBeGreaterThan(statedMs + 15_000);
    const before = otherRequests;
    await server.awaitRequest(({ query }) => query.intentHash === other);
    await server.awaitRequest(({ query }) => query.intentHash === other);

    expect(deaths).toBe(3);
    expect(otherRequests).toBeGreaterThan(before);
    expect(await redis.hget(`{${prefix}}:plan:status:crashes`, `intent:${other}`)).toBeNull();
    // A webhook that was in flight when its process died comes again.
    expect(new Set(hook.events.map((event) => event.data.subject.id))).toEqual(new Set([`intent:${other}`]));
  });
});
