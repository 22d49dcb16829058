import { expect, inject, test } from 'vitest';
import { connect, disconnect } from '../../src/store/connection.ts';
import { ADMIN_TOKEN, callApi, READ_TOKEN } from '../support/api-stage.ts';
import { cannedServer } from '../support/canned-server.ts';
import { runCommand } from '../support/command.ts';
import { type TestConfig, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { RedisProcess } from '../support/redis-process.ts';
import { reloadable } from '../support/reloadable.ts';
import { hashOf } from '../support/scripted-upstream.ts';

const { later } = opening();

const SERVER = { host: '127.0.0.1', port: 0, tokens: { read: READ_TOKEN, admin: ADMIN_TOKEN } };
const NEW_TOKEN = 'another-token-that-does-all';

function configOf(intents: string[], server: object = SERVER): TestConfig {
  return {
    baseUrl: 'http://127.0.0.1:9',
    redisUrl: inject('redisUrl'),
    prefix: PREFIX,
    receivers: { backend: { url: 'http://127.0.0.1:9/' } },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents }],
    more: { server },
  };
}

const PREFIX = testPrefix();

test('a reload is requested through the API, which states the changes, or the reason for a refusal', async () => {
  const { daemon, write } = await reloadable(configOf([hashOf(1)]), { later });
  const call = (method: string, path: string) => callApi(daemon.url, { method, path });
  const before = (await call('GET', '/config')).body;
  expect(before).toMatchObject({ digest: expect.any(String), lastReload: { ok: true, changes: null } });

  await write(configOf([hashOf(1), hashOf(2)]));
  const applied = await call('POST', '/reload');
  expect([applied.status, applied.body]).toEqual([
    200,
    expect.objectContaining({
      lastReload: expect.objectContaining({
        ok: true,
        changes: expect.objectContaining({ subjects: { added: 1, removed: 0 } }),
      }),
    }),
  ]);
  expect(applied.body.digest).not.toBe(before.digest);

  await write('upstream: nonsense');
  const refused = await call('POST', '/reload');
  expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining('expected')]);
  expect((await call('GET', '/config')).body).toMatchObject({
    digest: applied.body.digest,
    lastReload: { ok: false, changes: null, error: refused.body.detail, retryAt: expect.any(String) },
  });
});

test('the command states the changes, or that nothing has changed since the daemon last read it', async () => {
  const { daemon, write } = await reloadable(configOf([hashOf(1)]), { later });
  const reload = async (url: string): Promise<string> => {
    const env = { INTENTWATCH_URL: url, INTENTWATCH_TOKEN: ADMIN_TOKEN };
    return (await runCommand(['reload'], env)).out;
  };
  await write(configOf([hashOf(1), hashOf(2)]));
  // Before the command has begun the daemon would have read the file by itself.
  const { body } = await callApi(daemon.url, { method: 'POST', path: '/reload' });
  const replayed = await cannedServer(() => ({ status: 200, body }));
  later(() => replayed.close());
  expect(await reload(replayed.url)).toBe('subjects: +1\nsubscriptions: orders');
  expect(await reload(daemon.url)).toMatch(/^nothing has changed since the daemon last read it/);
});

test('tokens are other ones after a reload, also for a client that follows the log', async () => {
  const { daemon, write } = await reloadable(configOf([hashOf(1)]), { later });
  const statusOf = async (token: string) => (await callApi(daemon.url, { path: '/receivers', token })).status;
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const stream = await fetch(`${daemon.url}/api/v1/events/stream`, { headers });
  expect(stream.status).toBe(200);
  await write(configOf([hashOf(1)], { ...SERVER, tokens: { admin: NEW_TOKEN } }));
  expect(await daemon.reload()).toMatchObject({ ok: true, changes: { settings: ['server.tokens'] } });
  expect(await Promise.all([ADMIN_TOKEN, READ_TOKEN, NEW_TOKEN].map(statusOf))).toEqual([401, 401, 200]);
  await expect(stream.text()).rejects.toThrow();

  await write(configOf([hashOf(1)], { ...SERVER, port: 1 }));
  const result = await daemon.reload();
  expect(result).toMatchObject({ ok: false, retryAtMs: null, error: expect.stringContaining('server.port') });
});

test('a reload refused for a passing reason is tried again without a report', async () => {
  const server = await RedisProcess.create();
  later(() => server.close());
  const redis = connect({ kind: 'server', url: server.url });
  later(() => disconnect(redis));
  const withRedis = (intents: string[]) => ({ ...configOf(intents), redisUrl: server.url });
  const { daemon, lines, write } = await reloadable(withRedis([hashOf(1)]), { later });
  const lost: Promise<unknown> = new Promise((resolve) => {
    daemon.signals.on('config.moved', ({ state }) => state === 'refused' && resolve(state));
  });
  await redis.acl('SETUSER', 'default', '-hincrby');
  await write(withRedis([hashOf(2)]));
  await lost;
  await eventually('another try', () => {
    return daemon.fileState?.state === 'refused' && lines.some(({ msg }) => msg === 'config.reload_failed');
  });
  await redis.acl('SETUSER', 'default', '+hincrby');
  await eventually('the reload', () => daemon.fileState?.ok === true);
  expect(lines.filter(({ msg }) => msg === 'config.reloaded')).toHaveLength(1);
});
