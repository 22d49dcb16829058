import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { generatedFiles } from '../../scripts/generate.ts';
import { measure, pages } from '../../scripts/sentences.ts';
import { loadConfig } from '../../src/config/load.ts';
import { EVENT_TYPES } from '../../src/domain/event-types.ts';
import { DEFINITIONS } from '../../src/metrics/definitions.ts';
import { anchors, codeBlocks, codeSpans, links } from '../support/markdown.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): Promise<string> => readFile(resolve(root, path), 'utf8');

const PAGES = await Promise.all((await pages()).map(async (path) => ({ path, text: await read(path) })));
const GENERATED = new Set((await generatedFiles()).map(({ name }) => name));
const README = PAGES.find(({ path }) => path === 'README.md')?.text ?? '';

const README_BYTES = 9_000;
const WORDS_EACH = 20;

describe('README', () => {
  test(`has at most ${README_BYTES} bytes`, () => {
    expect(Buffer.byteLength(README)).toBeLessThanOrEqual(README_BYTES);
  });

  test('leads to every page of docs', () => {
    const linked = new Set(links(README).map(({ path }) => path));
    const docs = PAGES.map(({ path }) => path).filter((path) => /^docs\/[^/]+\.md$/.test(path));
    expect(docs.filter((path) => !linked.has(path))).toEqual([]);
  });

  test('shows an event that is the one of the catalogue, shortened', async () => {
    const [shown = ''] = codesIn(README, 'json');
    const whole: unknown = JSON.parse(await read('docs/events/intent.filled.json'));
    expect(whole).toMatchObject(JSON.parse(shown));
  });

  test('shows the program that verifies with a library', async () => {
    expect(codesIn(README, 'ts')).toEqual([await read('examples/verify-webhook/standard-webhooks.ts')]);
  });
});

/** The blocks of a page in one language, as they stand there. */
function codesIn(text: string, language: string): string[] {
  return codeBlocks(text)
    .filter((block) => block.language === language)
    .map(({ code }) => code);
}

describe.each(PAGES)('$path', ({ path, text }) => {
  test('links to nothing that is not there', async () => {
    const broken: string[] = [];
    for (const { path: to, anchor } of links(text)) {
      const target = to === '' ? resolve(root, path) : resolve(root, dirname(path), to);
      if (!existsSync(target)) broken.push(to);
      else if (anchor !== '' && !anchors(await readFile(target, 'utf8')).includes(anchor)) {
        broken.push(`${to}#${anchor}`);
      }
    }
    expect(broken).toEqual([]);
  });

  test('names no file of the repository that is not there', () => {
    const named = codeSpans(text).filter((span) =>
      /^(src|test|config|docs|examples|scripts|bench)\/[\w./-]+$/.test(span),
    );
    expect(named.filter((file) => !existsSync(resolve(root, file)))).toEqual([]);
  });

  test('names no metric that does not exist', () => {
    const names: string[] = Object.values(DEFINITIONS).map(({ name }) => name);
    const found = codeSpans(text).filter((span) => /^intentwatch_[a-z_]+$/.test(span));
    expect(found.filter((name) => !names.includes(name))).toEqual([]);
  });

  test('shows commands that exist, with flags that they have', async () => {
    const wrong = await Promise.all(
      commandLines(text).map(async (line) => complaint(line, await commands())),
    );
    expect(wrong.filter((one) => one !== '')).toEqual([]);
  });

  test('shows YAML that the daemon takes', async () => {
    for (const yaml of codesIn(text, 'yaml')) await expect(loads(yaml), yaml).resolves.toBeDefined();
  });

  test('shows JSON that fits the schema of events', async () => {
    const schema = z.fromJSONSchema(JSON.parse(await read('docs/events/schema.json')));
    for (const json of codesIn(text, 'json')) {
      expect(schema.safeParse(JSON.parse(json)).error, json).toBeUndefined();
    }
  });

  if (!GENERATED.has(path)) {
    test(`has sentences of less than ${WORDS_EACH} words on average`, () => {
      const { prose, tables } = measure(text);
      expect(prose.average).toBeLessThan(WORDS_EACH);
      expect(tables.average).toBeLessThan(WORDS_EACH);
    });
  }
});

// ---- Commands ---------------------------------------------------------------------------------------------------

