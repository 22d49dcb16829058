import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EXIT } from '../../src/exit.ts';
import { cannedServer } from '../support/canned-server.ts';
import { type Ran, runCommand } from '../support/command.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

async function reconcile(...args: string[]): Promise<Ran> {
  return runCommand(['reconcile', ...args]);
}

async function configWith(more: object): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-reconcile-'));
  later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const file = join(folder, 'intentwatch.yaml');
  const config = {
    upstream: { baseUrl: 'https://api.example.com', apiKey: 'key' },
    dataDir: join(folder, 'data'),
    receivers: [{ name: 'hook', type: 'webhook', url: 'https://example.com/', secrets: [SECRET] }],
    subscriptions: [
      { name: 's', wallets: ['0x52908400098527886e0f7030069857d2e4169ee7'], receivers: ['hook'] },
    ],
    ...more,
  };
  await writeFile(file, JSON.stringify(config));
  return file;
}

// 1 means that a check has failed: a script that closes the day must be able to distinguish this.
test('ends with 78, not with 1, for a day that the daemon does not have', async () => {
  const detail = 'found "2026-11-33", expected a day of the calendar';
  const server = await cannedServer(() => ({
    status: 409,
    body: { type: 'about:blank', title: 'Conflict', status: 409, detail },
  }));
  later(() => server.close());
  const { code, err } = await reconcile('--url', server.url, '--day', '2026-11-33');
  expect(err).toContain(detail);
  expect(code).toBe(EXIT.badConfig);
});

test('names the wrong option, the found and the expected value, with and without a daemon', async () => {
  const config = await configWith({ books: {} });
  const [day, stored, zone] = await Promise.all([
    reconcile('--config', config, '--url', 'http://127.0.0.1:1', '--day', 'tomorrow'),
    reconcile('--config', config, '--store', '--day', 'tomorrow'),
    reconcile('--config', config, '--url', 'http://127.0.0.1:1', '--zone', 'Z'.repeat(61)),
  ]);
  expect(day).toEqual(stored);
  expect(day.err).toContain('--day: found "tomorrow", expected a day like 2026-11-21, or yesterday');
  expect(zone.err).toMatch(/--zone: found "Z{61}", expected a time zone like Europe\/Paris/);
  expect([day.code, zone.code]).toEqual([EXIT.badConfig, EXIT.badConfig]);
});

test('ends with 78 where no daemon has written books yet', async () => {
  const { code, err } = await reconcile('--store', '--config', await configWith({ books: {} }));
  expect(err).toContain('books.sqlite');
  expect(code).toBe(EXIT.badConfig);
});

test('ends with 75 where the Postgres of the books does not answer, and reports it', async () => {
  const url = 'postgres://daemon:hidden-password@127.0.0.1:1/books';
  const { code, err } = await reconcile('--store', '--config', await configWith({ books: { url } }));
  expect(err).toContain('ECONNREFUSED');
  expect(err).not.toContain('hidden-password');
  expect(code).toBe(EXIT.tryAgain);
});
