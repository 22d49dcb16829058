import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');

/** Name of a source file in a comment: `store/lease.ts`, `commit-12.lua`. */
const NAMED = /(?<![\w/.'"`*-])(?:[\w-]+\/)*[\w-]+\.(?:ts|lua)\b/g;

test('comments of the sources name only files that exist', async () => {
  const files: string[] = [];
  for (const folder of ['src', 'sandbox', 'demo', 'consumer/src', 'test', 'scripts', 'bench'])
    for await (const path of glob(`${folder}/**/*.{ts,lua}`, { cwd: ROOT })) files.push(path);
  const names = new Set(files.map((path) => basename(path)));
  const wrong = files.flatMap((path) =>
    readFileSync(resolve(ROOT, path), 'utf8')
      .split('\n')
      .filter((line) => /^\s*(?:\/?\*|\/\/|--)/.test(line))
      .flatMap((line) => line.match(NAMED) ?? [])
      .filter((name) => (name.includes('/') ? !files.some((file) => file.endsWith(name)) : !names.has(name)))
      .map((name) => `${path} names ${name}`),
  );
  expect(files.length).toBeGreaterThan(500);
  expect(wrong).toEqual([]);
});
