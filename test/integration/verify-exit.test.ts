import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Program } from '../support/program.ts';

const MAIN = resolve(import.meta.dirname, '../../src/main.ts');
const INTENT = `0x${'1e'.repeat(32)}`;

let folder: string;
let config: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'intentwatch-verify-exit-'));
  config = join(folder, 'intentwatch.yaml');
  const settings = {
    // Nobody listens there, nor at the daemon's port.
    upstream: { baseUrl: 'http://127.0.0.1:9', apiKey: 'sk-test-0123456789' },
    server: { port: 9 },
    chains: { 8453: { rpc: [{ name: 'own', url: 'http://127.0.0.1:9' }] } },
    receivers: [{ name: 'nobody', type: 'email', to: ['nobody@example.com'] }],
    smtp: { url: 'smtp://127.0.0.1:9', from: 'a@example.com' },
    subscriptions: [{ name: 'one', intents: [INTENT], receivers: ['nobody'] }],
  };
  await writeFile(config, JSON.stringify(settings));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test.each<[string, number, string[]]>([
  ['something that is no id', 65, ['order 1042']],
  ['an option that it does not have', 64, [INTENT, '--no-such-option']],
  ['a recipient that is no address', 64, [INTENT, '--recipient', 'somebody']],
  ['no id at all', 64, []],
])(
  'verify with %s ends with %i, and never as if the chain disputed it',
  async (_, expected, args) => {
    const program = await Program.start(MAIN, ['verify', ...args, '--config', config]);
    const { code } = await program.ending();
    expect(program.stderr.join('\n')).not.toBe('');
    expect(code).toBe(expected);
  },
  60_000,
);
