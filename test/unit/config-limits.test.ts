import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/config/file/load.ts';
import { LIMITS } from '../../src/domain/limits.ts';

/** Loads a config with one key above the limit. */
async function load(value: string, env: NodeJS.ProcessEnv = {}): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, `added: ${value}\n`);
  return loadConfig(file, env);
}

const { depth, textCharacters } = LIMITS.config;
const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;

test('a config that is nested deeper than 100 levels is refused', async () => {
  await expect(load(nested(depth + 1))).rejects.toThrow('nested too deeply');
  await expect(load(nested(depth))).rejects.not.toThrow('nested too deeply');
});

test('a text of more than a mebibyte is refused', async () => {
  const refusal = 'found a text of 1048577 characters, expected at most 1048576';
  await expect(load('x'.repeat(textCharacters + 1))).rejects.toThrow(refusal);
  await expect(load('x'.repeat(textCharacters))).rejects.not.toThrow(refusal);
});

test('an environment variable of more than 64 KiB is refused by its name alone', async () => {
  const refusal = /found \$\{LONG\}, which is longer than 65536 bytes/;
  await expect(load('${LONG}', { LONG: 'x'.repeat(65_537) })).rejects.toThrow(refusal);
  await expect(load('${LONG}', { LONG: 'x'.repeat(65_536) })).rejects.not.toThrow(refusal);
});
