import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { z } from 'zod';
import { NameResolver } from '../../src/network/resolver.ts';
import { connectPostgres } from '../../src/notifiers/postgres/connection.ts';
import { Secret } from '../../src/secret.ts';
import { ConnectProxy } from '../support/connect-proxy.ts';
import { startDaemon, type TestConfig, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { RawServer } from '../support/raw-server.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';
import { ShippedDaemon } from '../support/shipped-daemon.ts';

const { later, started } = opening();

const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
const KEY = 'a-key-that-is-long-enough-for-it';
const WIDE = { allowNetworks: ['127.0.0.0/8'], allowInsecure: true };
const RECEIVERS = z.array(
  z.object({ name: z.string(), leftOut: z.string().nullable(), open: z.number(), removed: z.boolean() }),
);

const webhook = (url: string, more: object = {}) => ({
  name: 'made',
  type: 'webhook',
  url,
  secrets: [SECRET],
  allowPrivateNetwork: true,
  allowInsecure: true,
  ...more,
});

async function call(url: string, method: string, path: string, body?: object) {
  const sent =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const answer = await fetch(`${url}/api/v1${path}`, { method, ...sent });
  return { status: answer.status, body: z.record(z.string(), z.unknown()).parse(await answer.json()) };
}

/** A config whose file has a receiver on loopback, with some `server.apiReceivers`. */
async function stage(apiReceivers: object) {
  const statuses = new Map([[hashOf(1), 'pending']]);
  const upstream = await started(upstreamOfStatuses(statuses));
  const [hook, made] = [await started(new Hook()), await started(new Hook())];
  const configWith = (limits: object): TestConfig => ({
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix,
    receivers: { backend: { url: hook.url } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [hashOf(1)] }],
    more: { server: { host: '127.0.0.1', port: 0, secretsKey: KEY, apiReceivers: limits } },
  });
  const prefix = testPrefix();
  return { statuses, hook, made, config: configWith(apiReceivers), configWith };
}

test('the shipped daemon refuses a receiver made through the API at an address that is not public, in every spelling', async () => {
  const upstream = await started(upstreamOfStatuses(new Map()));
  const victim = await started(new RawServer(() => undefined));
  const shipped = await ShippedDaemon.of(
    {
      baseUrl: upstream.url,
      subscription: { intents: [hashOf(1)] },
      more: { server: { host: '127.0.0.1', port: 0, secretsKey: KEY } },
    },
    (cleanUp) => later(cleanUp),
  );
  const url = await shipped.start();
  const { port } = victim;
  const hosts = [
    ...['127.0.0.1', '127.1', '2130706433', '0x7f.1', '0177.0.0.1', '0x7f000001', '①②⑦.0.0.1', '127.0.0.1.'],
    ...['[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[::]'],
    ...['[2001:0:7f00:1::]', '0', '0.0.0.0', 'localhost', 'LOCALHOST.', 'hook.localhost'],
    ...['10.0.0.1', '100.64.0.1', '169.254.169.254', '224.0.0.1', '[fd00::1]', '[fe80::1]', '[ff02::1]'],
    ...['240.0.0.1', '192.0.2.1', '198.18.0.1', '[2001:db8::1]'],
  ];
  const urls = hosts.flatMap((host) => [`http://${host}:${port}/`, `https://${host}:${port}/`]);
  const answers = await Promise.all(
    urls.map(async (one) => ({ one, ...(await call(url, 'POST', '/receivers', webhook(one))) })),
  );
  for (const { one, status, body } of answers) {
    expect({ one, status, detail: body.detail }).toEqual({
      one,
      status: 400,
      detail: expect.stringContaining(
        'body.url: found a URL on a private or loopback address, expected a public host (or its network in server.apiReceivers.allowNetworks)',
      ),
    });
  }
  expect(await call(url, 'POST', '/receivers', webhook('http://example.com/'))).toMatchObject({
    status: 400,
    body: {
      detail:
        'body.url: found an http:// URL, expected an https:// URL (or server.apiReceivers.allowInsecure: true)',
    },
  });
  expect(await call(url, 'POST', '/receivers', webhook('https://example.com/'))).toMatchObject({
    status: 201,
  });
  const moved = { url: `https://127.0.0.1:${port}/`, secrets: [SECRET] };
  for (const [method, body] of [
    ['PATCH', moved],
    ['PUT', webhook(moved.url)],
  ] as const) {
    expect(await call(url, method, '/receivers/made', body)).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('server.apiReceivers.allowNetworks') },
    });
  }
  // The receiver of the config is on loopback, and is not limited.
  expect(await call(url, 'POST', '/receivers/backend/test')).toMatchObject({
    body: { reason: 'connection refused' },
  });
  expect(victim.sockets).toEqual([]);
});

