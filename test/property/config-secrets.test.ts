import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { ConfigError } from '../../src/config/file/errors.ts';
import { maskVariables } from '../../src/config/file/expand.ts';
import { loadConfig } from '../../src/config/file/load.ts';

/** Number of broken configs: 300 with a fresh seed, 1,000 in `npm run fuzz`. */
const RUNS = Number(process.env.FUZZ_RUNS ?? (process.env.FUZZ_SEED === undefined ? 60 : 300));

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
type Path = (string | number)[];

const valid = join(import.meta.dirname, '../fixtures/config/valid/every-key.yaml');
const quote = join(import.meta.dirname, '../fixtures/config/quotes/quote.json');

/** Each contains `Zqx` and a digit, which nothing else in a config does. */
const ENV = {
  KEY: 'Zqx1key-9b1f',
  PROXY: 'http://Zqx2user:Zqx3password@proxy.example.com:3128',
  PROXY_PASSWORD: 'Zqx4password',
  REDIS_PASSWORD: 'Zqx5password',
  TOKEN: 'Zqx6token-33aa-bb44',
  SMTP_URL: 'smtp://Zqx7user:Zqx8password@mail.example.com',
  HOOK_URL: 'http://10.0.0.8/Zqx9hook?token=Zqx9hook',
  SECRET_NEW: 'whsec_Zqx09r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  SECRET_OLD: 'whsec_Zqx19r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  HEADER: 'Zqx2header',
  RPC_URL: 'https://node.example.com/v2/Zqx4endpoint',
  PRIVATE: 'true',
  CHAIN: '10',
  ORDER: '1042',
};

const FORMS = [
  'redis://user:Zqx3pass@redis.example.com:6379',
  'whsec_Zqx49r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  'whsk_Zqx59r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  'Bearer Zqx6bearer',
  'https://hooks.slack.com/services/T0/B0/Zqx7slack',
];
const PLAIN = 'Zqx8plainword';
const SECRET = /Zqx\d/;

/** Places where a scalar may be a secret: the value, and each section around it. */
const PLACES: Path[] = [
  ['upstream'],
  ['upstream', 'apiKey'],
  ['upstream', 'proxy'],
  ['redis'],
  ['redis', 'url'],
  ['server'],
  ['server', 'token'],
  ['smtp'],
  ['smtp', 'url'],
  ['chains', '8453', 'rpc', 0],
  ['chains', '8453', 'rpc', 0, 'url'],
  ['chains', '8453', 'rpc', 0, 'headers', 'Authorization'],
  ['receivers'],
  ['receivers', 0],
  ['receivers', 0, 'url'],
  ['receivers', 0, 'proxy'],
  ['receivers', 0, 'secrets'],
  ['receivers', 0, 'secrets', 0],
  ['receivers', 0, 'headers'],
  ['receivers', 0, 'headers', 'X-Team'],
];

const SHAPES: [string, (secret: string) => Json][] = [
  ['as it is', (secret) => secret],
  ['in a list', (secret) => [secret]],
  ['in a list of lists', (secret) => [[secret]]],
  ['as the key of a mapping', (secret) => ({ [secret]: null })],
  ['as a key with a value', (secret) => ({ [secret]: 'x' })],
  ['behind a key without a space', (secret) => ({ [`url:${secret}`]: null })],
  ['under an unknown key', (secret) => ({ value: secret })],
  ['in a list of mappings', (secret) => [{ value: secret }, { [secret]: null }]],
];

async function config(): Promise<{ tree: Json; load: (tree: Json) => Promise<string> }> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-config-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'broken.yaml');
  const text = (await readFile(valid, 'utf8')).replace('../quotes/quote.json', quote);
  const { masked, unmask } = maskVariables(text);
  return {
    tree: JSON.parse(unmask(JSON.stringify(parse(masked)))),
    load: async (tree) => {
      await writeFile(file, stringify(tree));
      const outcome = await loadConfig(file, ENV).catch((error: unknown) => error);
      if (outcome instanceof ConfigError) {
        return `${outcome.message}\n${inspect(outcome, { depth: null })}`.replaceAll(folder, '');
      }
      if (outcome instanceof Error) throw outcome;
      return '';
    },
  };
}

function withValue(tree: Json, path: Path, value: Json): Json {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (Array.isArray(tree))
    return tree.map((item, index) => (index === key ? withValue(item, rest, value) : item));
  if (typeof tree !== 'object' || tree === null) return tree;
  return { ...tree, [key]: withValue(tree[key] ?? null, rest, value) };
}

function pathsOf(tree: Json, path: Path = []): Path[] {
  const entries: [string | number, Json][] = Array.isArray(tree)
    ? tree.map((item, index) => [index, item])
    : typeof tree === 'object' && tree !== null
      ? Object.entries(tree)
      : [];
  return [path, ...entries.flatMap(([key, value]) => pathsOf(value, [...path, key]))];
}

describe('a secret in the place of a section is not printed', () => {
  test.each(SHAPES)('%s', async (_, shape) => {
    const { tree, load } = await config();
    const secrets = [PLAIN, ...FORMS];
    for (const [index, path] of PLACES.entries()) {
      // Each place with a text and one form, so that all forms come by turns; with `FUZZ_SEED` each with each.
      const some = [PLAIN, FORMS[index % FORMS.length] ?? PLAIN];
      for (const secret of process.env.FUZZ_SEED === undefined ? some : secrets) {
        const message = await load(withValue(tree, path, shape(secret)));
        expect(
          message.split('\n').filter((line) => SECRET.test(line)),
          path.join('.'),
        ).toEqual([]);
      }
    }
  });
});

test(`${RUNS} broken configs print no secret and crash nothing`, async () => {
  const { tree, load } = await config();
  const paths = pathsOf(tree).filter((path) => path.length > 0);
  const shape = fc.constantFrom(...SHAPES.map(([, one]) => one));
  // A secret by form or value is hidden everywhere; a secret by place only in that place.
  const values = fc.constantFrom(...FORMS, ...Object.values(ENV).filter((value) => SECRET.test(value)));
  const anywhere = fc.tuple(fc.constantFrom(...paths), values, shape);
  const inPlace = fc.tuple(fc.constantFrom(...PLACES), fc.oneof(fc.constant(PLAIN), values), shape);
  const junk = fc.tuple(
    fc.constantFrom(...paths),
    fc.constant(''),
    fc.jsonValue().map((value) => () => value as Json),
  );
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(anywhere, inPlace, junk), { minLength: 1, maxLength: 3 }),
      async (slips) => {
        const broken = slips.reduce((all, [path, secret, make]) => withValue(all, path, make(secret)), tree);
        // A key of the environment is a secret only where a value of the file uses it.
        const message = await load(
          withValue(
            broken,
            ['chains'],
            Object.keys(ENV).map((name) => `\${${name}}`),
          ),
        );
        refused += message.includes('found') ? 1 : 0;
        expect(message.split('\n').filter((line) => SECRET.test(line))).toEqual([]);
      },
    ),
    { numRuns: RUNS },
  );
  expect(refused).toBe(RUNS);
});
