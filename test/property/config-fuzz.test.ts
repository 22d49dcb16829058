import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { ConfigError } from '../../src/config/file/errors.ts';
import { loadConfig } from '../../src/config/file/load.ts';

/** Number of generated files; `npm run fuzz` makes 1,000. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 150);

const valid = join(import.meta.dirname, '../fixtures/config/valid/every-key.yaml');
const quote = join(import.meta.dirname, '../fixtures/config/quotes/quote.json');

/** Any seven consecutive characters of a secret contain this mark, and nothing else in a config does. */
const MARK = /zqx\d/i;
const marked = (digit: number): string => `Zqx${digit}`.repeat(8);

/** Half of the secrets come from the environment, the others are in the file. */
const ENV = {
  KEY: marked(1),
  PROXY: `http://${marked(2)}:${marked(3)}@proxy.example.com:3128`,
  SMTP_URL: `smtp://${marked(4)}:${marked(5)}@mail.example.com`,
  SECRET_NEW: `whsec_${marked(6)}`,
  PRIVATE: 'true',
  CHAIN: '10',
  ORDER: '1042',
  RPC_URL: `https://node.example.com/v2/${marked(10)}`,
};
const WRITTEN: Readonly<Record<string, string>> = {
  REDIS_PASSWORD: marked(7),
  TOKEN: `sk_live_${marked(8)}`,
  HOOK_URL: `http://10.0.0.8/hook?token=${marked(9)}`,
  SECRET_OLD: `whsec_${marked(0)}`,
  HEADER: marked(1),
  PROXY_PASSWORD: marked(2),
};

/** Texts that are secrets by their form, in any place. */
const SECRETS = [
  `redis://user:${marked(3)}@redis.example.com:6379`,
  `whsk_${marked(4)}`,
  `Bearer ${marked(5)}`,
  `https://hooks.slack.com/services/T0/B0/${marked(6)}`,
  `{ token: ${WRITTEN.TOKEN} }`,
  `[${WRITTEN.SECRET_OLD}, [${WRITTEN.SECRET_OLD}]]`,
  '${KEY}',
  '${KEY}${KEY}',
  '${NONE:-${KEY}}',
];

/** Values of a slip, of an attack, or of another kind of file. */
const VALUES = [
  ...[
    '',
    '~',
    'null',
    'true',
    'no',
    '0',
    '-1',
    '1e400',
    '.nan',
    '.inf',
    '0x1F',
    '0o17',
    '1_000',
    '2026-11-20',
  ],
  ...[
    '[]',
    '{}',
    '[[]]',
    '[{}]',
    '{ a: 1 }',
    '- a',
    '? a',
    '? [a]\n  : b',
    '"',
    "'",
    '|',
    '>-',
    '|2',
    '@',
    '`',
    '%',
    '#',
  ],
  ...[
    '!!binary AAEC',
    '!!set { a }',
    '!!js/function x',
    '!<tag:a> b',
    '! ',
    '&a',
    '*a',
    '&a *a',
    '&a [*a]',
    '&a { <<: *a }',
  ],
  ...[
    '${',
    '${}',
    '${NONE}',
    '$${KEY}',
    '${file:/nowhere}',
    '${file:.}',
    '${file:/dev/zero}',
    '${ KEY }',
    '${KEY',
  ],
  ...[
    '\u0000',
    '\u001b[2J',
    '\ufeff',
    '\u202e',
    '\ud800',
    '\u2028',
    '\t',
    'é'.repeat(300),
    'x'.repeat(20_000),
  ],
  ...[
    '['.repeat(3_000),
    '{a: '.repeat(500),
    '- '.repeat(2_000),
    '__proto__: 1',
    '{ __proto__: { a: 1 } }',
    'constructor: 1',
  ],
];

type Slip = (lines: string[]) => string[];

const at = fc.nat(1_000);
const onLine =
  (index: number, change: (line: string) => string): Slip =>
  (lines) =>
    lines.map((line, number) => (number === index % lines.length ? change(line) : line));
const value = fc.oneof(fc.constantFrom(...VALUES), fc.constantFrom(...SECRETS));
const withValue = (line: string, text: string): string =>
  line.replace(/^(\s*(?:- )?(?:\w+: ?)?).*$/s, (_, start) => `${start}${text}`);

