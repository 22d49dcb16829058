import { Webhook } from 'standardwebhooks';
import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { MOST_SECRETS } from '../../src/config/fields/signing-secret.ts';
import { AddedReceiverStore, MOST_ADDED } from '../../src/store/added-receivers.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { adoptConfig } from '../../src/store/sync-config.ts';
import { startDaemon, type TestConfig, testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';
import { syncConfig } from '../support/sync-config.ts';

const { later, started } = opening();

const [ONE, TWO, THREE] = [hashOf(1), hashOf(2), hashOf(3)];
const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
const SERVER = {
  host: '127.0.0.1',
  port: 0,
  secretsKey: 'a key that is long enough for it'.replaceAll(' ', '-'),
  apiReceivers: { allowNetworks: ['127.0.0.0/8'], allowInsecure: true },
};

async function stage(server: object = SERVER) {
  const statuses = new Map([[ONE, 'pending']]);
  const upstream = await started(upstreamOfStatuses(statuses));
  const [hook, made] = [await started(new Hook()), await started(new Hook())];
  const config: TestConfig = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: { backend: { url: hook.url } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [ONE] }],
    more: { server },
  };
  const definition = {
    name: 'made',
    type: 'webhook',
    url: made.url,
    secrets: [SECRET],
    allowPrivateNetwork: true,
    allowInsecure: true,
  };
  return { statuses, hook, made, config, definition };
}

async function call(
  url: string,
  method: string,
  body?: object,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: JSON_TYPE };
  const answer = await fetch(url, { method, ...sent });
  return { status: answer.status, body: z.record(z.string(), z.unknown()).parse(await answer.json()) };
}

const JSON_TYPE = { 'content-type': 'application/json' };

function isSigned({ body, headers }: Hook['came'][number], secret: string): boolean {
  try {
    const named = Object.entries(headers).map(([name, value]) => [name, String(value)]);
    new Webhook(secret).verify(body, Object.fromEntries(named));
    return true;
  } catch {
    return false;
  }
}

test('a receiver made at runtime gets the subjects tracked for it, in all processes, through reloads and restarts', async () => {
  const { statuses, made, config, definition } = await stage();
  const one = await reloadable(config, { later });
  const two = await startDaemon(config);
  const api = `${one.daemon.url}/api/v1`;
  expect(await call(`${api}/receivers`, 'POST', definition)).toEqual({
    status: 201,
    body: { name: 'made', type: 'webhook' },
  });
  expect(await call(`${api}/receivers`, 'POST', definition)).toMatchObject({ status: 409 });
  expect(await call(`${api}/receivers`, 'POST', { ...definition, name: 'backend' })).toMatchObject({
    status: 409,
  });
  for (const { daemon } of [one, two]) {
    await eventually('both processes report the origin of the receivers', async () => {
      const { receivers } = (await call(`${daemon.url}/api/v1/receivers`, 'GET')).body;
      const origins = z.array(z.object({ name: z.string(), origin: z.string().nullable() })).parse(receivers);
      return origins.map(({ name, origin }) => `${name} ${origin}`).join() === 'backend file,made api';
    });
  }
  const wish = { kind: 'intent', id: TWO, receivers: ['made'] };
  expect(await call(`${api}/subjects`, 'POST', wish)).toMatchObject({ status: 201 });
  statuses.set(TWO, 'pending');
  await made.until((came) => came.length === 1);

  // A reload of the file leaves it; after the end of the first process the other one delivers to it.
  await one.write({ ...config, subscriptions: [{ name: 'others', receivers: ['backend'], intents: [ONE] }] });
  expect(await one.daemon.reload()).toMatchObject({
    ok: true,
    changes: { receivers: { added: [], removed: [], changed: [] } },
  });
  await one.daemon.close();
  statuses.set(TWO, 'filled');
  await made.until((came) => came.length === 2);
  await two.daemon.close();
  const three = await startDaemon(config);
  later(() => three.daemon.close());
  statuses.set(THREE, 'pending');
  const again = { ...wish, id: THREE };
  expect(await call(`${three.daemon.url}/api/v1/subjects`, 'POST', again)).toMatchObject({ status: 201 });
  await made.until((came) => came.length === 3);
  expect(made.came.map(({ event }) => event.type)).toEqual([
    'intent.pending',
    'intent.filled',
    'intent.pending',
  ]);
  expect(new Set(made.ids).size).toBe(3);
  await eventually('the process that found it at its start counts it by its name', async () => {
    const text = await (await fetch(`${three.daemon.url}/metrics`)).text();
    const counts = text.split('\n').filter((line) => / [1-9]/.test(line) && line.includes('"made"'));
    return ['receiver_info', 'delivery_attempts_total'].every((name) =>
      counts.some((line) => line.startsWith(`intentwatch_${name}{`)),
    );
  });
});