test('types, proxies and Postgres outside the limits are refused with the setting that permits them', async () => {
  const { config } = await stage({
    allowNetworks: ['10.1.0.0/16'],
    proxies: ['http://proxy.example.com:3128'],
  });
  const { daemon } = await startDaemon(config);
  later(() => daemon.close());
  const detailOf = async (definition: object) => {
    const { status, body } = await call(daemon.url, 'POST', '/receivers', definition);
    return status === 201 ? 201 : String(body.detail);
  };
  const postgres = { name: 'rows', type: 'postgres', url: 'postgres://u:p@db.example.com/x' };
  expect(await detailOf(postgres)).toBe(
    'body.type: found "postgres", expected a type of server.apiReceivers.types',
  );
  const https = webhook('https://example.com/');
  for (const proxy of [
    'http://other.example.com:3128',
    'http://proxy.example.com:3129',
    'https://proxy.example.com:3128',
    'http://proxy.example.com.other.example:3128',
  ]) {
    expect(await detailOf({ ...https, proxy })).toBe(
      'body.proxy: found a proxy that is not listed, expected one of server.apiReceivers.proxies',
    );
  }
  expect(await detailOf({ ...https, proxy: 'http://user:word@PROXY.example.com:3128/' })).toBe(201);
  expect(await detailOf(webhook('https://10.2.0.1/', { name: 'beside' }))).toContain('body.url: found a URL');
  expect(await detailOf(webhook('https://10.1.0.1/', { name: 'inside' }))).toBe(201);
  // The own members of a receiver apply as well.
  expect(
    await detailOf({ ...webhook('https://10.1.0.1/', { name: 'own' }), allowPrivateNetwork: false }),
  ).toContain('allowPrivateNetwork: true');
});

test('a Postgres that is permitted by its type is limited in its address and its TLS', async () => {
  const { config } = await stage({ types: ['postgres'] });
  const { daemon } = await startDaemon(config);
  later(() => daemon.close());
  const detailOf = async (definition: object) =>
    String((await call(daemon.url, 'POST', '/receivers', definition)).body.detail);
  const postgres = { name: 'rows', type: 'postgres', url: 'postgres://u:p@db.example.com/x' };
  expect(await detailOf({ ...postgres, url: 'postgres://u:p@[::ffff:127.0.0.1]/x' })).toContain(
    'body.url: found a URL on a private or loopback address',
  );
  expect(await detailOf({ ...postgres, url: 'postgres://u:p@LocalHost/x' })).toContain(
    'body.url: found a URL on a private or loopback address',
  );
  expect(await detailOf({ ...postgres, allowInsecure: true })).toBe(
    'body.allowInsecure: found true, expected false (or server.apiReceivers.allowInsecure: true)',
  );
  expect(await detailOf(webhook('https://example.com/'))).toContain('body.type: found "webhook"');
  expect(await call(daemon.url, 'POST', '/receivers', postgres)).toMatchObject({ status: 201 });
});

test('a Postgres made through the API is connected to at permitted addresses only, after its name is resolved', async () => {
  const server = await started(new RawServer((socket) => socket.destroy()));
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-names-'));
  later(() => rm(folder, { recursive: true, maxRetries: 5 }));
  await writeFile(join(folder, 'hosts'), '127.0.0.1 db.test\n::ffff:127.0.0.1 mapped.test\n');
  const names = new NameResolver({ timeoutMs: 5_000, folder });
  const connectTo = (host: string, apiNetworks: readonly string[] | null) => {
    const url = new Secret(`postgres://u:p@${host}:${server.port}/x`);
    const target = { url, tls: null, allowInsecure: true, timeoutMs: 5_000, apiNetworks };
    return connectPostgres(target, { names, signal: AbortSignal.timeout(5_000) });
  };
  for (const host of ['db.test', 'mapped.test', '127.0.0.1', '[::ffff:7f00:1]', 'localhost']) {
    await expect(connectTo(host, [])).rejects.toThrow(
      'private or reserved address; only server.apiReceivers.allowNetworks permits it',
    );
  }
  // A socket of the file system is no host name.
  await expect(connectTo('%2Ftmp', [])).rejects.toThrow();
  expect(server.sockets).toHaveLength(0);
  for (const networks of [['127.0.0.0/8'], null]) {
    await expect(connectTo('db.test', networks)).rejects.toThrow();
  }
  expect(server.sockets.length).toBeGreaterThanOrEqual(2);
});

