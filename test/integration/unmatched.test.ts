import { expect, inject, test } from 'vitest';
import { redisTimeMs } from '../../src/store/commands.ts';
import { UnmatchedStore } from '../../src/store/undelivered.ts';
import { runCommand } from '../support/command.ts';
import { testPrefix } from '../support/daemon.ts';
import { deliveryStage } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { appendEvents } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';

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
