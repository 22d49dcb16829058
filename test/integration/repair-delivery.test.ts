import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { Keys } from '../../src/store/keys.ts';
import { signalled, startDaemon, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const open = opening();

test('a delivery that has come off its queue is queued again by the repeating check, and delivered', async () => {
  const tries: string[] = [];
  const delivered = Promise.withResolvers<void>();
  const failing = createServer((request, response) => {
    tries.push(String(request.headers['webhook-id']));
    response.writeHead(tries.length === 1 ? 500 : 204).end();
    if (tries.length === 2) delivered.resolve();
  });
  await new Promise<void>((resolve) => failing.listen(0, '127.0.0.1', resolve));
  open.later(async () => void failing.close());
  const upstream = await open.started(
    new ScriptedUpstream(() => ({ records: [intentRecord(hashOf(9), 'pending', 1_700_000_000)] })),
  );
  const prefix = testPrefix();
  const { daemon, signals } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: {
      hook: {
        url: `http://127.0.0.1:${(failing.address() as AddressInfo).port}`,
        more: { retries: { delays: ['5s'], jitter: 0 } },
      },
    },
    subscriptions: [{ name: 's', intents: [hashOf(9)], receivers: ['hook'] }],
  });
  open.later(() => daemon.close());
  const redis = new Redis(inject('redisUrl'));
  open.later(() => redis.quit());
  // The first attempt has failed; the delivery waits for the second, and is removed from the queue.
  const later = `${new Keys(prefix).queue('hook')}:later`;
  const waiting = await eventually(
    'the first attempt has failed',
    async () => (await redis.zrange(later, '0', '-1'))[0] ?? null,
  );
  const repaired = signalled(
    (take: (repair: { what: string }) => void) => signals.on('repair.done', take),
    ({ what }) => what === 'delivery-missing',
  );
  await redis.zrem(later, waiting);
  await repaired;
  await delivered.promise;

  expect(tries).toEqual([waiting, waiting]);
});
