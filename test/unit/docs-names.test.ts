import { readdir, readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { generatedFiles } from '../../scripts/generate.ts';
import { pages } from '../../scripts/sentences.ts';
import { EVENT_TYPES } from '../../src/domain/events/event-types.ts';
import { codeSpans } from '../support/markdown.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): Promise<string> => readFile(resolve(root, path), 'utf8');

test('docs/operations.md has the remedy of every alert, and of no other', async () => {
  const rules = z
    .object({ groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string().optional() })) })) })
    .parse(parse(await read('config/prometheus/rules.yml')));
  const alerts = rules.groups.flatMap((group) => group.rules.flatMap(({ alert }) => alert ?? []));
  const headings = [...(await read('docs/operations.md')).matchAll(/^### (Intentwatch\w+)$/gm)];
  expect(headings.map(([, name]) => name).sort()).toEqual(alerts.sort());
});

async function logLines(): Promise<Set<string>> {
  const entries = await readdir(resolve(root, 'src'), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.ts'));
  const sources = await Promise.all(
    files.map((entry) => readFile(resolve(entry.parentPath, entry.name), 'utf8')),
  );
  const call =
    /\b(?:log(?:\.(?:debug|info|warn|error)|\[[^\]]+\])|reportError)\(([^;]*?)'([a-z-]+\.[a-z_]+)'/g;
  return new Set(sources.flatMap((source) => [...source.matchAll(call)].map(([, , name = '']) => name)));
}

test('docs/logs.md has every line of the log, and no other', async () => {
  const rows = [...(await read('docs/logs.md')).matchAll(/^\| (`[^|]+`) \|/gm)];
  const reported = rows.flatMap(([, names = '']) =>
    [...names.matchAll(/`([a-z-]+\.[a-z_]+)`/g)].map(([, name]) => name),
  );
  expect(reported.sort()).toEqual([...(await logLines())].sort());
});

test('alerts name only log lines that exist', async () => {
  const rules = await read('config/prometheus/rules.yml');
  const named = [...rules.matchAll(/\blog lines? ([a-z-]+\.[a-z_]+)/g)].map(([, name = '']) => name);
  expect(named.length).toBeGreaterThan(10);
  const names = await logLines();
  expect(named.filter((name) => !names.has(name))).toEqual([]);
});

test('pages name only event types, keys of the config and log lines that exist', async () => {
  const keys = [...(await read('docs/configuration.md')).matchAll(/^\| `([\w.[\]-]+)` \|/gm)].map(
    ([, key]) => key,
  );
  const names = new Set([...EVENT_TYPES, ...(await logLines())]);
  const sections = ['upstream', 'redis', 'server', 'smtp', 'polling'];
  const pattern =
    /^(intent|quote|gasless|vault|route|upstream|receiver|redis|server|smtp|polling|poll|relay|delivery)\.[\w-]+$/;
  const generated = new Set((await generatedFiles()).map(({ name }) => name));
  const written = (await pages()).filter((path) => !generated.has(path));
  const texts = await Promise.all(written.map(async (path) => ({ path, text: await read(path) })));
  const wrong = texts.flatMap(({ path, text }) =>
    codeSpans(text)
      .filter((span) => pattern.test(span) && !names.has(span))
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