test('no more receivers can be made than there may be, and none signs with more secrets', async () => {
  const { config, definition } = await stage();
  const { daemon } = await startDaemon(config);
  later(() => daemon.close());
  const api = `${daemon.url}/api/v1`;
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  expect(await call(`${api}/receivers`, 'POST', definition)).toMatchObject({ status: 201 });
  for (let made = 1; made < MOST_SECRETS; made += 1)
    expect(await call(`${api}/receivers/made/rotate`, 'POST', {})).toMatchObject({ status: 200 });
  expect(await call(`${api}/receivers/made/rotate`, 'POST', {})).toMatchObject({
    status: 409,
    body: { detail: expect.stringContaining(`found ${MOST_SECRETS} secrets with which "made" signs`) },
  });
  const secrets = Array.from(
    { length: MOST_SECRETS + 1 },
    (_, index) => `whsec_${Buffer.alloc(32, index).toString('base64')}`,
  );
  expect(await call(`${api}/receivers/made`, 'PATCH', { secrets })).toMatchObject({
    status: 400,
    body: { detail: `body.secrets: expected at most ${MOST_SECRETS} signing secrets` },
  });

  // Receivers that other processes made: this one cannot read them, and counts them.
  const others = Array.from({ length: MOST_ADDED - 1 }, (_, index) => [`other-${index}`, 'encrypted']);
  await redis.hset(new Keys(config.prefix).addedReceivers, ...others.flat());
  expect(await call(`${api}/receivers`, 'POST', { ...definition, name: 'more' })).toMatchObject({
    status: 409,
    body: { detail: expect.stringContaining(`found ${MOST_ADDED} receivers that were made through the API`) },
  });
  expect(await call(`${api}/receivers/made`, 'PUT', definition)).toMatchObject({ status: 200 });
  expect(await call(`${api}/receivers/made`, 'DELETE')).toMatchObject({ status: 200 });
  expect(await call(`${api}/receivers`, 'POST', definition)).toMatchObject({ status: 201 });
});

test('a receiver is changed, replaced and removed', async () => {
  const { statuses, made, config, definition } = await stage();
  const { daemon } = await startDaemon(config);
  later(() => daemon.close());
  const api = `${daemon.url}/api/v1`;
  await call(`${api}/receivers`, 'POST', { ...definition, events: ['intent.settled'] });
  await call(`${api}/subjects`, 'POST', { kind: 'intent', id: TWO, receivers: ['made'] });
  const other = await started(new Hook());
  for (const moved of [{ url: other.url }, { proxy: other.url }]) {
    expect(await call(`${api}/receivers/made`, 'PATCH', moved)).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('body.secrets: expected it anew') },
    });
  }
  const anew = { url: other.url, secrets: [SECRET], events: null };
  expect(await call(`${api}/receivers/made`, 'PATCH', anew)).toMatchObject({ status: 200 });
  statuses.set(TWO, 'pending');
  await other.until((came) => came.length === 1);
  const named = { ...definition, name: 'other' };
  expect(await call(`${api}/receivers/made`, 'PUT', named)).toMatchObject({ status: 400 });
  expect(await call(`${api}/receivers/made`, 'PUT', definition)).toMatchObject({ status: 200 });
  statuses.set(TWO, 'filled');
  await made.until((came) => came.length === 1);
  expect(await call(`${api}/receivers/made`, 'DELETE')).toEqual({ status: 200, body: { name: 'made' } });
  expect(await call(`${api}/receivers/made`, 'DELETE')).toMatchObject({ status: 404 });
  expect(await call(`${api}/receivers/backend`, 'PATCH', { events: null })).toMatchObject({ status: 404 });
  expect(other.came).toHaveLength(1);
});

test('a secret is rotated: both sign until the end of the old one', async () => {
  const { statuses, made, config, definition } = await stage();
  const { daemon } = await startDaemon(config);
  later(() => daemon.close());
  const api = `${daemon.url}/api/v1`;
  await call(`${api}/receivers`, 'POST', definition);
  await call(`${api}/subjects`, 'POST', { kind: 'intent', id: TWO, receivers: ['made'] });
  const { status, body } = await call(`${api}/receivers/made/rotate`, 'POST', { overlap: '1h' });
  expect(status).toBe(200);
  const secret = z.string().parse(body.secret);
  statuses.set(TWO, 'pending');
  await made.until((came) => came.length === 1);
  const [both] = made.came;
  if (both === undefined) throw new Error('there is no webhook');
  expect([isSigned(both, SECRET), isSigned(both, secret)]).toEqual([true, true]);

  await call(`${api}/receivers/made/rotate`, 'POST', { overlap: '1s' });
  const endedAt = Date.now() + 1_000;
  await eventually('the end of the old one', () => Date.now() > endedAt);
  statuses.set(TWO, 'filled');
  await made.until((came) => came.length === 2);
  const [, after] = made.came;
  if (after === undefined) throw new Error('there is no second webhook');
  expect([isSigned(after, SECRET), isSigned(after, secret)]).toEqual([false, false]);
});

