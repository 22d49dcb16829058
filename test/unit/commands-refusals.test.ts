import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { upstreamOf } from '../../src/commands/connection.ts';
import { quoteCommand } from '../../src/commands/quote.ts';
import { statusCommand } from '../../src/commands/status.ts';
import { nextAttempt, table } from '../../src/commands/table.ts';
import { verifyQuoteCommand } from '../../src/commands/verify-quote.ts';
import { reportFailure } from '../../src/exit.ts';
import { type FailureCode, UpstreamFailure } from '../../src/upstream/client/failure.ts';

const KEY = 'sk-live-0123456789abcdef';
const OWNER = '0x52908400098527886e0f7030069857d2e4169ee7';
const HASH = `0x${'a'.repeat(64)}`;
// No server listens there: a command that sends a request before it refuses fails with another message.
const NOBODY = 'http://127.0.0.1:1';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'intentwatch-refusals-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

let keyBefore: string | undefined;
beforeEach(() => {
  keyBefore = process.env.UPSTREAM_API_KEY;
  process.env.UPSTREAM_API_KEY = KEY;
});
afterEach(() => {
  if (keyBefore === undefined) delete process.env.UPSTREAM_API_KEY;
  else process.env.UPSTREAM_API_KEY = keyBefore;
});

async function refusal(command: Command, args: string[]): Promise<string> {
  const quiet = command.exitOverride().configureOutput({ writeErr: () => {} });
  const error: unknown = await quiet.parseAsync(args, { from: 'user' }).then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error('the command did not refuse');
  return error.message;
}

describe('status', () => {
  test.each([
    [[], 'found none, expected one of --intent, --tx, --quote, --job and --wallet'],
    [['--intent', HASH, '--job', 'u'], 'found --intent and --job, expected one of'],
    [['--intent', HASH, '--limit', '5'], 'without --wallet, expected them only with it'],
    [['--wallet', OWNER, '--limit', '51'], 'expected a number from 1 to 50'],
    [['--wallet', OWNER, '--limit', '0'], 'expected a number from 1 to 50'],
  ])('with %j is refused: %s', async (args, message) => {
    expect(await refusal(statusCommand(), [...args, '--base-url', NOBODY])).toContain(message);
  });
});

describe('quote', () => {
  const route = ['--from-chain', '8453', '--from-token', OWNER, '--to-chain', '10', '--to-token', OWNER];

  test.each([
    [['--amount', '1.5'], 'request not sent: source.amount: base units as digits'],
    [[], 'found no --amount, expected it with --type exact-in'],
    [['--type', 'exact-out', '--amount', '1'], 'found --amount, expected none with --type exact-out'],
    [['--type', 'exact-in', '--amount-out', '1'], 'found --amount-out, expected none with --type exact-in'],
    [['--type', 'custom', '--amount', '1'], 'found no --amount-out, expected it with --type custom'],
    [['--amount', '1', '--slippage', '5'], 'request not sent: slippage: a decimal fraction from 0.0001 to 1'],
    [['--open', '--type', 'custom'], 'found --open with --type custom, expected exact-in'],
    [['--open', '--amount', '1'], 'found no --quotes-url and no upstream.quotesUrl, expected one of them'],
    [['--from-chain', '0'], 'expected a chain id, a number from 1'],
  ])('with %j is refused: %s', async (args, message) => {
    const all = [...route, '--funder', OWNER, ...args, '--base-url', NOBODY];
    expect(await refusal(quoteCommand(), all)).toContain(message);
  });

  test('without a funder is refused', async () => {
    expect(await refusal(quoteCommand(), route)).toContain("required option '--funder <address>'");
  });
});

describe('verify-quote', () => {
  test.each([
    ['{', OWNER, 'found text that is not JSON, expected a quote as POST /v1/quotes answered it'],
    ['{}', 'me', '--signer: expected an address of 0x and 40 hex digits'],
  ])('of %j with signer %j is refused: %s', async (content, signer, message) => {
    const file = join(folder, 'quote.json');
    await writeFile(file, content);
    expect(await refusal(verifyQuoteCommand(), [file, '--signer', signer])).toContain(message);
  });

  test('of a file that is not there is refused', async () => {
    expect(await refusal(verifyQuoteCommand(), [join(folder, 'none'), '--signer', OWNER])).toContain('none');
  });
});

describe('a connection', () => {
  test('takes the key from the environment, and the defaults of a config', async () => {
    const upstream = await upstreamOf({ baseUrl: `${NOBODY}/` }, { UPSTREAM_API_KEY: KEY });
    expect(upstream).toMatchObject({ baseUrl: NOBODY, quotesUrl: null, timeoutMs: 10_000 });
    expect(upstream.apiKey?.reveal()).toBe(KEY);
    const named = await upstreamOf({ baseUrl: NOBODY, apiKey: 'other' }, { UPSTREAM_API_KEY: KEY });
    expect(named.apiKey?.reveal()).toBe('other');
    expect((await upstreamOf({ baseUrl: NOBODY }, {})).apiKey).toBe(null);
  });

  test.each([
    [{ baseUrl: NOBODY, apiKey: '' }, {}, '--api-key (or UPSTREAM_API_KEY): expected an API key'],
    [{ baseUrl: NOBODY, apiKey: `${KEY}\n` }, {}, '--api-key (or UPSTREAM_API_KEY): expected an API key'],
    [{ baseUrl: 'http://192.0.2.1', apiKey: KEY }, {}, '--base-url: expected an https:// URL'],
    [{ baseUrl: 'nonsense', apiKey: KEY }, {}, '--base-url: expected a URL like https://api.example.com'],
    [{ apiKey: KEY }, {}, 'found --api-key alone, expected --base-url with it'],
    [{ baseUrl: NOBODY, config: 'y' }, {}, 'found --config and --base-url, expected one of them'],
  ])('by %j is refused: %s', async (options, env, message) => {
    const error: unknown = await upstreamOf(options, env).catch((reason: unknown) => reason);
    expect(String(error)).toContain(message);
    expect(String(error)).not.toContain(KEY);
  });
});

test.each<[FailureCode, number]>([
  ['unavailable', 75],
  ['rate-limited', 75],
  ['timeout', 75],
  ['unauthorized', 1],
  ['invalid-request', 1],
])('an upstream that is %s ends a command with %i', (code, exitCode) => {
  const failure = new UpstreamFailure({
    endpoint: 'status',
    code,
    found: 'a test',
    expected: 'nothing',
    httpStatus: null,
    problemCode: null,
    retryAfterMs: null,
  });
  expect(reportFailure(failure)).toBe(exitCode);
});

test('a table aligns its columns and lets nothing through that moves a terminal', () => {
  expect(table([['A', 'BC'], ['long\u001b[2J\n', 'x'], ['b']])).toBe('A         BC\nlong [2J  x\nb');
});

test('an attempt that is due waits for its receiver', () => {
  expect(nextAttempt('2100-01-01T00:00:00.900Z', 'next ')).toBe('next 2100-01-01T00:00:00Z');
  expect(nextAttempt('2001-01-01T00:00:00.000Z', 'next ')).toBe('waits for the receiver');
  expect(nextAttempt(null)).toBe('');
});
