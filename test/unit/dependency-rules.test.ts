import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { findImpurities } from '../../scripts/check.ts';
import { findUphill } from '../../scripts/flow.ts';

const root = resolve(import.meta.dirname, '../..');

const DOMAIN = 'src/domain imports nothing but itself';
const EVM = 'src/domain/evm.ts loads viem, and imports nothing else';
const REDIS = 'Only src/store and src/queues touch Redis';
const BULLMQ = 'Only src/queues uses BullMQ';
const METRICS = 'Nothing imports metrics to decide anything';
const APART = 'Pollers and notifiers never import each other';
const SANDBOX = 'The sandbox is a program of its own';

/** A file in src, or of the sandbox; its import, and the rule that forbids it. */
const FORBIDDEN: [file: string, imported: string, rule: string][] = [
  ['domain/a.ts', 'node:fs', DOMAIN],
  ['domain/a.ts', 'fs', DOMAIN],
  ['domain/a.ts', 'ioredis', DOMAIN],
  ['domain/a.ts', 'viem/accounts', DOMAIN],
  ['domain/a.ts', 'viem/utils', DOMAIN],
  ['domain/evm.ts', 'viem/accounts', EVM],
  ['domain/a.ts', 'node:crypto', DOMAIN],
  ['domain/cadence/a.ts', 'node:crypto', DOMAIN],
  ['domain/a.ts', '../config/config.ts', DOMAIN],
  ['domain/a.ts', './../config/config.ts', DOMAIN],
  ['domain/a.ts', './cadence/../../config/config.ts', DOMAIN],
  ['domain/cadence/a.ts', '../../config/config.ts', DOMAIN],
  ['domain/cadence/a.ts', '../cadence/../../config/config.ts', DOMAIN],
  ['domain/cadence/a.ts', 'undici', DOMAIN],
  ['pollers/a.ts', '../notifiers/notifier.ts', APART],
  ['pollers/a.ts', '../notifiers/webhook/send.ts', APART],
  ['notifiers/a.ts', '../pollers/intent.ts', APART],
  ['notifiers/webhook/a.ts', '../../pollers/intent.ts', APART],
  ['main.ts', './metrics/metrics.ts', METRICS],
  ['notifiers/email/a.ts', '../../metrics/metrics.ts', METRICS],
  ...[
    'config/a.ts',
    'upstream/a.ts',
    'pollers/a.ts',
    'notifiers/a.ts',
    'store/a.ts',
    'queues/a.ts',
    'another/a.ts',
  ].map((file): [string, string, string] => [file, '../metrics/metrics.ts', METRICS]),
  ...[
    'main.ts',
    'config/a.ts',
    'upstream/a.ts',
    'pollers/a.ts',
    'notifiers/a.ts',
    'notifiers/email/a.ts',
    'server/a.ts',
    'metrics/a.ts',
    'another/a.ts',
  ].flatMap((file): [string, string, string][] => [
    [file, 'ioredis', REDIS],
    [file, 'ioredis/built/utils', REDIS],
    [file, 'bullmq', REDIS],
  ]),
  ['store/a.ts', 'bullmq', BULLMQ],
  ['sandbox/a.ts', '../src/domain/json.ts', SANDBOX],
  ['sandbox/a.ts', './../src/upstream/wire/wire.ts', SANDBOX],
  ['sandbox/a.ts', '../demo/receiver.ts', SANDBOX],
  ['sandbox/endpoints/a.ts', '../../src/exit.ts', SANDBOX],
  ['sandbox/endpoints/a.ts', 'ioredis', SANDBOX],
  ['sandbox/endpoints/a.ts', 'bullmq', SANDBOX],
];

