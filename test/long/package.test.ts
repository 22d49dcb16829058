import { execFile } from 'node:child_process';
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { makeClone } from '../support/clone.ts';
import { eventually } from '../support/eventually.ts';
import { npm } from '../support/npm.ts';
import { SandboxProcess } from '../support/sandbox-process.ts';
import { RECEIVER_NAME, Stage } from '../support/stage.ts';

const ROOT = resolve(import.meta.dirname, '../..');

const PACKAGE = z.object({
  version: z.string(),
  dependencies: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()),
});

async function packageIn(folder: string) {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => null);
  return text === null ? null : PACKAGE.partial().parse(JSON.parse(text));
}

async function neededBy(modules: string): Promise<Set<string>> {
  const files = await readdir(modules, { recursive: true });
  const folders = files.filter((file) => file.endsWith('/package.json')).map((file) => dirname(file));
  const packages = await Promise.all(folders.map((name) => dependenciesIn(join(modules, name))));
  return new Set(packages.flat());
}

async function dependenciesIn(path: string): Promise<string[]> {
  const text = await readFile(join(path, 'package.json'), 'utf8');
  const { dependencies } = z
    .object({ dependencies: z.record(z.string(), z.json()).catch({}) })
    .parse(JSON.parse(text));
  return Object.keys(dependencies);
}

let folder = '';
let tarball = '';
let installed = '';
let command = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'intentwatch-package-'));
  const clone = join(folder, 'clone');
  await mkdir(clone);
  await makeClone(clone);
  const before = await readdir(clone);
  await npm(['pack', '--pack-destination', folder], clone);
  expect(await readdir(clone)).toEqual(before);
  const name = (await readdir(folder)).find((file) => file.endsWith('.tgz')) ?? 'none';
  tarball = join(folder, name);

  const prefix = join(folder, 'prefix');
  await npm(['install', '--global', '--prefix', prefix, '--omit=dev', tarball], folder);
  installed = join(prefix, 'lib/node_modules/intentwatch');
  command = join(prefix, 'bin/intentwatch');
});

afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));

/** The command as a shell finds it, with the Node of this test as the machine's. */
function installedCommand(stage: Stage, args: readonly string[]) {
  return stage.command([command, ...args], {
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
  });
}

test('the package has JavaScript with types and source maps, and nothing of tests and benchmarks', async () => {
  const { stdout } = await promisify(execFile)('tar', ['-tzf', tarball]);
  const files = stdout.split('\n').map((file) => file.replace(/^package\//, ''));
  for (const expected of [
    ...[
      'bin/intentwatch.mjs',
      'dist/src/main.js',
      'dist/src/main.js.map',
      'dist/src/domain/events/event.d.ts',
    ],
    ...[
      'dist/src/store/commands/commit-12.lua',
      'dist/src/store/commands/include/plan.lua',
      'dist/sandbox/sandbox.js',
      'dist/demo/run.js',
    ],
    // The program of threads, which no file imports.
    'dist/src/thread-program.js',
    ...['config/schema.json', 'packaging/systemd/intentwatch.service', 'LICENSE'],
  ]) {
    expect(files).toContain(expected);
  }
  expect(files.filter((file) => /^(src|test|bench|scripts|node_modules)\//.test(file))).toEqual([]);
  // Node runs no TypeScript of an installed package: the examples are there to be read and copied.
  const own = files.filter((file) => !file.startsWith('examples/'));
  expect(own.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))).toEqual([]);
});

test('it is installed with the dependencies that it names, and none that only development needs', async () => {
  const { dependencies = {}, devDependencies = {} } = (await packageIn(ROOT)) ?? {};
  const found = async (name: string) => (await packageIn(join(installed, 'node_modules', name)))?.version;
  for (const [name, version] of Object.entries(dependencies)) {
    expect([name, await found(name)]).toEqual([name, version]);
  }
  // Runtime packages also depend on some of the development packages.
  const needed = await neededBy(join(installed, 'node_modules'));
  for (const name of Object.keys(devDependencies)) {
    if (!needed.has(name)) expect([name, await found(name)]).toEqual([name, undefined]);
  }
});

test('its command checks a config, serves a sandbox, and starts a daemon whose webhook arrives and verifies', async ({
  onTestFinished,
}) => {
  const stage = new Stage(onTestFinished);
  const flags = [
    '--port=0',
    '--control-port=0',
    '--transfers-per-second=3',
    '--time-scale=20',
    '--wallets=2',
  ];
  const sandbox = await SandboxProcess.of(await installedCommand(stage, ['sandbox', ...flags]));
  const { wallets, quotes } = await sandbox.subjects();
  const receiver = await stage.receiver();
  const config = await stage.config({
    upstreamUrl: sandbox.url,
    dataDir: await stage.folder(),
    receiver,
    subscriptions: [{ name: 'treasury', wallets, quotes, receivers: [RECEIVER_NAME] }],
  });

  const check = await installedCommand(stage, ['check', '--config', config]);
  expect(await check.ending()).toMatchObject({ code: 0 });
  expect(check.stdout.join('\n')).toContain('ok, 1 receiver, 1 subscription');

  const daemon = await installedCommand(stage, ['start', '--config', config]);
  await daemon.line(/"msg":"daemon.started"/);
  await eventually('a webhook', () => receiver.received.length > 0);
  expect(receiver.received[0]).toMatchObject({ verified: true });

  // Large enough to be read in a thread.
  await appendFile(config, `# ${'-'.repeat(100_000)}\nretention: 31d\n`);
  daemon.send('SIGHUP');
  await daemon.line(/"msg":"config.reload/);
  expect(daemon.stdout.join('\n')).toContain('"msg":"config.reloaded"');
  expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });
});

test('its command prints its version, and has the demo', async ({ onTestFinished }) => {
  const stage = new Stage(onTestFinished);
  const version = (await packageIn(ROOT))?.version;
  const program = await installedCommand(stage, ['--version']);
  expect(await program.ending()).toMatchObject({ code: 0 });
  expect(program.stdout).toEqual([version]);

  const demo = await installedCommand(stage, ['demo', '--for', '5']);
  expect(await demo.ending()).toMatchObject({ code: 0 });
  expect(demo.stdout.at(-1)).toBe('It all adds up.');
});