/** The commands of the program by their names, as `src/main.ts` has them. */
async function commands(): Promise<ReadonlyMap<string, Command>> {
  const entry = /'?([\w-]+)'?: async \(\) => \(await import\('\.\/(commands\/[\w-]+\.ts)'\)\)\.(\w+)\(\)/g;
  const found = [...(await read('src/main.ts')).matchAll(entry)];
  const loaded = found.map(async ([, name = '', file = '', make = '']): Promise<[string, Command]> => {
    const module: Record<string, () => Command> = await import(resolve(root, 'src', file));
    const command = module[make]?.();
    if (command === undefined) throw new Error(`found no ${make} in ${file}, expected the command ${name}`);
    return [name, command];
  });
  return new Map(await Promise.all(loaded));
}

test('docs/commands.md shows every command', async () => {
  const names = [...(await commands()).keys()];
  expect(names).toContain('verify-quote');
  const text = await read('docs/commands.md');
  expect(names.filter((name) => !text.includes(`\`intentwatch ${name}`))).toEqual([]);
});

/** The lines of a page that a reader types: in blocks of code, and whole commands within sentences. */
function commandLines(text: string): string[] {
  const lines = codeBlocks(text)
    .filter(({ language }) => language === '' || language === 'sh')
    .flatMap(({ code }) => code.replaceAll(/\\\n\s*/g, ' ').split('\n'));
  // Behind several spaces stands what the command does.
  const typed = lines.map((line) => line.trim().split(/ {2,}|\t/)[0] ?? '');
  return [...typed, ...codeSpans(text)].filter((line) => /^(intentwatch|npm|node) /.test(line));
}

/** What is wrong with a command line, or '' where nothing is. */
async function complaint(line: string, known: ReadonlyMap<string, Command>): Promise<string> {
  const [program = '', ...words] = line.replace(/ &$/, '').split(' ');
  if (program === 'npm') return npmComplaint(line, words);
  if (program === 'node') return nodeComplaint(line, words);
  const [name = '', ...rest] = words;
  // `intentwatch COMMAND --help` stands for any of them.
  if (name === 'COMMAND') return '';
  const command = known.get(name);
  if (command === undefined) return `${line}: found no command ${name}`;
  const inner = command.commands.find((one) => one.name() === rest[0]);
  const flags = [command, ...(inner ? [inner] : [])].flatMap(({ options }) =>
    options.map(({ long }) => long),
  );
  const unknown = rest.find((word) => word.startsWith('--') && word !== '--help' && !flags.includes(word));
  return unknown === undefined ? '' : `${line}: found no flag ${unknown}`;
}

async function npmComplaint(line: string, [verb = '', script = '']: string[]): Promise<string> {
  const { scripts } = z
    .object({ scripts: z.record(z.string(), z.string()) })
    .parse(JSON.parse(await read('package.json')));
  if (verb === 'run' || verb === 'test' || verb === 'start') {
    const named = verb === 'run' ? script : verb;
    if (scripts[named] === undefined) return `${line}: found no script ${named}`;
    const [, bench] = /^npm run bench -- ([a-z]+)/.exec(line) ?? [];
    return bench === undefined || existsSync(resolve(root, 'bench', `${bench}.ts`))
      ? ''
      : `${line}: found no benchmark`;
  }
  return '';
}

async function nodeComplaint(line: string, [file = '']: string[]): Promise<string> {
  const places = ['', 'examples/verify-webhook'].map((folder) => resolve(root, folder, file));
  return places.some((place) => existsSync(place)) ? '' : `${line}: found no ${file}`;
}

// ---- YAML -------------------------------------------------------------------------------------------------------

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const ENV = {
  UPSTREAM_API_KEY: 'key-1',
  INTENTWATCH_TOKEN: 'token-of-16-char',
  REDIS_URL: 'redis://redis:6379',
  SMTP_URL: 'smtp://127.0.0.1:1025',
  WALLET: '0x52908400098527886e0f7030069857d2e4169ee7',
  SENDER_WALLET: '0x52908400098527886e0f7030069857d2e4169ee7',
  WEBHOOK_SECRET: SECRET,
  OLD_SECRET: SECRET,
};

const TREE = z.record(z.string(), z.unknown());
const NAMED = z.array(z.looseObject({ name: z.string() }));

/** A config that is whole, into which a page's part is put. */
const BASE = {
  upstream: { baseUrl: 'https://api.example.com', quotesUrl: 'https://quotes.example.com', apiKey: 'key-1' },
  smtp: { url: 'smtp://127.0.0.1:1025', from: 'transfers@example.com' },
  receivers: ['backend', 'oncall', 'desk'].map((name) => ({
    name,
    type: 'webhook',
    url: 'https://example.com/',
    secrets: [SECRET],
  })),
  subscriptions: [{ name: 'all', wallets: [ENV.WALLET], receivers: ['backend'] }],
};

