import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { testPrefix } from '../support/daemon.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const [CONFIGURED, TRACKED] = [hashOf(1), hashOf(2)];

const EVENTS = z.object({
  events: z.array(z.object({ type: z.string(), data: z.object({ subject: z.object({ id: z.string() }) }) })),
  next: z.string(),
});

test('events without any receiver are pulled, shown, and owed to nobody', async () => {
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
    timeline: [{ type: 'intent.pending', deliveries: [] }],
  });
  expect(await read('/undelivered')).toMatchObject({ undelivered: [] });
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  expect(metrics.match(/^intentwatch_\w*(undelivered|deliver)\w*\{.*receiver=.*$/gm)).toBeNull();
});
