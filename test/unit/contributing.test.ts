import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';

const ROOT = resolve(import.meta.dirname, '../..');
const CONTRIBUTING = await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8');

test('CONTRIBUTING.md names files and folders that exist', () => {
  const paths = [
    ...CONTRIBUTING.matchAll(
      /`((?:src|test|sandbox|demo|consumer|bench|config|docs|scripts|\.ci)\/[\w./-]*)`/g,
    ),
  ];
  const named = paths.map(([, path = '']) => path);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('CONTRIBUTING.md names scripts of package.json', async () => {
  const { scripts } = z
    .object({ scripts: z.record(z.string(), z.string()) })
    .parse(JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')));
  const named = [...CONTRIBUTING.matchAll(/npm run ([\w:]+)/g)].map(([, name = '']) => name);
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
});

test('the index lists every decision with the title of its page', async () => {
  const folder = join(ROOT, 'docs/decisions');
  const index = await readFile(join(folder, 'README.md'), 'utf8');
  const pages = (await readdir(folder)).filter((file) => file !== 'README.md');
  const rows = await Promise.all(
    pages.map(async (file) => {
      const [, title] = /^# (.+)$/m.exec(await readFile(join(folder, file), 'utf8')) ?? [];
      return `| [${title}](${file}) | `;
    }),
  );
  expect(rows.filter((row) => !index.includes(row))).toEqual([]);
});
