import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { countUnmatched } from '../../src/queues/deliveries/count-unmatched.ts';
import { takeReplay } from '../../src/queues/deliveries/replays.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import { Keys } from '../../src/store/keys.ts';
import { UnmatchedStore } from '../../src/store/undelivered.ts';
import { runCommand } from '../support/command.ts';
import { type TestConfig, testPrefix } from '../support/daemon.ts';
import { deliveryStage } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents, madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { ONE, wantedOf } from '../support/registry-stage.ts';
import { relayStage } from '../support/relay-stage.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';
import { syncConfig } from '../support/sync-config.ts';

const open = opening();
const { later, started } = open;

const [FILTERED, ORPHAN] = [hashOf(1), hashOf(2)];
const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;

test('an event without a receiver is counted once by its reason, and listed where no filter causes that', async () => {
  const statuses = new Map([FILTERED, ORPHAN].map((hash) => [hash, 'pending']));
  const upstream = await started(upstreamOfStatuses(statuses));
  const hook = await started(new Hook());
  const { daemon } = await reloadable(
    {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { backend: { url: hook.url, more: { events: ['quote.*'] } } },
      subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [FILTERED] }],
      more: {
        polling: { shortestWait: '1s', longestWait: '1s' },
        server: {
          host: '127.0.0.1',
          port: 0,
          secretsKey: 'a-key-that-is-long-enough-for-it',
          apiReceivers: { allowNetworks: ['127.0.0.0/8'], allowInsecure: true },
        },
      },
    },
    { later },
  );
  const send = async (method: string, path: string, body?: object): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { headers, body: JSON.stringify(body) };
    return (await fetch(`${daemon.url}/api/v1${path}`, { method, ...sent })).status;
  };
  const counts = async (): Promise<string[]> => {
    const text = await (await fetch(`${daemon.url}/metrics`)).text();
    return [...text.matchAll(/^intentwatch_events_unmatched_total\{reason="([a-z-]+)"\} (\d+)$/gm)]
      .map(([, reason, count]) => `${reason} ${count}`)
      .sort();
  };
  const made = { name: 'made', type: 'webhook', url: hook.url, secrets: [SECRET], allowPrivateNetwork: true };
  expect(await send('POST', '/receivers', { ...made, allowInsecure: true })).toBe(201);
  expect(await send('POST', '/subjects', { kind: 'intent', id: ORPHAN, receivers: ['made'] })).toBe(201);
  await hook.until((came) => came.length === 1);
  await send('DELETE', '/receivers/made');
  statuses.set(ORPHAN, 'filled');
  await eventually('both are counted', async () => (await counts()).includes('no-receiver 1'));
  await eventually('both are counted', async () => (await counts()).includes('filtered 1'));
  expect(await counts()).toEqual(['filtered 1', 'no-receiver 1', 'not-in-config 0', 'pull-only 0']);

  const listed = await (await fetch(`${daemon.url}/api/v1/unmatched`)).json();
  expect(listed).toMatchObject({
    unmatched: [{ type: 'intent.filled', subject: `intent:${ORPHAN}`, reason: 'no-receiver' }],
    next: null,
  });
  const env = { INTENTWATCH_URL: daemon.url };
  const { out } = await runCommand(['undelivered'], env);
  expect(out).toMatch(/^NO RECEIVER GETS.*\n *no-receiver .*intent\.filled/m);

  // Once its subscription leads to a receiver, it is sent by its id, and leaves the list.
  const [, id = ''] = /(evt_\w+)/.exec(out) ?? [];
  const early = await runCommand(['resend', id], env);
  expect([early.code, early.err]).toEqual([1, expect.stringContaining('found no receiver that matches')]);
  expect(await send('POST', '/receivers', { ...made, name: 'other', allowInsecure: true })).toBe(201);
  expect(await send('POST', '/subjects', { kind: 'intent', id: ORPHAN, receivers: ['other'] })).toBe(200);
  expect(hook.ids).not.toContain(id);
  expect(await runCommand(['resend', id], env)).toMatchObject({ code: 0 });
  expect(hook.ids).toContain(id);
  expect((await runCommand(['undelivered'], env)).out).toBe('nothing is undelivered');
  const unknown = await runCommand(['undelivered', 'mad'], env);
  expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining('found the receiver "mad"')]);
});