const ALLOWED: [file: string, imported: string][] = [
  ['domain/a.ts', './subjects/subject.ts'],
  ['domain/a.ts', './cadence/stages.ts'],
  ['domain/a.ts', 'zod'],
  ['domain/a.ts', 'viem'],
  ['domain/evm.ts', 'node:module'],
  ['domain/cadence/a.ts', '../subjects/subject.ts'],
  ['domain/cadence/a.ts', './stages.ts'],
  ['pollers/a.ts', '../upstream/client.ts'],
  ['notifiers/webhook/a.ts', '../../domain/events/event.ts'],
  ['store/a.ts', 'ioredis'],
  ['queues/a.ts', 'ioredis'],
  ['queues/a.ts', 'bullmq'],
  ['server/a.ts', '../metrics/metrics.ts'],
  ['commands/a.ts', '../metrics/metrics.ts'],
  ['commands/a.ts', 'ioredis'],
  ['daemon/a.ts', '../metrics/metrics.ts'],
  ['daemon/a.ts', 'bullmq'],
  ['sandbox/a.ts', 'fastify'],
  ['sandbox/endpoints/a.ts', '../world/world.ts'],
];

/** The forms of an import, each on one line. */
const FORMS: ((imported: string, name: string) => string)[] = [
  (imported, name) => `import { ${name} } from '${imported}';`,
  (imported, name) => `import type { ${name} } from '${imported}';`,
  (imported, name) => `export { ${name} } from '${imported}';`,
  (imported) => `import '${imported}';`,
  (imported, name) => `export const ${name} = await import('${imported}');`,
];

const biomeReport = z.object({
  diagnostics: z.array(
    z.object({
      category: z.string(),
      message: z.string(),
      location: z.object({ path: z.string(), start: z.object({ line: z.number() }) }),
    }),
  ),
});

const placeOf = (file: string): string => (file.startsWith('sandbox/') ? file : join('src', file));

/** Biome's findings about imports and globals by `<file>:<line>`, the file as in the tables. */
type Findings = Map<string, string>;

