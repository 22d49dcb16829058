import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const STORE = join(import.meta.dirname, '../../src/store');

/** The name under which a connection has a script: `claim-polls-2.lua` is `iwClaimPolls`. */
function commandOf(file: string): string {
  const words = file.replace(/-\d+\.lua$/, '').split('-');
  return `iw${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')}`;
}

test('every script has a typed command, and every command its script', async () => {
  const files = (await readdir(join(STORE, 'commands'))).filter((file) => file.endsWith('.lua'));
  const declared = [...(await readFile(join(STORE, 'commands.ts'), 'utf8')).matchAll(/^ {4}(iw\w+)\(/gm)];
  expect(files.length).toBeGreaterThan(50);
  expect(declared.map(([, name]) => name).sort()).toEqual(files.map(commandOf).sort());
});
