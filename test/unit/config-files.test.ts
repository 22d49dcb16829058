import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { ExpiringSecret } from '../../src/config/fields/signing-secret.ts';
import { ConfigFile } from '../../src/config/file/config-file.ts';
import { ConfigError } from '../../src/config/file/errors.ts';
import { loadConfig } from '../../src/config/file/load.ts';
import { signatureHeader } from '../../src/notifiers/webhook/webhook.ts';

const minimal = join(import.meta.dirname, '../fixtures/config/valid/minimal.yaml');
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OLD = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';

/** Loads the minimal config with another API key and other secrets, beside files. */
async function load(
  { apiKey = 'key-1', secrets = `[${SECRET}]` }: { apiKey?: string; secrets?: string },
  files: Record<string, string | Uint8Array> = {},
): Promise<Config | ConfigError> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-config-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'secrets'));
  for (const [name, content] of Object.entries(files))
    await writeFile(join(folder, 'secrets', name), content);
  const file = join(folder, 'intentwatch.yaml');
  const text = await readFile(minimal, 'utf8');
  await writeFile(file, text.replace('key-1', apiKey).replace(`[${SECRET}]`, secrets));
  return loadConfig(file, {}).catch((error: unknown) => {
    if (error instanceof ConfigError) return error;
    throw error;
  });
}

function refused(outcome: Config | ConfigError): string {
  if (!(outcome instanceof ConfigError)) throw new Error('expected a ConfigError');
  return outcome.problems
    .map(({ line, column, path, message }) => `${line}:${column} ${path} ${message}`)
    .join('; ');
}

test('a large config that is read again, in a thread, is the same, with its secrets', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-config-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'intentwatch.yaml');
  const padding = '# a line without any value\n'.repeat(3_000);
  const text = await readFile(minimal, 'utf8');
  await writeFile(
    file,
    `${padding}${text.replace(`[${SECRET}]`, `["\${NEW}", { secret: ${OLD}, until: 2036-01-01T00:00:00Z }]`)}`,
  );
  const source = new ConfigFile(file, { NEW: SECRET });
  const [first, second] = [await source.load(), await source.load()];
  expect(second).toEqual(first);
  const [receiver] = second.receivers;
  if (receiver?.type !== 'webhook') throw new Error('expected the webhook of the file');
  expect(second.upstream.apiKey?.reveal()).toBe('key-1');
  expect(receiver.url.reveal()).toMatch(/^https:/);
  expect(receiver.secrets.map((secret) => secret.reveal())).toEqual([SECRET, OLD]);
  expect(receiver.secrets[1]).toMatchObject({ untilMs: Date.UTC(2036, 0, 1) });
  expect(receiver.secrets[1]).toBeInstanceOf(ExpiringSecret);
  await writeFile(file, `${padding}upstream: [`);
  await expect(source.load()).rejects.toThrow(ConfigError);
  expect(source.check()).toBe('same');
});

describe('a value from a file', () => {
  test.each([
    ['without a line break', 'hidden-4711'],
    ['with one', 'hidden-4711\n'],
    ['with one of Windows', 'hidden-4711\r\n'],
  ])('is the content of the file, %s', async (_, content) => {
    const config = await load({ apiKey: '${file:secrets/key}' }, { key: content });
    if (config instanceof ConfigError) throw config;
    expect(config.upstream.apiKey?.reveal()).toBe('hidden-4711');
  });

  test.each([
    ['does not exist', {}, 'which does not exist'],
    ['is empty', { key: '\n' }, 'which is empty'],
    ['is no text', { key: Uint8Array.of(0xff, 0xfe) }, 'which is no text in UTF-8'],
    ['is too large', { key: 'x'.repeat(65_537) }, 'which is larger than 65536 bytes'],
  ])('is refused with its place where the file %s', async (_, files, reason) => {
    const message = refused(await load({ apiKey: '${file:secrets/key}' }, files));
    expect(message).toBe(
      `3:11 upstream.apiKey found \${file:secrets/key}, ${reason}, expected a file that holds the value`,
    );
  });

  test('is refused for a folder', async () => {
    expect(refused(await load({ apiKey: '${file:secrets}' }))).toContain('which cannot be read');
  });

  test('is not shown where it is wrong', async () => {
    const message = refused(await load({ secrets: '["${file:secrets/key}"]' }, { key: 'hidden-4711' }));
    expect(message).toContain('found a value from ${file:secrets/key}, expected a signing secret');
    expect(message).not.toContain('4711');
  });
});

describe('a signing secret with an end', () => {
  const until = Date.parse('2026-12-01T00:00:00Z');
  const sign = (config: Config, nowMs: number): string[] => {
    const [receiver] = config.receivers;
    if (receiver?.type !== 'webhook') throw new Error('expected a webhook');
    const content = { id: 'evt_1', timestampSeconds: nowMs / 1_000, body: Buffer.from('{}') };
    return signatureHeader(content, receiver.secrets).split(' ');
  };

  test('signs until then and no longer', async () => {
    const secrets = `["${SECRET}", { secret: "${OLD}", until: 2026-12-01T00:00:00Z }]`;
    const config = await load({ secrets });
    if (config instanceof ConfigError) throw config;
    expect(sign(config, until - 1_000)).toHaveLength(2);
    const after = sign(config, until);
    expect(after).toHaveLength(1);
    const alone = await load({ secrets: `["${SECRET}"]` });
    if (alone instanceof ConfigError) throw alone;
    expect(after).toEqual(sign(alone, until));
  });

  test.each([
    [
      'all of them end',
      `[{ secret: "${OLD}", until: 2026-12-01T00:00:00Z }]`,
      'found only secrets that end, expected one',
    ],
    [
      'the end is no time',
      `["${SECRET}", { secret: "${OLD}", until: tomorrow }]`,
      'expected a time with its zone',
    ],
    [
      'the end has no zone',
      `["${SECRET}", { secret: "${OLD}", until: 2026-12-01T00:00:00 }]`,
      'expected a time with its zone',
    ],
    ['the end is missing', `["${SECRET}", { secret: "${OLD}" }]`, 'expected a time with its zone'],
    [
      'one comes twice',
      `["${SECRET}", { secret: "${SECRET}", until: 2026-12-01T00:00:00Z }]`,
      'each signing secret once',
    ],
  ])('is refused where %s', async (_, secrets, reason) => {
    const message = refused(await load({ secrets }));
    expect(message).toContain(reason);
    expect(message).not.toContain('whsec_MfKQ');
    expect(message).not.toContain('whsec_C2FV');
  });
});
