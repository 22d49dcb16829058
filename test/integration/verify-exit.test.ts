import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { cannedServer } from '../support/canned-server.ts';
import { runCommand } from '../support/command.ts';

const INTENT = `0x${'1e'.repeat(32)}`;

let folder: string;
let config: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'intentwatch-verify-exit-'));
  // Nobody listens there, nor at the daemon's port.
  config = await configAt('http://127.0.0.1:9');
});

async function configAt(baseUrl: string): Promise<string> {
  const file = join(folder, `${randomUUID()}.yaml`);
  const settings = {
    upstream: { baseUrl, apiKey: 'sk-test-0123456789' },
    server: { port: 9 },
    chains: { 8453: { rpc: [{ name: 'own', url: 'http://127.0.0.1:9' }] } },
    receivers: [{ name: 'nobody', type: 'email', to: ['nobody@example.com'] }],
    smtp: { url: 'smtp://127.0.0.1:9', from: 'a@example.com' },
    subscriptions: [{ name: 'one', intents: [INTENT], receivers: ['nobody'] }],
  };
  await writeFile(file, JSON.stringify(settings));
  return file;
}

afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));

test.each<[string, number, string[]]>([
  ['something that is no id', 65, ['order 1042']],
  ['an option that it does not have', 64, [INTENT, '--no-such-option']],
  ['a recipient that is no address', 64, [INTENT, '--recipient', 'somebody']],
  ['no id at all', 64, []],
])('verify with %s ends with %i, and never as if the chain disputed it', async (_, expected, args) => {
  const { code, err } = await runCommand(['verify', ...args, '--config', config]);
  expect(err).not.toBe('');
  expect(code).toBe(expected);
});

test.each<[string, string[]]>([
  ['verify', [INTENT]],
  ['status', ['--intent', INTENT]],
])('%s ends with 78 where the upstream refuses the key', async (command, args) => {
  const title = 'The API key is missing, unknown, or revoked';
  const body = { type: 'about:blank', title, status: 401, code: 'invalid-api-key' };
  const server = await cannedServer(() => ({ status: 401, body }));
  onTestFinished(() => server.close());
  const { code, err } = await runCommand([command, ...args, '--config', await configAt(server.url)]);
  expect(err).toContain(title);
  expect(code).toBe(78);
});
