import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Alias } from 'yaml';
import { ConfigError, renderProblems } from '../../src/config/file/errors.ts';
import { loadConfig } from '../../src/config/file/load.ts';

const folder = join(import.meta.dirname, '../fixtures/config/broken');
const minimal = join(folder, '../valid/minimal.yaml');
const cases = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => name.slice(0, -'.yaml'.length));

async function problemsOf(file: string, env: NodeJS.ProcessEnv = {}): Promise<ConfigError> {
  const outcome = await loadConfig(file, env).catch((error: unknown) => error);
  if (outcome instanceof ConfigError) return outcome;
  throw new Error(`expected a ConfigError, got ${String(outcome)}`);
}

describe('a broken config file is refused with its lines', () => {
  test.each(cases)('%s', async (name) => {
    const error = await problemsOf(join(folder, `${name}.yaml`));
    const expected = readFileSync(join(folder, `${name}.txt`), 'utf8');
    expect(`${renderProblems(error).replaceAll(`${folder}/`, '')}\n`).toBe(expected);
  });

  test('there are fixtures, each with its expected output', () => {
    expect(cases.length).toBeGreaterThanOrEqual(20);
    const outputs = readdirSync(folder).filter((name) => name.endsWith('.txt'));
    expect(outputs).toEqual(cases.map((name) => `${name}.txt`));
  });
});

describe('a path without a readable file is refused', () => {
  test('a file that does not exist', async () => {
    const error = await problemsOf('no/such/intentwatch.yaml');
    expect(renderProblems(error)).toBe(
      'no/such/intentwatch.yaml:1:1: found no such file, expected a config file (name another with --config)',
    );
  });

  test('a folder', async () => {
    const error = await problemsOf(folder);
    expect(error.problems).toEqual([
      {
        ...{ file: folder, line: 1, column: 1, path: '' },
        message: 'found a folder, expected a config file (name another with --config)',
      },
    ]);
  });

  test('lists in lists without end, with the line', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-config-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'deep.yaml');
    await writeFile(file, `dataDir: x\nreceivers:\n  ${'- '.repeat(20_000)}x\nsubscriptions: []\n`);
    const [problem] = (await problemsOf(file)).problems;
    expect(problem?.line).toBe(3);
    expect(problem?.message).toBe('found YAML that is nested too deeply, expected a config');
  });

  test('aliases that make a billion values of a few lines', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-config-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'bomb.yaml');
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let level = 1; level < 10; level += 1) {
      lines.push(
        `a${level}: &a${level} [${Array(10)
          .fill(`*a${level - 1}`)
          .join(', ')}]`,
      );
    }
    await writeFile(file, lines.join('\n'));
    const error = await problemsOf(file);
    const problems = error.problems.map(({ message }) => message);
    expect(problems.filter((message) => message.includes('expected fewer aliases'))).toHaveLength(1);
  });
});

test('thousands of aliases are read in one pass', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-config-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'intentwatch.yaml');
  const head = readFileSync(minimal, 'utf8').split('subscriptions:')[0];
  const subscriptions = Array.from({ length: 2_000 }, (_, index) => {
    const intent = `0x${index.toString(16).padStart(64, '0')}`;
    return `  - { name: s${index}, intents: ["${intent}"], receivers: ${index === 0 ? '&r [backend]' : '*r'} }`;
  });
  await writeFile(file, [head, 'subscriptions:', ...subscriptions].join('\n'));
  // The parser itself searches the document from its start for each alias.
  const search = vi.spyOn(Alias.prototype, 'resolve');
  onTestFinished(() => search.mockRestore());
  const { subscriptions: read } = await loadConfig(file, {});
  expect(read.map((one) => one.receivers)).toEqual(Array(2_000).fill(['backend']));
  expect(search).not.toHaveBeenCalled();
});

describe('a malformed redis.url is refused with its place', () => {
  test.each([
    'redis://user:hid%zzden@redis.example.com:6379',
    'redis://:hid%den@redis.example.com',
    'redis+sentinel://user:hid%zzden@a:26379/group',
    'redis+sentinel://hid%den:x@a:26379/group',
    'redis+cluster://:hid%zzden@a:6379',
    'redis+cluster://a:99999',
    'redis+cluster://a:0',
    'redis+cluster://a:6379,',
    'redis://redis.example.com:6379/hidden',
    'redis://redis.example.com:6379/1/2',
    'redis://redis.example.com:99999',
    'redis://',
    'redis:hidden',
    'hidden',
  ])('%s', async (url) => {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-config-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'intentwatch.yaml');
    await writeFile(file, `${readFileSync(minimal, 'utf8')}\nredis:\n  url: ${JSON.stringify(url)}\n`);
    const { message, problems } = await problemsOf(file);
    expect(problems).toMatchObject([{ line: 15, column: 8, path: 'redis.url' }]);
    expect(message).toContain('found a secret that is not shown, expected a URL like redis://');
    expect(message).not.toContain('hid');
  });
});

test('an alias means the last anchor of its name above it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-config-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, 'a: &x { b: &y no, c: *y }\nd: &y [1]\ne: *x\nupstream: *y\nredis: *z\nz: &z later');
  const { message } = await problemsOf(file);
  expect(message).toContain('upstream: found a list, expected a mapping');
  expect(message).toContain('redis: found a YAML alias without an anchor');
});

test('a problem has its members for programs', async () => {
  const file = join(folder, 'webhook-http.yaml');
  const error = await problemsOf(file);
  expect(error.problems).toEqual([
    {
      file,
      line: 7,
      column: 10,
      path: 'receivers[0].url',
      message: 'found an http:// URL, expected an https:// URL (or allowInsecure: true)',
    },
  ]);
});