const slip: fc.Arbitrary<Slip> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(at, value).map(([index, text]) => onLine(index, (line) => withValue(line, text))),
  },
  // Within the line: after a bracket, a comma, a colon or a quote.
  fc.tuple(at, at, value).map(([index, place, text]) =>
    onLine(index, (line) => {
      const places = [...line.matchAll(/[[{,:"] ?/g)].map((match) => match.index + match[0].length);
      const column = places.length === 0 ? line.length : (places[place % places.length] ?? 0);
      return `${line.slice(0, column)}${text}${line.slice(column)}`;
    }),
  ),
  fc.tuple(at, value).map(([index, key]) => onLine(index, (line) => line.replace(/\w+(?=:)/, key))),
  fc
    .tuple(at, at, fc.constantFrom(...' \t:-"\'[]{}&*!|>#?,\n'))
    .map(([index, column, mark]) =>
      onLine(
        index,
        (line) =>
          `${line.slice(0, column % (line.length + 1))}${mark}${line.slice(column % (line.length + 1))}`,
      ),
    ),
  fc
    .tuple(at, fc.constantFrom(-4, -2, 2, 4))
    .map(([index, by]) =>
      onLine(index, (line) =>
        by > 0 ? ' '.repeat(by) + line : line.replace(new RegExp(`^ {1,${-by}}`), ''),
      ),
    ),
  at.map((index) => (lines: string[]) => lines.filter((_, number) => number !== index % lines.length)),
  at.map(
    (index) => (lines: string[]) =>
      lines.flatMap((line, number) => (number === index % lines.length ? [line, line] : [line])),
  ),
  fc.tuple(at, at).map(([from, to]) => (lines: string[]) => {
    const [moved = ''] = lines.slice(from % lines.length, (from % lines.length) + 1);
    return lines.toSpliced(from % lines.length, 1).toSpliced(to % lines.length, 0, moved);
  }),
  // An anchor here, its alias there.
  fc.tuple(at, at, fc.constantFrom('*x', '<<: *x', '[*x, *x]', '{ *x : 1 }')).map(
    ([from, to, alias]) =>
      (lines: string[]) =>
        onLine(to, (line) => withValue(line, alias))(
          onLine(from, (line) => line.replace(/^(\s*(?:- )?\w+: )/, '$1&x '))(lines),
        ),
  ),
  at.map((index) => (lines: string[]) => lines.slice(0, index % lines.length)),
  fc
    .constantFrom('---', '%YAML 1.1\n---', '\ufeff', '...')
    .map((head) => (lines: string[]) => [head, ...lines]),
);

/** The bytes of a file: text, or text that a program has written wrongly. */
const encode = fc.oneof(
  { weight: 12, arbitrary: fc.constant((text: string) => Buffer.from(text)) },
  { weight: 1, arbitrary: fc.constant((text: string) => Buffer.from(text.replaceAll('\n', '\r\n'))) },
  { weight: 1, arbitrary: fc.constant((text: string) => Buffer.from(text, 'utf16le')) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(at, fc.uint8Array({ minLength: 1, maxLength: 20 }))
      .map(([index, bytes]) => (text: string) => {
        const all = Buffer.from(text);
        const place = (index * 7) % all.length;
        return Buffer.concat([all.subarray(0, place), bytes, all.subarray(place)]);
      }),
  },
);

test(`${RUNS} made-up files are read, or refused with the place of each slip, and print no secret`, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-config-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'fuzzed.yaml');
  const text = (await readFile(valid, 'utf8'))
    .replace('../quotes/quote.json', quote)
    .replaceAll(/\$\{(\w+)\}/g, (reference, name: string) => WRITTEN[name] ?? reference);
  await writeFile(file, text);
  await loadConfig(file, ENV);
  let refused = 0;
  const files = fc
    .array(slip, { minLength: 1, maxLength: 3 })
    .map((slips) => slips.reduce((lines, change) => change(lines), text.split('\n')).join('\n'));
  await fc.assert(
    fc.asyncProperty(files, encode, async (changed, bytesOf) => {
      await writeFile(file, bytesOf(changed));
      const outcome = await loadConfig(file, ENV).catch((error: unknown) => error);
      if (!(outcome instanceof Error)) return;
      if (!(outcome instanceof ConfigError)) throw outcome;
      refused += 1;
      expect(outcome.problems.length).toBeGreaterThan(0);
      for (const { file: named, line, column, message } of outcome.problems) {
        expect([named, line >= 1, column >= 1]).toEqual([file, true, true]);
        expect(message).toMatch(/^found .*, expected /s);
      }
      const text = `${outcome.message}\n${outcome.stack}\n${inspect(outcome, { depth: null })}`.replaceAll(
        folder,
        '',
      );
      expect(text.split('\n').filter((line) => MARK.test(line))).toEqual([]);
    }),
    { numRuns: RUNS },
  );
  expect(refused).toBeGreaterThan(RUNS / 2);
});
