import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { expect, inject, test } from 'vitest';
import { loadConfig } from '../../src/config/file/load.ts';
import { configYaml, type TestConfig, testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { opening } from '../support/opening.ts';
import { reloadable, testFolder } from '../support/reloadable.ts';
import { hashOf, intentRecord, ScriptedUpstream } from '../support/scripted-upstream.ts';

const { later, started } = opening();
const [ONE, TWO] = [hashOf(1), hashOf(2)];
const BROKEN = join(import.meta.dirname, '../fixtures/config/broken');

async function stage(): Promise<{ config: TestConfig; hook: Hook; statuses: Map<string, string> }> {
  const statuses = new Map([ONE, TWO].map((hash) => [hash, 'pending']));
  const upstream = await started(
    new ScriptedUpstream(({ query }) => {
      const hash = query.intentHash ?? '';
      return { records: [intentRecord(hash, statuses.get(hash) ?? 'unknown', 1_763_638_259)] };
    }),
  );
  const hook = await started(new Hook());
  return { config: configOf(upstream.url, hook.url, [ONE]), hook, statuses };
}

function configOf(baseUrl: string, url: string, intents: string[]): TestConfig {
  const subscriptions = [{ name: 'orders', receivers: ['backend'], intents }];
  const receivers = { backend: { url } };
  return { baseUrl, redisUrl: inject('redisUrl'), prefix: testPrefix(), receivers, subscriptions };
}

function withBoth(config: TestConfig): TestConfig {
  return { ...config, subscriptions: [{ name: 'orders', receivers: ['backend'], intents: [ONE, TWO] }] };
}

test('a file that is replaced is read without being reported', async () => {
  const { config, hook } = await stage();
  const { write } = await reloadable(config, { later });
  await hook.until((came) => came.length === 1);
  await write(withBoth(config));
  await hook.until((came) => came.length === 2);
});

test('a file that is written in place is read once it stops changing', async () => {
  const { config, hook } = await stage();
  const { file, lines } = await reloadable(config, { later });
  const text = configYaml(withBoth(config));
  await writeFile(file, text.slice(0, text.length / 2));
  await writeFile(file, text);
  await hook.until((came) => came.length === 2);
  expect(lines.filter(({ msg }) => msg === 'config.reload_failed')).toEqual([]);
});

test('a volume of Kubernetes, which changes a link beside the file, is read', async () => {
  const { config, hook } = await stage();
  const folder = await testFolder({ later });
  // As kubelet does it: the file links to ..data/…, which links to a folder by its date, and is replaced by rename.
  const publish = async (version: string, next: TestConfig): Promise<void> => {
    await mkdir(join(folder, version));
    await writeFile(join(folder, version, 'intentwatch.yaml'), configYaml(next));
    await symlink(version, join(folder, '..data_tmp'));
    await rename(join(folder, '..data_tmp'), join(folder, '..data'));
  };
  await publish('..2026_1', config);
  const file = join(folder, 'intentwatch.yaml');
  await symlink('..data/intentwatch.yaml', file);
  await reloadable(config, { later, file });
  await hook.until((came) => came.length === 1);
  await publish('..2026_2', withBoth(config));
  await hook.until((came) => came.length === 2);
});

test('a secret in a file of its own is read from there when it changes', async () => {
  const { config, hook, statuses } = await stage();
  const folder = await testFolder({ later });
  const [before, after] = [1, 2].map((fill) => `whsec_${Buffer.alloc(32, fill).toString('base64')}`);
  await writeFile(join(folder, 'secret'), `${before}\n`);
  const receivers = { backend: { url: hook.url, more: { secrets: [`\${file:secret}`] } } };
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, configYaml({ ...config, receivers }));
  const { lines } = await reloadable(config, { later, file });
  await hook.until((came) => came.length === 1);

  await writeFile(join(folder, 'new'), `${after}\n`);
  await rename(join(folder, 'new'), join(folder, 'secret'));
  await eventually('the reload', () => lines.some(({ msg }) => msg === 'config.reloaded'));
  statuses.set(ONE, 'filled');
  await hook.until((came) => came.length === 2);
  const [first, second] = hook.came.map(({ body, headers }) => ({
    body,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
  }));
  if (first === undefined || second === undefined) throw new Error('there are not two webhooks');
  expect(() => new Webhook(before ?? '').verify(first.body, first.headers)).not.toThrow();
  expect(() => new Webhook(after ?? '').verify(second.body, second.headers)).not.toThrow();
  expect(() => new Webhook(before ?? '').verify(second.body, second.headers)).toThrow();
  expect(lines.find(({ msg }) => msg === 'config.reloaded')).toMatchObject({
    receivers_changed: ['backend'],
  });
  expect(JSON.stringify(lines)).not.toContain(after);
});

test('each broken config is refused with the message of check, and the current one goes on', async () => {
  const { config, hook, statuses } = await stage();
  const { daemon, file, lines, write } = await reloadable(config, { later });
  await hook.until((came) => came.length === 1);
  const names = (await readdir(BROKEN)).filter((name) => name.endsWith('.yaml'));
  expect(names.length).toBeGreaterThanOrEqual(10);
  for (const name of names) {
    await write(await readFile(join(BROKEN, name), 'utf8'));
    const checked = await loadConfig(file, process.env).catch((error: unknown) => error);
    const result = await daemon.reload();
    if (!(checked instanceof Error) || result?.state !== 'refused')
      throw new Error(`${name} was not refused`);
    expect(result.error).toBe(checked.message);
    expect(lines.at(-1)).toMatchObject({ level: 50, msg: 'config.reload_failed', reason: checked.message });
  }
  const metrics = async () => (await fetch(`${daemon.url}/metrics`)).text();
  expect(await metrics()).toContain('intentwatch_config_last_reload_successful 0');
  const ready = await (await fetch(`${daemon.url}/readyz`)).text();
  expect(ready).toContain('the file as it is now was refused');
  expect(ready).toContain('"status":"ready"');

  statuses.set(ONE, 'filled');
  await hook.until((came) => came.length === 2);
  await write(withBoth(config));
  expect(await daemon.reload()).toMatchObject({ ok: true });
  expect(await metrics()).toContain('intentwatch_config_last_reload_successful 1');
  await hook.until((came) => came.length === 3);
});

test('a path that is no file any more is refused, and read again once it is one', async () => {
  const { config, hook } = await stage();
  const { daemon, file, write } = await reloadable(config, { later });
  await hook.until((came) => came.length === 1);
  const refused = async (found: string): Promise<void> => {
    expect(await daemon.reload()).toMatchObject({
      ok: false,
      error: expect.stringContaining(`found ${found}`),
    });
    await rm(file, { recursive: true, force: true, maxRetries: 5 });
  };
  await rm(file);
  await refused('no such file');
  await mkdir(file);
  await refused('a folder');
  // Opening it waits for a writer, and there is none.
  await promisify(execFile)('mkfifo', [file]);
  await refused('a pipe or a device');
  await writeFile(file, '');
  await truncate(file, 17_000_000);
  await refused('a file of 17000000 bytes');
  await write(withBoth(config));
  expect(await daemon.reload()).toMatchObject({ ok: true });
  await hook.until((came) => came.length === 2);
});