test('events of the log from before anything was counted are not reported', async () => {
  const hook = await started(new Hook());
  const { redis, keys, start } = await deliveryStage(open, { backend: { hook } });
  const orphan = async (hash: number): Promise<string[]> => {
    const subject = `intent:${hashOf(hash)}`;
    const made = { subject, sequence: 1, atMs: await redisTimeMs(redis), key: `gone|${subject}` };
    return appendEvents(redis, keys, [made]);
  };
  await orphan(1);
  await start();
  const [newer] = await orphan(2);
  const store = new UnmatchedStore(redis, keys);
  await eventually('the newer event is counted', async () => (await store.place()) === newer);
  expect(await store.list({ before: null, count: 10 })).toEqual([{ entry: newer, reason: 'not-in-config' }]);
});

test('an event that its receiver gets after all leaves the list', async () => {
  const redis = new Redis(inject('redisUrl'));
  later(async () => redis.disconnect());
  const statuses = new Map([[ORPHAN, 'pending']]);
  const upstream = await started(upstreamOfStatuses(statuses));
  const [hook, desk] = [await started(new Hook()), await started(new Hook())];
  const keys = new Keys(testPrefix());
  const config: TestConfig = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: keys.prefix.slice(1, -1),
    receivers: { hook: { url: hook.url }, desk: { url: desk.url, more: { events: ['receiver.*'] } } },
    subscriptions: [],
    more: { polling: { shortestWait: '1s', longestWait: '1s' } },
  };
  const run = await reloadable(config, { later });
  await fetch(`${run.daemon.url}/api/v1/subjects`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'intent', id: ORPHAN, receivers: ['hook'] }),
  });
  await hook.until((came) => came.length === 1);
  await run.write({ ...config, receivers: { desk: { url: desk.url } } });
  await run.daemon.reload();
  statuses.set(ORPHAN, 'filled');
  await eventually('it is listed', async () => (await redis.zcard(keys.unmatched)) === 1);
  await run.write(config);
  await run.daemon.reload();
  await hook.until((came) => came.length === 2);
  await eventually('it is listed no more', async () => (await redis.zcard(keys.unmatched)) === 0);
});

test('a resent event leaves the list also where a later entry names its receiver', async () => {
  const stage = relayStage(later);
  const { redis, keys, registry, stores, deps } = stage;
  await syncConfig(registry, wantedOf({ s: { subject: ONE, receivers: ['backend'] } }), '0-0');
  const atMs = await redisTimeMs(redis);
  const made = { subject: ONE, sequence: 1, atMs, key: `gone|${ONE}` };
  const [entry = ''] = await appendEvents(redis, keys, [made]);
  const named = ['event', madeEventId(made), 'entry', entry, 'claimKeys', JSON.stringify([`s|${ONE}`])];
  await redis.xadd(keys.events, '*', 'v', '1', 'kind', 'subscribers', ...named);
  const token = await stage.token();
  const lease = { token, isHeld: () => true, failed: () => undefined };
  const receivers = await registry.receivers();
  await countUnmatched({ receivers, ahead: null, from: '0-0' }, lease, deps);
  expect(await redis.zcard(keys.unmatched)).toBe(1);
  const end = await stores.events.newest();
  const span = { receiver: 'backend', since: '0-0', until: `${atMs + 100_000}-0`, end, types: null };
  await stores.replays.request('r1', span);
  for (const receiver of receivers.filter(({ name }) => name === 'backend'))
    await takeReplay({ token, receiver, id: 'r1' }, deps);
  expect(await redis.zcard(keys.unmatched)).toBe(0);
});
