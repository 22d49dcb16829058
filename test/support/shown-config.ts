import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/file/load.ts';

const QUOTE = resolve(import.meta.dirname, '../fixtures/config/quotes/quote.json');
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
/** The environment of the configs on pages and in the examples. */
export const PAGE_ENV = {
  UPSTREAM_API_KEY: 'key-1',
  INTENTWATCH_TOKEN: 'token-of-16-char',
  INTENTWATCH_READ_TOKEN: 'token-that-reads',
  INTENTWATCH_CONSUME_TOKEN: 'token-for-consuming',
  REDIS_URL: 'redis://redis:6379',
  TEAMS_WORKFLOW_URL: 'https://prod-1.example.com/workflows/1/triggers/manual/paths/invoke?sig=key-1',
  SMTP_URL: 'smtp://127.0.0.1:1025',
  WALLET: '0x52908400098527886e0f7030069857d2e4169ee7',
  SENDER_WALLET: '0x52908400098527886e0f7030069857d2e4169ee7',
  WEBHOOK_SECRET: SECRET,
  OLD_SECRET: SECRET,
  BASE_RPC_URL: 'https://base.example.com/v1/key-1',
  BASE_OTHER_RPC_URL: 'https://base.example.net/v1/key-2',
  DATABASE_URL: 'postgres://daemon:password@db.example.com:5432/shop',
};

const TREE = z.record(z.string(), z.unknown());
const NAMED = z.array(z.looseObject({ name: z.string() }));

const BASE = {
  upstream: { baseUrl: 'https://api.example.com', quotesUrl: 'https://quotes.example.com', apiKey: 'key-1' },
  smtp: { url: 'smtp://127.0.0.1:1025', from: 'transfers@example.com' },
  receivers: ['backend', 'oncall', 'desk'].map((name) => ({
    name,
    type: 'webhook',
    url: 'https://example.com/',
    secrets: [SECRET],
  })),
  subscriptions: [{ name: 'all', wallets: [PAGE_ENV.WALLET], receivers: ['backend'] }],
};

/** Loads the config of a page as the daemon does: a complete one as it is, a part within a complete one. */
export async function loadShown(yaml: string): Promise<Config> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-docs-'));
  try {
    const quote = TREE.parse(JSON.parse(await readFile(QUOTE, 'utf8')));
    await writeFile(
      join(folder, 'quote.json'),
      JSON.stringify({ ...quote, execution: { vault: PAGE_ENV.WALLET } }),
    );
    return await loadIn(folder, yaml);
  } finally {
    await rm(folder, { recursive: true, maxRetries: 5 });
  }
}

async function loadIn(folder: string, yaml: string): Promise<Config> {
  const part = TREE.parse(parse(yaml));
  const isWhole = ['upstream', 'receivers', 'subscriptions'].every((key) => key in part);
  const file = join(folder, 'intentwatch.yaml');
  await writeFile(file, isWhole ? yaml : stringify(wholeWith(part)));
  return loadConfig(file, PAGE_ENV);
}

function wholeWith(part: Record<string, unknown>): object {
  const [subscription] = BASE.subscriptions;
  if ('quotes' in part || 'routes' in part) return { ...BASE, subscriptions: [{ ...subscription, ...part }] };
  const receivers = NAMED.parse(part.receivers ?? []);
  const names = receivers.map(({ name }) => name);
  const others = BASE.receivers.filter(({ name }) => !names.includes(name));
  return { ...BASE, ...part, receivers: [...receivers, ...others] };
}
