import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { generateConfigFiles } from '../../scripts/generate/config.ts';
import { loadConfig } from '../../src/config/file/load.ts';

/** Represents the quote of the examples. */
const QUOTE = join(import.meta.dirname, '../fixtures/config/quotes/quote.json');
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

test('the examples of the configuration page make one config that loads', async () => {
  const page =
    (await generateConfigFiles()).find(({ path }) => path === 'docs/configuration.md')?.content ?? '';
  const examples = [...page.matchAll(/```yaml\n([^`]*)```/g)].map(([, yaml = '']) => yaml);
  // The last one is the whole example file; those of receivers are one list.
  const sections = examples
    .slice(0, -1)
    .join('')
    .replace(/^receivers:\n(?=[\s\S]*^receivers:\n)/gm, 'LIST')
    .replace(/^receivers:\n/m, '')
    .replace('LIST', 'receivers:\n')
    .replaceAll('LIST', '');
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-config-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'sections.yaml');
  await writeFile(file, sections);
  await copyFile(QUOTE, join(folder, 'quote.json'));
  const config = await loadConfig(file, {
    UPSTREAM_API_KEY: 'key-1',
    REDIS_URL: 'redis://127.0.0.1',
    INTENTWATCH_TOKEN: 'token-of-16-char',
    WEBHOOK_SECRET: SECRET,
    DATABASE_URL: 'postgres://daemon:password@db.example.com:5432/shop',
    BASE_RPC_URL: 'https://base.example.com/v1/key-1',
    BASE_OTHER_RPC_URL: 'https://base.example.net/v1/key-2',
  });
  expect(config.receivers.map(({ name }) => name)).toEqual(['backend', 'oncall', 'warehouse']);
  expect(config.subscriptions).toHaveLength(3);
});

test('every key of the editor schema is described', async () => {
  const files = await generateConfigFiles();
  const schema: unknown = JSON.parse(files.find(({ path }) => path === 'config/schema.json')?.content ?? '');
  const undescribed: string[] = [];
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'properties' && typeof inner === 'object' && inner !== null) {
        for (const [name, field] of Object.entries(inner)) {
          const described = typeof field === 'object' && field !== null && 'description' in field;
          if (!described) undescribed.push(`${path}.${name}`);
        }
      }
      visit(inner, `${path}.${key}`);
    }
  };
  visit(schema, '');
  expect(undescribed).toEqual([]);
});

test('the editor schema accepts a variable in place of a number or a value of a list', async () => {
  const files = await generateConfigFiles();
  const schema = JSON.parse(files.find(({ path }) => path === 'config/schema.json')?.content ?? '');
  const { port } = schema.properties.server.properties;
  expect(port).toMatchObject({
    default: 9464,
    anyOf: [{ type: 'integer', maximum: 65_535 }, { type: 'string' }],
  });
  expect('${PORT:-9464}').toMatch(new RegExp(port.anyOf[1].pattern));
});
