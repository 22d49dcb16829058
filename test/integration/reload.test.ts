import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { type TestConfig, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, type ScriptedUpstream, upstreamOfStatuses } from '../support/scripted-upstream.ts';

const { later, started } = opening();

async function upstreamOf(statuses: Map<string, string>): Promise<ScriptedUpstream> {
  return started(upstreamOfStatuses(statuses));
}

function configOf(upstream: ScriptedUpstream, changes: Partial<TestConfig>): TestConfig {
  return {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: {},
    subscriptions: [],
    ...changes,
  };
}

const [ONE, TWO, THREE] = [hashOf(1), hashOf(2), hashOf(3)];

test('a reload starts to watch added wallets, releases removed ones, and reports metadata as it is then', async () => {
  const statuses = new Map([ONE, TWO, THREE].map((hash) => [hash, 'pending']));
  const upstream = await upstreamOf(statuses);
  const hook = await started(new Hook());
  const subscribed = (metadata: object, intents: string[]) => [
    { name: 'orders', receivers: ['backend'], metadata, intents },
  ];
  const config = configOf(upstream, {
    receivers: { backend: { url: hook.url } },
    subscriptions: subscribed({ desk: 'old' }, [ONE, TWO]),
  });
  const { daemon, write } = await reloadable(config, { later });
  await hook.until((came) => came.length === 2);

  await write({ ...config, subscriptions: subscribed({ desk: 'new' }, [TWO, THREE]) });
  expect(await daemon.reload()).toMatchObject({
    ok: true,
    changes: {
      subjects: { added: 1, removed: 1 },
      subscriptions: { added: [], removed: [], changed: ['orders'] },
      receivers: { added: [], removed: [], changed: [] },
      settings: [],
    },
  });
  await hook.until((came) => came.length === 3);
  for (const hash of [ONE, TWO, THREE]) statuses.set(hash, 'filled');
  await hook.until((came) => came.length === 5);
  const reported = hook.came
    .slice(2)
    .map(({ event: { type, data } }) => [type, data.subject.id, data.metadata]);
  expect(reported.sort()).toEqual([
    ['intent.filled', `intent:${TWO}`, { desk: 'new' }],
    ['intent.filled', `intent:${THREE}`, { desk: 'new' }],
    ['intent.pending', `intent:${THREE}`, { desk: 'new' }],
  ]);
});

test('a pattern of events that matches no known type is logged at the start and at a reload', async () => {
  const upstream = await upstreamOf(new Map());
  const subscriptions = [{ name: 'orders', receivers: ['backend'], intents: [ONE] }];
  const withEvents = (events: string[]) =>
    configOf(upstream, {
      receivers: { backend: { url: 'http://127.0.0.1:9/', more: { events } } },
      subscriptions,
    });
  const config = withEvents(['intent.fillled']);
  const { daemon, lines, write } = await reloadable(config, { later });
  const warned = () => lines.filter(({ msg }) => msg === 'config.warning');
  expect(warned()).toMatchObject([
    { level: 40, path: 'receivers[0].events[0]', reason: expect.stringContaining('like "intent.filled"') },
  ]);
  await write({ ...config, receivers: withEvents(['intent.faild']).receivers });
  expect(await daemon.reload()).toMatchObject({ ok: true });
  expect(warned()).toMatchObject([{}, { reason: expect.stringContaining('like "intent.failed"') }]);
  await write({ ...config, receivers: withEvents(['intnt.filled']).receivers });
  expect(await daemon.reload()).toMatchObject({
    ok: false,
    error: expect.stringContaining('"intent.filled"'),
  });
});

test('a config with the same content changes nothing', async () => {
  const upstream = await upstreamOf(new Map());
  const subscriptions = [{ name: 'orders', receivers: ['backend'], intents: [ONE] }];
  const config = configOf(upstream, {
    receivers: { backend: { url: 'http://127.0.0.1:9/' } },
    subscriptions,
  });
  const { daemon, lines, write } = await reloadable(config, { later });
  await write(config);
  expect(await daemon.reload()).toMatchObject({ ok: true, changes: { settings: [] } });
  expect(lines.map(({ msg }) => msg)).toContain('config.unchanged');
});

test('a delivery under way ends where it began, once, and the next ones go to the new address', async () => {
  const statuses = new Map([[ONE, 'pending']]);
  const upstream = await upstreamOf(statuses);
  const answers = Promise.withResolvers<number>();
  const before = await started(new Hook(() => answers.promise));
  const after = await started(new Hook());
  // The first attempt lasts as long as this machine needs for all the rest.
  const more = { timeout: '5m' };
  const config = configOf(upstream, {
    receivers: { backend: { url: before.url, more } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [ONE, TWO] }],
  });
  const { daemon, lines, write } = await reloadable(config, { later });
  await before.until((came) => came.length === 1);

  await write({ ...config, receivers: { backend: { url: after.url, more } } });
  expect(await daemon.reload()).toMatchObject({ ok: true, changes: { receivers: { changed: ['backend'] } } });
  statuses.set(TWO, 'pending');
  await after.until((came) => came.length === 1);
  answers.resolve(204);
  statuses.set(ONE, 'filled');
  await after.until((came) => came.length === 2);
  expect(before.came.map(({ event }) => [event.type, event.data.subject.id])).toEqual([
    ['intent.pending', `intent:${ONE}`],
  ]);
  expect(after.came.map(({ event }) => [event.type, event.data.subject.id])).toEqual([
    ['intent.pending', `intent:${TWO}`],
    ['intent.filled', `intent:${ONE}`],
  ]);
  expect(lines.filter(({ level }) => Number(level) >= 40)).toEqual([]);
});

