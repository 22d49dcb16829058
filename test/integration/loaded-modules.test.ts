import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { z } from 'zod';
import { Program } from '../support/program.ts';
import { ScriptedUpstream } from '../support/scripted-upstream.ts';

const BIN = join(import.meta.dirname, '../../bin/intentwatch.mjs');
const HOOK = join(import.meta.dirname, '../support/loaded-modules-program.ts');
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;

/** Packages that cost memory and time, and that only some configs need. */
const COSTLY = ['viem', 'ox', 'pg', 'nodemailer', 'pino-pretty', 'ajv'];

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'intentwatch-loaded-'));
});

afterEach(async () => {
  await rm(folder, { recursive: true, maxRetries: 5 });
});

function begin(args: string[], env: Record<string, string> = {}): Promise<Program> {
  return Program.run([process.execPath, `--import=${HOOK}`, BIN, ...args], env);
}

/** Packages, and folders or files of `src`, that a program loaded until its end. */
async function loadedBy(program: Program): Promise<{ packages: string[]; folders: string[] }> {
  const [, list = ''] = await program.line(/^loaded (.+)/);
  await program.ending();
  const names = z.array(z.string()).parse(JSON.parse(list));
  const [packages, files] = [
    names.filter((name) => !name.startsWith('src/')),
    names.filter((name) => name.startsWith('src/')),
  ];
  return { packages, folders: [...new Set(files.map((file) => file.split('/').slice(0, 2).join('/')))] };
}

test('--version loads no command', async () => {
  const { packages, folders } = await loadedBy(await begin(['--version']));
  expect(packages).toEqual(['commander']);
  expect(folders).not.toContain('src/client');
});

test('ls loads the shapes of its answers, but nothing of the daemon', async () => {
  const { packages, folders } = await loadedBy(await begin(['ls', '--url', 'http://127.0.0.1:1']));
  expect(packages.toSorted()).toEqual(['@noble/hashes', '@scure/base', 'commander', 'zod']);
  for (const part of ['src/daemon', 'src/metrics', 'src/books', 'src/chains', 'src/pollers'])
    expect(folders).not.toContain(part);
});

test('a daemon that only sends webhooks loads no chain, no mail and no database', async () => {
  const upstream = new ScriptedUpstream(() => ({ records: [] }));
  await upstream.start();
  const config = join(folder, 'intentwatch.yaml');
  const webhook = { name: 'backend', type: 'webhook', url: 'https://example.com/', secrets: [SECRET] };
  await writeFile(
    config,
    stringify({
      upstream: { baseUrl: upstream.url, apiKey: 'key' },
      dataDir: join(folder, 'data'),
      server: { host: '127.0.0.1', port: 0, token: 'test-admin-token-0123456789' },
      receivers: [webhook],
      // In mixed case: its checksum is checked.
      subscriptions: [
        {
          name: 'all',
          wallets: ['0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'],
          receivers: ['backend'],
        },
      ],
    }),
  );
  try {
    const program = await begin(['start', '--config', config]);
    const polled = upstream.awaitRequest(({ path }) => path.includes('status'));
    await program.line(/daemon\.started/);
    await polled;
    program.send('SIGTERM');
    const { packages } = await loadedBy(program);
    expect(packages).toContain('bullmq');
    expect(packages.filter((name) => COSTLY.includes(name))).toEqual([]);
  } finally {
    await upstream.close();
  }
});
