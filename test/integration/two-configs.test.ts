import { expect, inject, test } from 'vitest';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { startDaemon, type TestConfig, testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const { later, started } = opening();

test('of two processes that start at once, each with its own config, one config is stored whole', async () => {
  const upstream = await started(upstreamOfStatuses(new Map()));
  const { hostname: host, port } = new URL(inject('redisUrl'));
  const proxy = await started(new TcpProxy({ host, port: Number(port) }));
  // Another machine's Redis.
  proxy.delayMs = 5;
  const prefix = testPrefix();
  const configOf = (name: string): TestConfig => {
    const receivers = Array.from({ length: 5 }, (_, index) => `${name}-${index}`);
    return {
      baseUrl: upstream.url,
      redisUrl: proxy.url,
      prefix,
      receivers: Object.fromEntries(receivers.map((receiver) => [receiver, { url: 'http://127.0.0.1:9/' }])),
      subscriptions: [{ name, receivers, intents: [hashOf(name === 'one' ? 1 : 2)] }],
      more: { removal: { graceSpan: '0s' } },
    };
  };
  const daemons = await Promise.all(['one', 'two'].map((name) => startDaemon(configOf(name))));
  for (const { daemon } of daemons) later(() => daemon.close());

  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(prefix);
  const stored = async (key: string, mark: string): Promise<string[]> =>
    Object.entries(await redis.hgetall(key)).flatMap(([name, text]) => (text.includes(mark) ? [name] : []));
  const [subscription, ...others] = await stored(keys.subscriptions, '"removedAtMs":null');
  expect(others).toEqual([]);
  expect((await stored(keys.receivers, '"removed":false')).sort()).toEqual(
    Array.from({ length: 5 }, (_, index) => `${subscription}-${index}`),
  );
  expect(await redis.hkeys(keys.wanted)).toEqual([expect.stringMatching(`^${subscription}\\|`)]);
});