/** Loads what a page shows as the daemon does: a whole config as it stands, a part of one within a whole one. */
async function loads(yaml: string): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-docs-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'quote.json'), await read('test/fixtures/config/quotes/quote.json'));
  const part = TREE.parse(parse(yaml));
  const isWhole = ['upstream', 'receivers', 'subscriptions'].every((key) => key in part);
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, isWhole ? yaml : stringify(wholeWith(part)));
  return loadConfig(file, ENV);
}

function wholeWith(part: Record<string, unknown>): object {
  const [subscription] = BASE.subscriptions;
  if ('quotes' in part) return { ...BASE, subscriptions: [{ ...subscription, ...part }] };
  const receivers = NAMED.parse(part.receivers ?? []);
  const names = receivers.map(({ name }) => name);
  const others = BASE.receivers.filter(({ name }) => !names.includes(name));
  return { ...BASE, ...part, receivers: [...receivers, ...others] };
}

test.each([
  'examples/first-webhook/intentwatch.yaml',
  'examples/round-trip/intentwatch.yaml',
])('%s is a config that the daemon takes', async (file) => {
  await expect(loadConfig(resolve(root, file), ENV)).resolves.toBeDefined();
});

// ---- What stands in two places ----------------------------------------------------------------------------------

test('docs/operations.md says what to do about every alert, and about no other', async () => {
  const rules = z
    .object({ groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string() })) })) })
    .parse(parse(await read('config/prometheus/rules.yml')));
  const alerts = rules.groups.flatMap((group) => group.rules.map(({ alert }) => alert));
  const headings = [...(await read('docs/operations.md')).matchAll(/^### (Intentwatch\w+)$/gm)];
  expect(headings.map(([, name]) => name).sort()).toEqual(alerts.sort());
});

/** The names of the log lines in the source, `record.unreadable` for instance. */
async function logLines(): Promise<Set<string>> {
  const entries = await readdir(resolve(root, 'src'), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.ts'));
  const sources = await Promise.all(
    files.map((entry) => readFile(resolve(entry.parentPath, entry.name), 'utf8')),
  );
  const call = /\blog(?:\.(?:debug|info|warn|error)|\[[^\]]+\])\(([^;]*?)'([a-z-]+\.[a-z_]+)'/g;
  return new Set(sources.flatMap((source) => [...source.matchAll(call)].map(([, , name = '']) => name)));
}

test('docs/logs.md has every line of the log, and no other', async () => {
  const rows = [...(await read('docs/logs.md')).matchAll(/^\| (`[^|]+`) \|/gm)];
  const told = rows.flatMap(([, names = '']) =>
    [...names.matchAll(/`([a-z-]+\.[a-z_]+)`/g)].map(([, name]) => name),
  );
  expect(told.sort()).toEqual([...(await logLines())].sort());
});

test('pages name only event types, keys of the config and log lines that exist', async () => {
  const keys = [...(await read('docs/configuration.md')).matchAll(/^\| `([\w.[\]-]+)` \|/gm)].map(
    ([, key]) => key,
  );
  const known = new Set([...EVENT_TYPES, ...(await logLines())]);
  const sections = ['upstream', 'redis', 'server', 'smtp', 'polling'];
  const pattern =
    /^(intent|quote|gasless|vault|route|upstream|receiver|redis|server|smtp|polling|poll|relay|delivery)\.[\w-]+$/;
  const written = PAGES.filter(({ path }) => !GENERATED.has(path));
  const wrong = written.flatMap(({ path, text }) =>
    codeSpans(text)
      .filter((span) => pattern.test(span) && !known.has(span))
      .filter((span) => {
        const [section = '', ...key] = span.split('.');
        const name = key.join('.');
        return !(
          sections.includes(section) && keys.some((one) => one === name || one?.startsWith(`${name}.`))
        );
      })
      .map((span) => `${path}: ${span}`),
  );
  expect(wrong).toEqual([]);
});

test('every page but decisions and what is generated has a question or a name that README uses', () => {
  const titles = PAGES.filter(({ path }) => dirname(path) === 'docs' && !GENERATED.has(path)).map(
    ({ path, text }) => ({
      page: relative('docs', path),
      title: /^# (.+)$/m.exec(text)?.[1] ?? '',
    }),
  );
  expect(titles.filter(({ title }) => !title.endsWith('?')).map(({ page }) => basename(page))).toEqual([]);
});