/** Runs Biome with this repository's rules over planted files: path within src → lines. */
async function lint(planted: Map<string, string[]>): Promise<Findings> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-rules-'));
  try {
    await copyFile(join(root, 'biome.json'), join(folder, 'biome.json'));
    for (const [file, lines] of planted) {
      await mkdir(dirname(join(folder, placeOf(file))), { recursive: true });
      await writeFile(join(folder, placeOf(file)), `${lines.join('\n')}\n`);
    }
    const output = await new Promise<string>((done) => {
      const args = ['lint', '--reporter=json', '--max-diagnostics=none', '.'];
      execFile(
        join(root, 'node_modules/.bin/biome'),
        args,
        { cwd: folder, maxBuffer: 2 ** 26 },
        (_error, stdout) => done(stdout),
      );
    });
    const findings: Findings = new Map();
    for (const { category, message, location } of biomeReport.parse(JSON.parse(output)).diagnostics) {
      if (!category.startsWith('lint/style/noRestricted')) continue;
      findings.set(`${location.path.replace(/^src\//, '')}:${location.start.line}`, message);
    }
    return findings;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Plants every import of a table in every form; returns Biome's finding on each form of each import. */
async function lintImports(table: { file: string; imported: string }[]): Promise<(string | undefined)[][]> {
  const planted = new Map<string, string[]>();
  const places = table.map(({ file, imported }) => {
    const lines = planted.get(file) ?? [];
    planted.set(file, lines);
    return FORMS.map((form) => `${file}:${lines.push(form(imported, `name${lines.length}`))}`);
  });
  const findings = await lint(planted);
  return places.map((forms) => forms.map((place) => findings.get(place)));
}

describe('dependency rules', () => {
  test('refuses every import that points the wrong way, in every form', async () => {
    const lines = await lintImports(FORBIDDEN.map(([file, imported]) => ({ file, imported })));
    const wrong = FORBIDDEN.flatMap(([file, imported, rule], index) =>
      (lines[index] ?? []).flatMap((message, form) =>
        message?.startsWith(rule) ? [] : [{ file, code: FORMS[form]?.(imported, 'name'), rule, message }],
      ),
    );
    expect(wrong).toEqual([]);
  });

  test('lets every import pass that points the right way, in every form', async () => {
    const lines = await lintImports(ALLOWED.map(([file, imported]) => ({ file, imported })));
    const wrong = ALLOWED.flatMap(([file, imported], index) =>
      (lines[index] ?? []).flatMap((message, form) =>
        message === undefined ? [] : [{ file, code: FORMS[form]?.(imported, 'name'), message }],
      ),
    );
    expect(lines).toHaveLength(ALLOWED.length);
    expect(wrong).toEqual([]);
  });

  test('refuses the environment, clocks and randomness as globals in the domain, and only there', async () => {
    const code = [
      'process.env',
      'performance.now()',
      'crypto.randomUUID()',
      'globalThis.Date',
      'setTimeout(run, 1)',
    ];
    const lines = code.map((expression, index) => `export const name${index} = ${expression};`);
    const files = ['domain/a.ts', 'domain/cadence/a.ts', 'config/a.ts'];
    const findings = await lint(new Map(files.map((file) => [file, lines])));
    const expected = ['domain/a.ts', 'domain/cadence/a.ts'].flatMap((file) =>
      lines.map((_line, index) => `${file}:${index + 1}`),
    );
    expect([...findings.keys()].sort()).toEqual(expected.sort());
  });
});

describe('clocks and randomness in the domain', () => {
  test.each([
    'const now = Date.now();',
    'const now = Date . now ( );',
    'const now = new Date();',
    'const now = new Date;',
    'const now = Date();',
    'const dice = Math.random();',
    'const { now } = Date;',
    'const clock = Date;\n',
    'const { random } = Math',
    "const text = '// no comment'; const now = Date.now();",
  ])('finds %j', (source) => {
    expect(findImpurities(source)).toHaveLength(1);
  });

  test.each([
    'const text = new Date(nowMs).toISOString();',
    'const ms = Date.parse(text) + Date.UTC(2026, 0);',
    'const whole = Math.floor(amount);',
    '// Date.now() would be a clock',
    '/* new Date() and\n * Math.random() */',
    'function toDate(value: Date): string {}',
  ])('passes %j', (source) => {
    expect(findImpurities(source)).toEqual([]);
  });

  test('states its line', () => {
    expect(findImpurities('/* a\n comment */\nconst a = 1;\nconst b = Date.now();\n')).toEqual([
      { line: 4, found: 'Date.now' },
    ]);
  });
});

describe('imports', () => {
  test.each([
    ['queues/polls/a.ts', "import { b } from '../../store/b.ts';", []],
    ['queues/polls/a.ts', "import { b } from '../deliveries/b.ts';", []],
    ['queues/polls/a.ts', "import { z } from 'zod';", []],
    ['queues/polls/a.ts', "import type { B } from '../../daemon/b.ts';", ['daemon/b.ts']],
    ['store/a.ts', "import {\n  b,\n  c,\n} from '../queues/b.ts';", ['queues/b.ts']],
    ['store/a.ts', "export { b } from '../upstream/b.ts';", ['upstream/b.ts']],
    ['client/a.ts', "const { b } = await import('../commands/b.ts');", ['commands/b.ts']],
    ['commands/a.ts', "const { b } = await import('../client/b.ts');", []],
    ['commands/commands.ts', "const { b } = await import('../../demo/command.ts');", []],
    ['commands/commands.ts', "const { b } = await import('../../demo/run.ts');", ['../demo/run.ts']],
    ['daemon/a.ts', "import { b } from '../../sandbox/command.ts';", ['../sandbox/command.ts']],
    ['redact.ts', "import { b } from './secret.ts';", []],
    ['secret.ts', "import { b } from './redact.ts';", ['redact.ts']],
    ['somewhere/a.ts', "import { b } from '../domain/b.ts';", ['domain/b.ts']],
  ])('of %s by %j against the flow: %j', (path, text, expected) => {
    expect(findUphill(new Map([[path, text]])).map(({ to }) => to)).toEqual(expected);
  });
});
