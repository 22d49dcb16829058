import { expect, test } from 'vitest';
import { connect, disconnect } from '../../src/store/connection.ts';
import { startDaemon, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const CHANGES = 50;

test('changes of a receiver whose delivery hangs leak no connection, and delay no other delivery', async () => {
  const server = await RedisProcess.create();
  later(() => server.close());
  const redis = connect({ kind: 'server', url: server.url });
  later(() => disconnect(redis));
  const connections = async () =>
    String(await redis.call('CLIENT', 'LIST'))
      .trim()
      .split('\n').length;

  const statuses = new Map([[hashOf(1), 'pending']]);
  const upstream = await started(upstreamOfStatuses(statuses));
  const made = await started(new Hook(() => null));
  const { daemon } = await startDaemon({
    baseUrl: upstream.url,
    redisUrl: server.url,
    prefix: testPrefix(),
    receivers: {},
    subscriptions: [],
    more: {
      server: {
        host: '127.0.0.1',
        port: 0,
        secretsKey: 'a-key-that-is-long-enough-for-it',
        apiReceivers: { allowNetworks: ['127.0.0.0/8'], allowInsecure: true },
      },
    },
  });
  later(() => daemon.close());
  const call = async (method: string, path: string, body: object): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(`${daemon.url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) }))
      .status;
  };
  const receiver = {
    name: 'made',
    type: 'webhook',
    url: made.url,
    secrets: [`whsec_${Buffer.alloc(32, 3).toString('base64')}`],
    allowPrivateNetwork: true,
    allowInsecure: true,
    concurrency: 1,
    timeout: '300s',
  };
  expect(await call('POST', '/receivers', receiver)).toBe(201);
  const track = (hash: string) =>
    call('POST', '/subjects', { kind: 'intent', id: hash, receivers: ['made'] });
  expect(await track(hashOf(1))).toBe(201);
  await made.until((came) => came.length === 1);
  const before = await connections();

  for (let change = 1; change <= CHANGES; change += 1) {
    expect(await call('PATCH', '/receivers/made', { timeout: `${300 - change}s` })).toBe(200);
    // The hanging deliveries use slots of the old generations.
    const hash = hashOf(1 + change);
    statuses.set(hash, 'pending');
    expect(await track(hash)).toBe(201);
    await made.until((came) => came.length === 1 + change);
  }
  // Each generation has two of its own.
  await eventually(
    'the connections of one generation',
    async () => (await connections()) <= before + 2,
    30_000,
  );
  // Each attempt under way still has its own timeout of five minutes, so that none is repeated.
  expect(new Set(made.ids).size).toBe(1 + CHANGES);
  expect(made.came).toHaveLength(1 + CHANGES);
  await made.close();
});
