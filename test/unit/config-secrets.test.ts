import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { ConfigError } from '../../src/config/file/errors.ts';
import { loadConfig } from '../../src/config/file/load.ts';

const valid = join(import.meta.dirname, '../fixtures/config/valid/every-key.yaml');

const SECRETS = {
  KEY: 'Zkey-9b1f',
  REDIS_PASSWORD: 'Zredis-7c2e',
  TOKEN: 'Ztoken-33aa-44bb',
  SMTP_URL: 'smtp://Zuser-0d:Zpass-1e@mail.example.com',
  HOOK_URL: 'http://10.0.0.8/Zhook-77?Ztoken=1',
  RPC_URL: 'https://node.example.com/v2/Zrpc-88?key=Zrpc-89',
  SECRET_NEW: 'whsec_ZfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  SECRET_OLD: 'whsec_ZxyQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  HEADER: 'Zheader-5b',
  PROXY: 'http://Zproxy-01:Zproxy-02@proxy.example.com:3128',
  PROXY_PASSWORD: 'Zproxy-03',
};
const ENV = { ...SECRETS, PRIVATE: 'true', CHAIN: '10', ORDER: '1042' };

function expectNoSecret(text: string): void {
  for (const secret of [
    'Zkey',
    'Zredis',
    'Ztoken',
    'Zuser',
    'Zpass',
    'Zhook',
    'Zrpc',
    'Zheader',
    'Zproxy',
    'ZfKQ',
    'ZxyQ',
  ]) {
    expect(text).not.toContain(secret);
  }
}

test('a loaded config shows no secret, however it is printed', async () => {
  const config = await loadConfig(valid, ENV);
  expect(config.upstream.apiKey?.reveal()).toBe(SECRETS.KEY);
  expectNoSecret(JSON.stringify(config));
  expectNoSecret(inspect(config, { depth: null, showHidden: true, getters: true }));
  expectNoSecret(String(config.receivers.map((receiver) => Object.values(receiver).map(String))));
});

test('names a variable that is set and empty', async () => {
  await expect(loadConfig(valid, { ...ENV, RPC_URL: '' })).rejects.toThrow(
    /found an empty value from \$\{RPC_URL\}, expected a URL like/,
  );
});

test('errors show no value of a variable and no value of a secret field, for any mistake', async () => {
  const lines = (await readFile(valid, 'utf8')).replaceAll(/\$\{(\w+)\}/g, literalOrVariable).split('\n');
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-config-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'broken.yaml');
  const junk = fc.constantFrom(
    ': ',
    ' "',
    "'",
    '[',
    ']',
    '{',
    '}',
    '\t',
    '*',
    '!',
    '&',
    '- ',
    '#',
    '@',
    '${',
    '\n',
  );
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(fc.nat(lines.length - 1), fc.nat(60), junk, async (index, column, text) => {
      const line = lines[index] ?? '';
      const changed = lines.with(index, line.slice(0, column) + text + line.slice(column));
      await writeFile(file, changed.join('\n'));
      const outcome = await loadConfig(file, ENV).catch((error: unknown) => error);
      if (outcome instanceof ConfigError) {
        refused += 1;
        expectNoSecret(outcome.message);
        expectNoSecret(inspect(outcome, { depth: null }));
      } else if (outcome instanceof Error) {
        throw outcome;
      }
    }),
    { numRuns: 200 },
  );
  expect(refused).toBeGreaterThan(50);
});

/** Half of the secrets are literals in the file. */
function literalOrVariable(reference: string, name: string): string {
  const literals: Record<string, string> = {
    KEY: SECRETS.KEY,
    TOKEN: SECRETS.TOKEN,
    HOOK_URL: SECRETS.HOOK_URL,
    SECRET_OLD: SECRETS.SECRET_OLD,
  };
  return literals[name] ?? reference;
}
