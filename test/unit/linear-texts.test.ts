import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { baseUrlField } from '../../src/config/fields/http.ts';
import { readTlsFiles } from '../../src/config/fields/tls.ts';
import { isWrittenAsSecret } from '../../src/config/file/expand.ts';
import { withoutAddresses } from '../../src/notifiers/printable.ts';

// An expression that restarts at each character would exceed the timeout of any test on each text.
const LENGTH = 1_000_000;
const REPEATED = ['a', 'a:', '?', '&', 'a.', '://', 'a@', ':@', 'key', '=', ' '];

test.each(REPEATED)('a text that repeats %j is judged as a secret or none, and read once', (part) => {
  const text = part.repeat(LENGTH / part.length);
  expect(isWrittenAsSecret(text)).toBe(false);
  expect(isWrittenAsSecret(`${text} https://hooks.example.com/?token=x`)).toBe(true);
});

test.each(REPEATED)('mail addresses are removed from a text that repeats %j', (part) => {
  const text = `${part.repeat(LENGTH / part.length)} ops@example.com`;
  expect(withoutAddresses(text)).toMatch(/ \[address\]$/);
});

test.each([
  'https://user:password@host',
  'user:password@host',
  'x?token=1',
  'x?a=1&api_key=1',
  '/path;auth=1',
  'postgres://a@b',
])('%s is a secret by its form', (text) => expect(isWrittenAsSecret(text)).toBe(true));

test.each([
  'user@host',
  'https://host/path',
  'a: b@c',
  'keys=1',
  'token',
  '?a=token',
])('%s is no secret by its form', (text) => expect(isWrittenAsSecret(text)).toBe(false));

test('an address of a million slashes is read once', () => {
  const result = baseUrlField.safeParse(`https://host/${'/'.repeat(LENGTH)}x//`);
  expect(result.data).toBe(`https://host/${'/'.repeat(LENGTH)}x`);
});

test('a file of a mebibyte of beginnings of certificates is refused, and read once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const begin = '-----BEGIN CERTIFICATE-----';
  await writeFile(join(folder, 'ca.pem'), begin.repeat(2 ** 20 / begin.length));
  const { findings } = await readTlsFiles({ ca: 'ca.pem' }, { folder });
  expect(findings).toMatchObject([{ found: 'a file with a broken certificate' }]);
});
