import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { runCommand } from '../support/command.ts';
import { testPrefix } from '../support/daemon.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { Program } from '../support/program.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream, upstreamOfStatuses } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;
const [CONFIGURED, TRACKED, LATER] = [hashOf(1), hashOf(2), hashOf(3)];

const EVENTS = z.object({
  events: z.array(z.object({ type: z.string(), data: z.object({ subject: z.object({ id: z.string() }) }) })),
  next: z.string(),
});

test('events without any receiver are pulled, shown, and due to no receiver', async () => {
  const upstream = await started(
    new ScriptedUpstream(({ query }) => ({
      records: [intentRecord(query.intentHash ?? '', 'pending', 1_763_638_259)],
    })),
  );
  const { daemon } = await reloadable(
    {
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: {},
      subscriptions: [{ name: 'orders', receivers: [], intents: [CONFIGURED] }],
    },
    { later },
  );
  const api = `${daemon.url}/api/v1`;
  const read = async (path: string): Promise<unknown> => (await fetch(`${api}${path}`)).json();

  const tracked = await fetch(`${api}/subjects`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'intent', id: TRACKED, receivers: [] }),
  });
  expect(tracked.status).toBe(201);
  const pulled = new Set<string>();
  for (let next = ''; pulled.size < 2; ) {
    const page = EVENTS.parse(await read(`/events?wait=10s${next}`));
    for (const { data } of page.events) pulled.add(data.subject.id);
    next = `&after=${page.next}`;
  }
  expect([...pulled].sort()).toEqual([`intent:${CONFIGURED}`, `intent:${TRACKED}`]);
  expect(await read(`/subjects/intent:${CONFIGURED}`)).toMatchObject({
    timeline: [{ type: 'intent.pending' }],
  });
  expect(await read(`/subjects/intent:${CONFIGURED}/deliveries`)).toEqual({ deliveries: [], next: null });
  expect(await read('/undelivered')).toMatchObject({ undelivered: [] });
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  expect(metrics.match(/^intentwatch_\w*(undelivered|deliver)\w*\{.*receiver=.*$/gm)).toBeNull();
});

test('all receivers leave the config and one comes back, while commands track and follow', async () => {
  const statuses = new Map([CONFIGURED, TRACKED, LATER].map((hash) => [hash, 'pending']));
  const upstream = await started(upstreamOfStatuses(statuses));
  const hook = await started(new Hook());
  const without = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: {},
    subscriptions: [{ name: 'orders', receivers: [] as string[], intents: [CONFIGURED, LATER] }],
  };
  const receiving = {
    ...without,
    receivers: { backend: { url: hook.url } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [CONFIGURED, LATER] }],
  };
  const { daemon, write } = await reloadable(receiving, { later });
  const env = { INTENTWATCH_URL: daemon.url };
  const track = async (): Promise<string> => {
    const { out, err } = await runCommand(['track', 'intent', TRACKED], env);
    return `${out}${err}`;
  };
  await hook.until((came) => came.length === 2);
  expect(await track()).toContain('expected who is notified (backend), or [] for nobody');

  await write(without);
  expect(await daemon.reload()).toMatchObject({ ok: true, changes: { receivers: { removed: ['backend'] } } });
  const follower = await Program.start(MAIN, ['events', '--follow', '--json', '--since', '1h'], env);
  later(() => follower.end('SIGKILL'));
  expect(await track()).toBe(`intent:${TRACKED} is tracked`);
  await follower.line(new RegExp(`intent.pending.*${TRACKED}`));
  statuses.set(CONFIGURED, 'filled');
  await follower.line(new RegExp(`intent.filled.*${CONFIGURED}`));
  expect(hook.came).toHaveLength(2);

  await write(receiving);
  expect(await daemon.reload()).toMatchObject({ ok: true, changes: { receivers: { added: ['backend'] } } });
  statuses.set(LATER, 'filled');
  // It continues where it stopped: its subscription is owed the events of the meantime.
  await hook.until((came) => came.length === 4);
  const filled = hook.came.slice(2).map(({ event }) => [event.type, event.data.subject.id]);
  expect(filled.sort()).toEqual([CONFIGURED, LATER].map((hash) => ['intent.filled', `intent:${hash}`]));
});
