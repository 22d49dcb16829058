import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import { startDaemon, TestReceiver, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started, child } = opening();

const HASHES = Array.from({ length: 40 }, (_, index) => hashOf(index + 1));

function always(status: string): ScriptedUpstream {
  return new ScriptedUpstream(({ query }) => ({
    records: [intentRecord(query.intentHash ?? '', status, 1_700_000_000)],
  }));
}

async function contents(redis: Redis, key: string): Promise<string> {
  switch (await redis.type(key)) {
    case 'string':
      return (await redis.get(key)) ?? '';
    case 'hash':
      return JSON.stringify(await redis.hgetall(key));
    case 'list':
      return JSON.stringify(await redis.lrange(key, 0, -1));
    case 'set':
      return JSON.stringify(await redis.smembers(key));
    case 'zset':
      return JSON.stringify(await redis.zrange(key, '0', '-1'));
    default:
      return JSON.stringify(await redis.xrange(key, '-', '+'));
  }
}

describe('the budget', () => {
  test('holds over two processes: in any second at most its requests and one more for each process', async () => {
    const budget = 20;
    const times: number[] = [];
    const upstream = await started(
      new ScriptedUpstream(({ query }) => {
        times.push(performance.now());
        return { records: [intentRecord(query.intentHash ?? '', 'pending', 1_700_000_000)] };
      }),
    );
    const hook = await started(new TestReceiver());
    const config = {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { hook: { url: hook.url } },
      subscriptions: [{ name: 's', intents: HASHES, receivers: ['hook'] }],
      more: { upstream: { baseUrl: upstream.url, apiKey: 'sandbox-key', requestsPerSecond: budget } },
    };
    for (const { daemon } of [await startDaemon(config), await startDaemon(config)])
      later(() => daemon.close());
    // The budget is used: 40 subjects need more than 20 requests a second. A slow machine reaches it later.
    const perSecond = (): number =>
      (8 * budget * 1_000) / ((times.at(-1) ?? 0) - (times.at(-8 * budget) ?? Number.NEGATIVE_INFINITY));
    while (perSecond() <= budget / 2) await upstream.awaitRequest(() => true);

    const most = Math.max(
      ...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length),
    );
    expect(most).toBeLessThanOrEqual(budget + 2);
  });
});

describe('a receiver that hangs', () => {
  test('delays no other: all events are at the second one before the first one has answered any', async () => {
    const upstream = await started(always('filled'));
    const held: (() => void)[] = [];
    const hanging = createServer((_, response) => void held.push(() => response.writeHead(204).end()));
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve));
    later(async () => {
      hanging.closeAllConnections();
      hanging.close();
    });
    const hook = await started(new TestReceiver());
    const { daemon } = await startDaemon({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: {
        hanging: {
          url: `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`,
          more: { timeout: '5m' },
        },
        hook: { url: hook.url },
      },
      subscriptions: [{ name: 's', intents: HASHES, receivers: ['hanging', 'hook'] }],
    });
    later(() => daemon.close());
    const events = await hook.until((all) => all.length === HASHES.length);
    expect(new Set(events.map((event) => event.id)).size).toBe(HASHES.length);
    expect(held.length).toBeGreaterThan(0);
  });
});

describe('secrets', () => {
  test('are neither in the log nor in Redis nor in any answer of the daemon, also when everything fails', async () => {
    const apiKey = 'key-that-nobody-may-see-4711';
    const urlToken = 'token-in-a-url-4712';
    const smtpPassword = 'mail-password-4713';
    const metadata = { order: '1042' };
    const upstream = await started(
      new ScriptedUpstream(({ query }) => {
        // An upstream that echoes the key, as some proxies do with their errors.
        if (query.intentHash === hashOf(2)) return { status: 500, body: `<p>bad key ${apiKey}</p>` };
        return { records: [intentRecord(query.intentHash ?? '', 'filled', 1_700_000_000)] };
      }),
    );
    const prefix = testPrefix();
    const daemon = child({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: { closed: { url: `http://127.0.0.1:1/${urlToken}` } },
      subscriptions: [
        { name: 's', intents: [hashOf(1), hashOf(2)], metadata, receivers: ['closed', 'mail'] },
      ],
      more: {
        upstream: { baseUrl: upstream.url, apiKey, requestsPerSecond: 50 },
        smtp: { url: `smtp://user:${smtpPassword}@127.0.0.1:1`, from: 'a@example.com' },
        receivers: [
          {
            name: 'closed',
            type: 'webhook',
            url: `http://127.0.0.1:1/${urlToken}`,
            secrets: [`whsec_${Buffer.alloc(32, 9).toString('base64')}`],
            allowPrivateNetwork: true,
            allowInsecure: true,
          },
          { name: 'mail', type: 'email', to: ['someone@example.com'] },
        ],
      },
    });
    await daemon.start();
    const failed = (receiver: string): Promise<void> =>
      daemon.until((lines) =>
        lines.some((line) => line.msg === 'delivery.attempted' && line.receiver === receiver),
      );
    await Promise.all([failed('closed'), failed('mail')]);
    await daemon.until((lines) => lines.some((line) => line.msg === 'poll.failed'));

    const redis = new Redis(inject('redisUrl'));
    later(() => redis.quit());
    const stored = await Promise.all((await redis.keys(`{${prefix}}:*`)).map((key) => contents(redis, key)));
    const listening = daemon.lines.find((line) => line.msg === 'server.listening');
    const served = await Promise.all(
      ['/metrics', '/readyz'].map(async (path) => (await fetch(`${String(listening?.url)}${path}`)).text()),
    );
    const seen = [...stored, ...served, JSON.stringify(daemon.lines)];
    for (const secret of [apiKey, urlToken, smtpPassword, Buffer.alloc(32, 9).toString('base64')]) {
      expect(seen.filter((text) => text.includes(secret))).toEqual([]);
    }
    // A text that is no secret is found that way: the search can find something.
    expect(seen.some((text) => text.includes('intent.filled'))).toBe(true);
    expect(JSON.stringify(daemon.lines)).not.toContain('someone@example.com');
  });
});
