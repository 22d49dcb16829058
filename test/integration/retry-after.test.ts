import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { expect, inject, onTestFinished, test } from 'vitest';
import { Keys } from '../../src/store/keys.ts';
import { testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';
import { ShippedDaemon } from '../support/shipped-daemon.ts';

const LONG_AGO = 'Tue, 20 Nov 1990 00:00:00 GMT';

const EVENTS = 8;

/** Receivers that request no wait, by name. */
const IMPATIENT = {
  'zero-429': { status: 429, retryAfter: '0' },
  'past-429': { status: 429, retryAfter: LONG_AGO },
  'zero-503': { status: 503, retryAfter: '0' },
  'past-503': { status: 503, retryAfter: LONG_AGO },
} as const;

test('a receiver that names a wait of less than a second gets no request for 5 s', async () => {
  const requests = new Map<string, number>();
  const server = createServer((request, response) => {
    const name = (request.url ?? '').slice(1);
    requests.set(name, (requests.get(name) ?? 0) + 1);
    request.resume();
    const named = Object.entries(IMPATIENT).find(([each]) => each === name)?.[1];
    response.writeHead(named?.status ?? 404, { 'retry-after': named?.retryAfter ?? '' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const intents = Array.from({ length: EVENTS }, (_, index) => hashOf(index + 1));
  const upstream = upstreamOfStatuses(new Map(intents.map((hash) => [hash, 'pending'])));
  await upstream.start();
  onTestFinished(() => upstream.close());
  const prefix = testPrefix();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const names = Object.keys(IMPATIENT);
  const daemon = await ShippedDaemon.of(
    {
      baseUrl: upstream.url,
      subscription: { intents, receivers: names },
      more: {
        redis: { url: inject('redisUrl'), prefix },
        receivers: names.map((name) => ({
          name,
          type: 'webhook',
          url: `${url}${name}`,
          secrets: [`whsec_${Buffer.alloc(32, 9).toString('base64')}`],
          allowPrivateNetwork: true,
          allowInsecure: true,
        })),
      },
    },
    onTestFinished,
  );
  const startedMs = performance.now();
  await daemon.start();
  const redis = new Redis(inject('redisUrl'));
  onTestFinished(() => redis.disconnect());
  const keys = new Keys(prefix);
  for (const name of names) {
    await eventually(
      `${name} rests`,
      async () => (await redis.hget(keys.receiver(name), 'state')) === 'resting',
    );
    expect(await redis.hget(keys.receiver(name), 'span'), name).toBe('5000');
    // It gets one request after each rest.
    const rests = (performance.now() - startedMs) / 5_000;
    expect(requests.get(name), name).toBeLessThan(2 * EVENTS + rests);
  }
});
