import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DAMAGES } from '../virtual/damages.ts';

const ROOT = join(import.meta.dirname, '../..');

test.each(DAMAGES)('the line that breaks "$rule" is in its file once', async ({ file, find, replace }) => {
  const text = await readFile(join(ROOT, file), 'utf8');
  expect(text.split(find)).toHaveLength(2);
  expect(replace).not.toBe(find);
});
