import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { formatKeyPair, parseSigningSecret } from '../../src/config/fields/signing-secret.ts';
import { runCommand } from '../support/command.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

async function keygen(...args: string[]): Promise<{ code: number; lines: string[] }> {
  const { code, out } = await runCommand(['keygen', ...args]);
  return { code, lines: out.split('\n') };
}

function secretIn(lines: string[]): string {
  expect(lines).toContain('# In the config: secrets: ["${WEBHOOK_SECRET}"]');
  return lines.flatMap((line) => /^WEBHOOK_SECRET=(.+)$/.exec(line)?.[1] ?? [])[0] ?? '';
}

test('makes an HMAC secret, another one each time', async () => {
  const [first, second] = await Promise.all([keygen(), keygen('--type', 'hmac')]);
  expect([first.code, second.code]).toEqual([0, 0]);
  expect(parseSigningSecret(secretIn(first.lines))?.type).toBe('hmac');
  expect(parseSigningSecret(secretIn(second.lines))?.type).toBe('hmac');
  expect(secretIn(first.lines)).not.toBe(secretIn(second.lines));
  expect(first.lines.join('\n')).not.toContain('whpk_');
});

test('makes an ed25519 key, with the public key that belongs to it', async () => {
  const { code, lines } = await keygen('--type', 'ed25519');
  expect(code).toBe(0);
  const secret = secretIn(lines);
  expect(parseSigningSecret(secret)?.type).toBe('ed25519');
  const seed = Buffer.from(secret.slice('whsk_'.length), 'base64').subarray(0, 32);
  expect(lines.at(-1)).toBe(formatKeyPair(seed).publicKey);
});

test('refuses another type, and lists the valid ones', async () => {
  const { code, err } = await runCommand(['keygen', '--type', 'rsa']);
  expect(code).toBe(1);
  expect(err).toContain('Allowed choices are hmac, ed25519');
});

test('a command whose reader has gone ends without output, as in a pipe to a psql that cannot connect', () => {
  const pipe = `"${process.execPath}" "${MAIN}" postgres-table | true`;
  const { status, stderr } = spawnSync('sh', ['-c', pipe], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
