import { expect, inject, test } from 'vitest';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { FencedLease } from '../../src/store/lease.ts';
import { startDaemon, type TestConfig, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const { later, started, child } = opening();

/** A process with the subscription `older`, which is frozen in the middle of the sync at its start. */
async function frozen() {
  const upstream = await started(upstreamOfStatuses(new Map()));
  const { hostname: host, port } = new URL(inject('redisUrl'));
  const proxy = await started(new TcpProxy({ host, port: Number(port) }));
  const prefix = testPrefix();
  const configOf = (name: string, redisUrl: string): TestConfig => ({
    baseUrl: upstream.url,
    redisUrl,
    prefix,
    receivers: { [name]: { url: 'http://127.0.0.1:9/' } },
    subscriptions: [{ name, receivers: [name], intents: [hashOf(name === 'older' ? 1 : 2)] }],
    more: { removal: { graceSpan: '0s' } },
  });
  const older = child(configOf('older', proxy.url));
  const isFrozen = Promise.withResolvers<void>();
  proxy.onRequest = (bytes) => {
    // The definition of its subscription is written early; keys and digest are written behind it.
    if (bytes.includes('"name":"older","receivers":["older"]')) {
      proxy.onRequest = () => 'pass';
      older.freeze();
      isFrozen.resolve();
    }
    return 'pass';
  };
  const starting = older.start();
  await isFrozen.promise;
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(prefix);
  const names = async (): Promise<string[]> =>
    (await redis.hkeys(keys.wanted)).map((key) => key.slice(0, key.indexOf('|')));
  return { older, starting, redis, keys, names, newer: configOf('newer', inject('redisUrl')) };
}

test('a process that is stopped in its sync goes on beside a newer config, without its own', async () => {
  const { older, starting, redis, keys, names, newer } = await frozen();
  // It waits for the end of the lease.
  const { daemon } = await startDaemon(newer);
  later(() => daemon.close());
  const digest = await redis.hget(keys.config, 'digest');
  expect(await names()).toEqual(['newer']);
  older.thaw();
  await starting;
  expect(await redis.hget(keys.config, 'digest')).toBe(digest);
  expect(await names()).toEqual(['newer']);
  expect(older.lines.filter(({ msg }) => msg === 'config.overtaken')).toEqual([
    expect.objectContaining({ level: 40, newest: digest?.slice(0, 12) }),
  ]);
});

test('a process that is stopped in its sync repeats it where no other config has been synced', async () => {
  const { older, starting, redis, keys, names } = await frozen();
  // Another process ends suspensions under the same lease.
  const other = new FencedLease(redis, { lease: keys.configLease, fence: keys.configFence });
  await other.during(async () => undefined);
  older.thaw();
  await starting;
  expect(await names()).toEqual(['older']);
  expect(older.lines.filter(({ msg }) => msg === 'config.overtaken')).toEqual([]);
});
