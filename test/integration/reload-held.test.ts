import { utimes, writeFile } from 'node:fs/promises';
import { Webhook } from 'standardwebhooks';
import { describe, expect, inject, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { ADMIN_TOKEN, answered, callApi, READ_TOKEN } from '../support/api-stage.ts';
import { runCommand } from '../support/command.ts';
import { configYaml, type TestConfig, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { type Reloadable, reloadable } from '../support/reloadable.ts';
import { hashOf, upstreamOfStatuses } from '../support/scripted-upstream.ts';

const { later, started } = opening();

const FIVE = [1, 2, 3, 4, 5].map(hashOf);
const [ONE = '', , , , LAST = ''] = FIVE;
const NEW = hashOf(6);
const gone = FIVE.slice(0, 4).map((hash) => `intent:${hash}`);

const TOKENS = { read: READ_TOKEN, admin: ADMIN_TOKEN };

/** A config with five intents, all pending, one receiver of their events and one of those for operators. */
async function stage() {
  const statuses = new Map([...FIVE, NEW].map((hash) => [hash, 'pending']));
  const upstream = await started(upstreamOfStatuses(statuses));
  const [backend, operator] = [await started(new Hook()), await started(new Hook())];
  const config: TestConfig = {
    baseUrl: upstream.url,
    redisUrl: inject('redisUrl'),
    prefix: testPrefix(),
    receivers: {
      backend: { url: backend.url },
      operator: { url: operator.url, more: { events: ['intentwatch.*'] } },
    },
    subscriptions: [{ name: 'orders', receivers: ['backend'], intents: FIVE }],
    more: { server: { host: '127.0.0.1', port: 0, tokens: TOKENS } },
  };
  return { config, statuses, upstream, backend, operator };
}

function naming(config: TestConfig, intents: readonly string[]): TestConfig {
  return { ...config, subscriptions: [{ name: 'orders', receivers: ['backend'], intents }] };
}

function withTokens(config: TestConfig, tokens: object): TestConfig {
  return { ...config, more: { ...config.more, server: { host: '127.0.0.1', port: 0, tokens } } };
}

function inMode(config: TestConfig, mode: string): TestConfig {
  return { ...config, more: { ...config.more, reload: { mode } } };
}

async function heldDigest(reload: Reloadable, config: TestConfig): Promise<string> {
  await reload.write(config);
  const state = await reload.daemon.reload();
  if (state?.state !== 'held') throw new Error(`found the state ${state?.state}, expected held`);
  return state.removal.digest;
}

function running({ daemon }: Reloadable, token: string) {
  const env = { INTENTWATCH_URL: daemon.url, INTENTWATCH_TOKEN: token };
  return { command: (...args: string[]) => runCommand(['reload', ...args], env) };
}

const config = (url: string, token = ADMIN_TOKEN) => callApi(url, { path: '/config', token });

const removals = ({ lines }: Reloadable) => lines.filter(({ msg }) => msg === 'config.large_removal');

const intentsOf = ({ came }: Hook) => new Set(came.map(({ event }) => event.data.subject.id));

test('a reload that removes much changes nothing until exactly its file is confirmed', async () => {
  const { config: before, statuses, upstream, backend, operator } = await stage();
  const reload = await reloadable(before, { later });
  const { daemon, lines, write } = reload;
  await backend.until((came) => came.length === 5);
  const { digest: ran } = (await config(daemon.url)).body;

  await write(naming(before, [LAST, NEW]));
  await eventually('the file is held without being reported', () => daemon.fileState?.state === 'held');
  const subjects = { removed: 4, of: 5, ids: gone };
  const none = { removed: 0, of: 0, ids: [] };
  const removal = { held: true, confirmAfter: 0.2, wallets: none, subjects };
  const receivers = { removed: 0, of: 2, ids: [] };
  await operator.until((came) => came.length === 1);
  expect(operator.came[0]?.event).toMatchObject({
    type: 'intentwatch.large_removal',
    data: { subject: { id: 'intentwatch:config' }, record: { ...removal, receivers } },
  });
  const { body } = await config(daemon.url, READ_TOKEN);
  expect(body).toMatchObject({
    state: 'held',
    digest: ran,
    removal: { ...removal, receivers },
    lastReload: { ok: false, changes: null, error: null, retryAt: null },
  });
  expect(removals(reload)).toEqual([expect.objectContaining({ level: 50, held: true, subjects })]);
  const metrics = async () => (await fetch(`${daemon.url}/metrics`)).text();
  expect(await metrics()).toContain('intentwatch_config_state{state="held"} 1');
  expect(await metrics()).toContain('intentwatch_config_large_removal{what="subjects"} 4');
  expect(await metrics()).toContain('intentwatch_config_last_reload_successful 1');
  expect(await (await fetch(`${daemon.url}/readyz`)).text()).toContain('held until it is confirmed');

  const { command } = running(reload, ADMIN_TOKEN);
  const digest = String((body.removal as JsonObject).digest);
  const held = await command();
  expect(held.code).toBe(75);
  expect(held.out.split('\n')).toEqual(['subjects: -4 of 5', ...gone.map((id) => `  ${id}`)]);
  expect(held.err).toContain(`intentwatch reload --confirm ${digest}`);
  // The running config goes on, and no part of the file is applied.
  statuses.set(ONE, 'filled');
  await backend.until((came) => came.some(({ event }) => event.type === 'intent.filled'));
  expect(upstream.requests.filter(({ query }) => query.intentHash === NEW)).toEqual([]);

  expect(await command('--confirm', 'not-a-digest')).toMatchObject({ code: 1 });
  expect(await command('--confirm', '0'.repeat(32))).toMatchObject({
    code: 78,
    err: expect.stringContaining('expected the digest of'),
  });
  expect(daemon.fileState?.state).toBe('held');
  expect(await command('--confirm', digest)).toMatchObject({
    code: 0,
    out: 'subjects: +1, -4\nsubscriptions: orders',
  });
  await backend.until(() => intentsOf(backend).has(`intent:${NEW}`));
  expect((await config(daemon.url)).body).toMatchObject({ state: 'running', removal: null });
  expect(await metrics()).toContain('intentwatch_config_large_removal{what="subjects"} 0');
  expect(lines.filter(({ msg }) => msg === 'config.hold_ended')).toMatchObject([
    { digest, state: 'running' },
  ]);
  // A repeated request is logged again.
  expect(removals(reload)).toHaveLength(2);
  expect(operator.came).toHaveLength(1);
});

test('a file that changes again is held anew, and one equal to the current config is not held', async () => {
  const { config: before, operator } = await stage();
  const reload = await reloadable(before, { later });
  const { daemon, write } = reload;
  const first = await heldDigest(reload, naming(before, [LAST]));
  const second = await heldDigest(reload, naming(before, [ONE]));
  expect(second).not.toBe(first);
  await expect(daemon.reload({ confirm: first })).rejects.toThrow(/as it is now/);
  expect(daemon.fileState).toMatchObject({ state: 'held', removal: { digest: second } });

  await write(before);
  expect(await daemon.reload()).toMatchObject({ state: 'running', removal: null });
  await expect(daemon.reload({ confirm: second })).rejects.toThrow(/as it is now/);
  // The operator is notified of the same file again, by another event.
  expect(await heldDigest(reload, naming(before, [ONE]))).toBe(second);
  await operator.until((came) => came.length === 3);
  expect(new Set(operator.ids).size).toBe(3);
  const digests = operator.came.map(({ event }) => event.data.record.digest);
  expect(digests).toEqual([first, second, second]);

  // A file that removes little is applied from this state, too.
  await write(naming(before, [...FIVE, NEW]));
  expect(await daemon.reload()).toMatchObject({ ok: true, changes: { subjects: { added: 1, removed: 0 } } });
});

test('a held file that cannot be read is refused, and held again by the same digest once it can', async () => {
  const { config: before, operator } = await stage();
  const reload = await reloadable(before, { later });
  const { daemon, file, write } = reload;
  const digest = await heldDigest(reload, naming(before, [LAST]));
  await writeFile(file, configYaml(naming(before, [LAST])).slice(0, 200));
  expect(await daemon.reload()).toMatchObject({ state: 'refused', error: expect.stringContaining(file) });
  const { command } = running(reload, ADMIN_TOKEN);
  expect(await command('--confirm', digest)).toMatchObject({ code: 78, err: expect.stringContaining(file) });
  expect(await heldDigest(reload, naming(before, [LAST]))).toBe(digest);
  await write(naming(before, [LAST, ONE]));
  await eventually('another file is held', () => removals(reload).length === 3);
  await operator.until((came) => came.length === 2);
  const digests = operator.came.map(({ event }) => event.data.record.digest);
  expect(digests[0]).toBe(digest);
  expect(digests[1]).not.toBe(digest);
});

describe('of two processes', () => {
  test('each that has the confirmed file applies it, also one that gets it later', async () => {
    const { config: before, operator } = await stage();
    const one = await reloadable(before, { later });
    const two = await reloadable(before, { later });
    const three = await reloadable(before, { later });
    const cut = naming(before, [LAST]);
    const digest = await heldDigest(one, cut);
    expect(await heldDigest(two, cut)).toBe(digest);
    expect(await one.daemon.reload({ confirm: digest })).toMatchObject({ ok: true });
    await eventually('the other applies it', () => two.daemon.fileState?.ok === true);
    await three.write(cut);
    expect(await three.daemon.reload()).toMatchObject({ ok: true });
    expect([one, two, three].map((reload) => removals(reload).length)).toEqual([1, 1, 0]);
    await eventually('the event', () => operator.came.length > 0);
    expect(operator.came).toHaveLength(1);
  });

  test('one that starts names the removals of its file, unless that file is confirmed', async () => {
    const { config: before } = await stage();
    const one = await reloadable(before, { later });
    const cut = naming(before, [LAST]);
    const two = await reloadable(cut, { later });
    expect(removals(two)).toMatchObject([{ held: false, subjects: { removed: 4, of: 5 } }]);
    expect(two.daemon.fileState).toMatchObject({ ok: true, removal: { held: false } });
    expect(await two.daemon.reload()).toMatchObject({ ok: true, removal: null });
    // A past removal from the config is not reported again.
    expect(removals(await reloadable(cut, { later }))).toEqual([]);

    const digest = await heldDigest(one, cut);
    expect(removals(two)).toMatchObject([{ digest }]);
    expect(await one.daemon.reload({ confirm: digest })).toMatchObject({ ok: true });
    await reloadable(before, { later });
    expect(removals(await reloadable(cut, { later }))).toEqual([]);
  });

  test('one with another file stays held, until that is confirmed', async () => {
    const { config: before } = await stage();
    const one = await reloadable(before, { later });
    const two = await reloadable(before, { later });
    const first = await heldDigest(one, naming(before, [LAST]));
    const second = await heldDigest(two, naming(before, [ONE]));
    expect(second).not.toBe(first);
    await expect(two.daemon.reload({ confirm: first })).rejects.toThrow(/as it is now/);
    expect(await one.daemon.reload({ confirm: first })).toMatchObject({ ok: true });
    expect(await two.daemon.reload()).toMatchObject({ state: 'held', removal: { digest: second } });
    expect(await two.daemon.reload({ confirm: second })).toMatchObject({ ok: true });
  });
});

test('secrets that a held file removes or replaces end at once, but the last of an entry', async () => {
  const { config: before, statuses, backend } = await stage();
  const [old, retained, coming] = [1, 2, 3].map(
    (fill) => `whsec_${Buffer.alloc(32, fill).toString('base64')}`,
  );
  const signing = (secrets: unknown[]) => ({
    ...before.receivers,
    backend: { url: backend.url, more: { secrets } },
  });
  const reload = await reloadable({ ...before, receivers: signing([old, retained]) }, { later });
  const { daemon, lines } = reload;
  await backend.until((came) => came.length === 5);
  const newest = await reloadable(naming(before, [...FIVE, NEW]), { later });
  await backend.until((came) => came.length === 6);

  const tokens = { read: 'another-token-that-reads', admin: 'another-admin-token' };
  const cut = withTokens(naming({ ...before, receivers: signing([retained, coming]) }, [LAST]), tokens);
  const digest = await heldDigest(reload, cut);
  // Answers to wrong tokens of one address get slower.
  const statusOf = async (token: string, index: number) =>
    (await callApi(daemon.url, { path: '/config', token, from: `127.0.0.${index + 2}` })).status;
  // The only admin token stays until it is confirmed, and the new ones wait for that as well.
  const all = [READ_TOKEN, ADMIN_TOKEN, tokens.read, tokens.admin];
  expect(await Promise.all(all.map(statusOf))).toEqual([401, 200, 401, 401]);
  expect(lines.filter(({ msg }) => msg === 'config.secrets_ended')).toMatchObject([
    { places: ['server.tokens.read', 'receivers.backend'] },
  ]);
  // The last process that applied a change sets the wanted config.
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const { digest: wanted } = (await config(newest.daemon.url)).body;
  expect(await redis.hget(new Keys(before.prefix).config, 'digest')).toBe(wanted);
  await newest.daemon.close();
  statuses.set(ONE, 'filled');
  await backend.until((came) => came.length === 7);
  const signs = (secret = '') => {
    const { body = '', headers = {} } = backend.came[6] ?? {};
    const given = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    try {
      return new Webhook(secret).verify(body, given) !== null;
    } catch {
      return false;
    }
  };
  expect([old, retained, coming].map(signs)).toEqual([false, true, false]);

  expect(await daemon.reload()).toMatchObject({ state: 'held', removal: { digest } });
  expect(await daemon.reload({ confirm: digest })).toMatchObject({ ok: true });
  expect(await Promise.all(all.map(statusOf))).toEqual([401, 401, 200, 200]);
  expect(JSON.stringify(lines)).not.toContain(tokens.admin);
});

test('the digest distinguishes two files that differ in a secret alone, and reveals nothing of it', async () => {
  const { config: before } = await stage();
  const reload = await reloadable(before, { later });
  const cut = naming(before, [LAST]);
  const first = await heldDigest(reload, cut);
  const second = await heldDigest(reload, withTokens(cut, { ...TOKENS, consume: 'a-token-that-consumes' }));
  expect(second).not.toBe(first);
  // The whole file is not enough to compute it: the key is in Redis.
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  await redis.del(new Keys(before.prefix).fileDigestKey);
  expect(await heldDigest(reload, cut)).not.toBe(first);
});

test('no reload removes the last admin token', async () => {
  const { config: before } = await stage();
  const { daemon, write } = await reloadable(before, { later });
  await write(withTokens(before, { read: READ_TOKEN }));
  expect(await daemon.reload()).toMatchObject({
    state: 'refused',
    retryAtMs: null,
    error: expect.stringContaining('server.tokens: found no admin token'),
  });
  expect((await config(daemon.url)).status).toBe(200);
});

test('in mode manual a changed file is logged, and applied on request only', async () => {
  const { config: before, backend } = await stage();
  const manual = inMode(before, 'manual');
  const reload = await reloadable(manual, { later });
  const { daemon, lines, write, file } = reload;
  await backend.until((came) => came.length === 5);
  const noticed = () => lines.filter(({ msg }) => msg === 'config.file_changed');

  await write(naming(manual, [...FIVE, NEW]));
  await eventually('the change is logged', () => noticed().length === 1);
  expect(noticed()).toMatchObject([{ level: 40, subjects: { added: 1, removed: 0 } }]);
  const body = await answered(
    { call: (call) => callApi(daemon.url, call) },
    { path: '/config' },
    ({ state }) => state === 'changed',
  );
  expect(body).toMatchObject({ changed: { error: null }, lastReload: { ok: true }, removal: null });
  expect(intentsOf(backend).has(`intent:${NEW}`)).toBe(false);
  const { command } = running(reload, ADMIN_TOKEN);
  expect(await command()).toMatchObject({ code: 0, out: 'subjects: +1\nsubscriptions: orders' });
  await backend.until(() => intentsOf(backend).has(`intent:${NEW}`));

  await writeFile(file, 'upstream: nonsense');
  await eventually('the fault is logged', () => noticed().length === 2);
  expect(noticed()[1]).toMatchObject({ reason: expect.stringContaining('expected') });
  expect(daemon.fileState).toMatchObject({ state: 'changed', error: expect.stringContaining('expected') });
  expect(await command()).toMatchObject({ code: 78 });
  expect(daemon.fileState).toMatchObject({ state: 'refused', retryAtMs: null });

  // A noticed file ends no secret and is not held: it was not requested.
  await write(withTokens(naming(manual, [LAST]), { admin: ADMIN_TOKEN }));
  await eventually('the removal is logged', () => noticed().length === 3);
  expect((await config(daemon.url, READ_TOKEN)).status).toBe(200);
  expect(removals(reload)).toEqual([]);
  const held = await command();
  expect(held.code).toBe(75);
  expect((await config(daemon.url, READ_TOKEN)).status).toBe(401);
  const [, digest = ''] = /--confirm ([0-9a-f]{32})/.exec(held.err) ?? [];
  // A file that is only touched stays held.
  const moved = new Promise((resolve) => daemon.signals.once('config.moved', resolve));
  await utimes(file, new Date(), new Date());
  expect(await moved).toMatchObject({ state: 'held', removal: { digest } });
  expect(await command('--confirm', digest)).toMatchObject({ code: 0, out: expect.stringContaining('-5') });
});