test('through a listed proxy the rules of the proxy decide which address is called', async () => {
  const proxy = await started(new ConnectProxy());
  const { made, config } = await stage({ allowInsecure: true, proxies: [`http://127.0.0.1:${proxy.port}`] });
  const { daemon } = await startDaemon(config);
  later(() => daemon.close());
  const url = made.url.replace('127.0.0.1', 'inside.test');
  const definition = webhook(url, { proxy: `http://127.0.0.1:${proxy.port}` });
  expect(await call(daemon.url, 'POST', '/receivers', definition)).toMatchObject({ status: 201 });
  expect(await call(daemon.url, 'POST', '/receivers/made/test')).toMatchObject({
    body: { outcome: 'delivered' },
  });
  expect(proxy.requests.map(({ target }) => target)).toEqual([new URL(url).host]);
});

test('no redirect is followed', async () => {
  const { hook, made, config } = await stage(WIDE);
  made.answer = () => 307;
  made.headers = { location: hook.url };
  const { daemon } = await startDaemon(config);
  later(() => daemon.close());
  expect(await call(daemon.url, 'POST', '/receivers', webhook(made.url))).toMatchObject({ status: 201 });
  expect(await call(daemon.url, 'POST', '/receivers/made/test')).toMatchObject({
    body: { outcome: 'failed', httpStatus: 307 },
  });
  expect(hook.came.filter(({ event }) => event.type === 'intentwatch.test')).toEqual([]);
});

test('a stored receiver outside the limits is reported as excluded, and gets the waiting events once it is permitted again', async () => {
  const { statuses, hook, made, config, configWith } = await stage(WIDE);
  const stageOf = await reloadable(config, { later });
  const { daemon } = stageOf;
  const definition = webhook(made.url, { retries: { delays: Array(30).fill('1s') } });
  made.answer = () => 500;
  expect(await call(daemon.url, 'POST', '/receivers', definition)).toMatchObject({ status: 201 });
  const track = (hash: string) =>
    call(daemon.url, 'POST', '/subjects', { kind: 'intent', id: hash, receivers: ['made', 'backend'] });
  await track(hashOf(2));
  statuses.set(hashOf(2), 'pending');
  await made.until((came) => came.length === 1);

  const shown = async () => {
    const { receivers } = (await call(daemon.url, 'GET', '/receivers')).body;
    const found = RECEIVERS.parse(receivers).find(({ name }) => name === 'made');
    if (found === undefined) throw new Error('the receiver is gone');
    return found;
  };
  const leftOutLines = () => stageOf.lines.filter(({ msg }) => msg === 'receiver.left_out');
  const REASON =
    'url: found an http:// URL, expected an https:// URL (or server.apiReceivers.allowInsecure: true); ' +
    'url: found a URL on a private or loopback address, expected a public host (or its network in server.apiReceivers.allowNetworks)';
  for (let turn = 1; turn <= 2; turn += 1) {
    await stageOf.write(configWith({}));
    expect(await daemon.reload()).toMatchObject({ ok: true });
    expect(await shown()).toMatchObject({ leftOut: REASON, removed: false, open: 1 });
    // Each omission is reported, with its reason.
    expect(leftOutLines()).toMatchObject(Array(turn).fill({ receiver: 'made', reason: REASON }));
    if (turn === 2) break;
    await stageOf.write(config);
    expect(await daemon.reload()).toMatchObject({ ok: true });
    expect(await shown()).toMatchObject({ leftOut: null });
  }
  expect(await call(daemon.url, 'POST', '/receivers/made/test')).toMatchObject({ status: 404 });
  made.answer = () => 204;
  const before = made.came.length;
  statuses.set(hashOf(2), 'filled');
  await hook.until((came) => came.some(({ event }) => event.type === 'intent.filled'));
  expect(made.came).toHaveLength(before);

  await stageOf.write(config);
  expect(await daemon.reload()).toMatchObject({ ok: true });
  await made.until((came) => {
    const types = new Set(came.slice(before).map(({ event }) => event.type));
    return types.has('intent.pending') && types.has('intent.filled');
  });
  await eventually('nothing is open', async () => (await shown()).open === 0);
});