test('an added receiver gets the events from then on, a removed one no more', async () => {
  const statuses = new Map([[ONE, 'pending']]);
  const upstream = await upstreamOf(statuses);
  const [first, second] = [await started(new Hook()), await started(new Hook())];
  const config = configOf(upstream, {
    receivers: { first: { url: first.url } },
    subscriptions: [{ name: 'orders', receivers: ['first'], intents: [ONE] }],
  });
  const { daemon, write } = await reloadable(config, { later });
  await first.until((came) => came.length === 1);
  await write({
    ...config,
    receivers: { second: { url: second.url } },
    subscriptions: [{ name: 'orders', receivers: ['second'], intents: [ONE] }],
  });
  await daemon.reload();
  statuses.set(ONE, 'filled');
  await second.until((came) => came.length === 1);
  expect(first.came.map(({ event }) => event.type)).toEqual(['intent.pending']);
  expect(second.came.map(({ event }) => event.type)).toEqual(['intent.filled']);
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  expect(metrics).toContain('intentwatch_receiver_info{receiver="second",type="webhook"} 1');
  expect(metrics).not.toContain('intentwatch_receiver_info{receiver="first"');
  expect(metrics).toMatch(/intentwatch_deliveries_total\{receiver="second",outcome="delivered"\} 1/);
});

test('names the settings that have changed by their keys in the file', async () => {
  const upstream = await upstreamOf(new Map());
  const config = configOf(upstream, {
    receivers: { backend: { url: 'http://127.0.0.1:9/' } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [ONE] }],
  });
  const { daemon, write } = await reloadable(config, { later });
  const token = { chainId: 8453, address: `0x${'1b'.repeat(20)}`, symbol: 'PUSD', decimals: 6 };
  const more = {
    chains: { 8453: { rpc: [{ name: 'own', url: 'http://127.0.0.1:9' }] } },
    tokens: [{ ...token, checkable: false }],
    polling: { shortestWait: '2s', longestWait: '40s' },
    books: { url: 'postgres://daemon@127.0.0.1:9/books' },
  };
  await write({ ...config, more });
  const settings = async (): Promise<readonly string[]> => {
    const result = await daemon.reload();
    return result?.state === 'running' ? (result.changes?.settings ?? []) : [];
  };
  const changed = await settings();
  expect(changed).toEqual(
    expect.arrayContaining(['chains', 'tokens', 'polling.shortestWait', 'polling.longestWait']),
  );
  const schema = JSON.parse(await readFile(join(import.meta.dirname, '../../config/schema.json'), 'utf8'));
  for (const key of changed) {
    const [section = '', member] = key.split('.');
    const reported = schema.properties[section];
    expect([key, reported !== undefined && (member === undefined || member in reported.properties)]).toEqual([
      key,
      true,
    ]);
  }

  await write({
    ...config,
    more: { ...more, chains: { 8453: { rpc: [{ name: 'own', url: 'http://127.0.0.1:8' }] } } },
  });
  expect(await settings()).toEqual(['chains']);
});

test('another upstream, another key and another budget are used from then on', async () => {
  const [before, after] = [await upstreamOf(new Map()), await upstreamOf(new Map())];
  const config = configOf(before, {
    receivers: { backend: { url: 'http://127.0.0.1:9/' } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [ONE] }],
  });
  const { daemon, write } = await reloadable(config, { later });
  await eventually('a poll', () => before.requests.length > 0);
  const upstream = { baseUrl: after.url, apiKey: 'another', requestsPerSecond: 7 };
  await write({ ...config, more: { upstream } });
  const result = await daemon.reload();
  expect(result).toMatchObject({
    ok: true,
    changes: {
      settings: expect.arrayContaining(['upstream.apiKey', 'upstream.baseUrl', 'upstream.requestsPerSecond']),
    },
  });
  await after.awaitRequest(() => true);
  const requests = before.requests.length;
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  expect(await redis.hget(new Keys(config.prefix).plan('status'), 'budget')).toBe('7');
  await after.awaitRequest(() => true);
  expect(before.requests.length).toBe(requests);
});

test('a change that needs a restart is refused as a whole, and named', async () => {
  const statuses = new Map([[ONE, 'pending']]);
  const upstream = await upstreamOf(statuses);
  const hook = await started(new Hook());
  const config = configOf(upstream, {
    receivers: { backend: { url: hook.url } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [ONE] }],
  });
  const { daemon, file, lines, write } = await reloadable(config, { later });
  await hook.until((came) => came.length === 1);
  await write({
    ...config,
    prefix: testPrefix(),
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [TWO] }],
    more: { dataDir: './elsewhere', server: { host: '127.0.0.1', port: 9 } },
  });
  const expected = 'found another value than the daemon was started with, expected the same until a restart';
  const error = ['dataDir', 'redis.prefix', 'server.port']
    .map((key) => `${file}: ${key}: ${expected}`)
    .join('\n');
  expect(await daemon.reload()).toMatchObject({ ok: false, error });
  expect(lines.find(({ msg }) => msg === 'config.reload_failed')).toMatchObject({ level: 50, reason: error });
  statuses.set(ONE, 'filled');
  await hook.until((came) => came.length === 2);
  expect(daemon.fileState).toMatchObject({ ok: false });
});