test('one that was removed stays so, though another process starts that has read it before', async () => {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const store = new AddedReceiverStore(redis, keys);
  const filter = { wallets: null, chains: null, minAmount: null };
  const made = { name: 'made', type: 'webhook', events: ['*'], filter, ordering: 'none' } as const;
  const receivers = [{ ...made, events: ['*'] }];
  const addedReceivers = new Set(['made']);
  const wanted = { digest: '', graceSpanMs: 0, receivers, addedReceivers, routes: [], subscriptions: [] };
  const registry = new Registry(
    redis,
    keys,
    new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) }),
  );
  await store.put({ ...made, events: ['*'] }, { encrypted: 'x', as: 'new', before: null });
  await syncConfig(registry, wanted, '0-0');
  expect(await registry.receivers()).toMatchObject([{ name: 'made', removed: false }]);
  await store.remove('made');
  await syncConfig(registry, wanted, '0-0');
  await adoptConfig(registry, wanted);
  expect(await registry.receivers()).toMatchObject([{ name: 'made', removed: true }]);
});

test('of changes that are made at once none is lost', async () => {
  const { statuses, made, config, definition } = await stage();
  const { daemon } = await startDaemon(config);
  later(() => daemon.close());
  const api = `${daemon.url}/api/v1`;
  await call(`${api}/receivers`, 'POST', definition);
  await call(`${api}/subjects`, 'POST', { kind: 'intent', id: TWO, receivers: ['made'] });
  const rotated = await Promise.all(
    Array.from({ length: 4 }, () => call(`${api}/receivers/made/rotate`, 'POST', { overlap: '1h' })),
  );
  statuses.set(TWO, 'pending');
  const [came] = await made.until((all) => all.length === 1);
  if (came === undefined) throw new Error('there is no webhook');
  expect(rotated.map(({ body }) => isSigned(came, String(body.secret)))).toEqual([true, true, true, true]);
});

test('Redis holds none of its secrets in clear', async () => {
  const { config, definition } = await stage();
  const { daemon } = await startDaemon(config);
  later(() => daemon.close());
  await call(`${daemon.url}/api/v1/receivers`, 'POST', { ...definition, headers: { 'x-key': 'hush-hush' } });
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(config.prefix);
  const rotate = async () => {
    const headers = { ...JSON_TYPE, 'idempotency-key': 'rotate-once' };
    const url = `${daemon.url}/api/v1/receivers/made/rotate`;
    const answer = await fetch(url, { method: 'POST', headers, body: '{}' });
    return z.object({ secret: z.string() }).parse(await answer.json()).secret;
  };
  const rotated = await rotate();
  expect(await rotate()).toBe(rotated);
  const [answer = ''] = await redis.zrange(keys.answers, '0', '-1');
  const stored = JSON.stringify([
    await redis.hgetall(keys.answer(answer)),
    await redis.hgetall(keys.addedReceivers),
    await redis.hgetall(keys.receivers),
  ]);
  expect(stored).toContain('"made"');
  for (const secret of [SECRET, definition.url, 'hush-hush', rotated]) expect(stored).not.toContain(secret);
});

test('reports an invalid receiver and a missing key, without any secret', async () => {
  const { config, definition } = await stage();
  const { daemon } = await startDaemon(config);
  later(() => daemon.close());
  const wrong: [object, string][] = [
    [{ ...definition, allowInsecure: false }, 'body.url: found an http:// URL, expected an https:// URL'],
    [{ ...definition, secrets: ['hush-hush'] }, 'body.secrets[0]: expected'],
    [
      { ...definition, secrets: undefined },
      'body.secrets: found nothing, expected a list of signing secrets',
    ],
    [{ ...definition, surprise: 1 }, 'body.surprise: expected none of this name'],
    [{ ...definition, tls: { ca: 'x' } }, 'body.tls: expected none'],
    [{ ...definition, disableAfter: '300d' }, 'body.disableAfter: expected no longer than'],
    [
      { name: 'mail', type: 'email', to: ['a@example.com'] },
      'body.type: found an email receiver but no mail server, expected an smtp section',
    ],
    [{ name: 'x' }, 'expected "webhook", "email" or "postgres"'],
  ];
  for (const [body, detail] of wrong) {
    const answer = await call(`${daemon.url}/api/v1/receivers`, 'POST', body);
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(detail) } });
    expect(JSON.stringify(answer)).not.toContain('hush-hush');
  }
  const keyless = await startDaemon({
    ...config,
    prefix: testPrefix(),
    more: { server: { host: '127.0.0.1', port: 0 } },
  });
  later(() => keyless.daemon.close());
  expect(await call(`${keyless.daemon.url}/api/v1/receivers`, 'POST', definition)).toMatchObject({
    status: 409,
    body: { detail: expect.stringContaining('server.secretsKey') },
  });
});
