import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Hex } from 'viem';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type CannedAnswer,
  type CannedServer,
  cannedServer,
  type SeenRequest,
} from '../support/canned-server.ts';
import { type Ran, runCommand } from '../support/command.ts';
import { Program } from '../support/program.ts';
import { IN_2100, QUOTE_CHAIN, QUOTE_SIGNER, signQuote } from '../support/signed-quote.ts';

const MAIN = resolve(import.meta.dirname, '../../src/main.ts');
const KEY = 'sk-live-0123456789abcdef';
const OWNER = '0x52908400098527886e0f7030069857d2e4169ee7';
const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
const UUID = '3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41';
const INTENT: Hex = `0x${'a'.repeat(64)}`;
const TX: Hex = `0x${'5'.repeat(64)}`;

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(answer: (request: SeenRequest) => CannedAnswer): Promise<CannedServer> {
  const server = await cannedServer(answer);
  cleanups.push(() => server.close());
  return server;
}

async function run(args: string[], env: Record<string, string> = { UPSTREAM_API_KEY: KEY }): Promise<Ran> {
  return runCommand(args, env);
}

async function fileOf(value: unknown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-commands-'));
  cleanups.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const file = join(folder, 'file');
  await writeFile(file, typeof value === 'string' ? value : JSON.stringify(value));
  return file;
}

let quote: Record<string, unknown>;

beforeAll(async () => {
  const expiresAt = IN_2100;
  const signature = await signQuote({
    id: `quote:${UUID}`,
    intentHashes: [INTENT],
    expiresAt: BigInt(expiresAt),
    chainId: QUOTE_CHAIN,
  });
  quote = {
    id: `quote:${UUID}`,
    type: 'exact-in',
    signature,
    expiresAt,
    intentHash: INTENT,
    source: { chainId: 8453, token: USDC_BASE, funder: OWNER, amount: '1000000' },
    destination: {
      chainId: 10,
      token: USDC_OPTIMISM,
      recipient: OWNER,
      amountOut: '999000',
      minAmountOut: '994005',
    },
    fees: [
      { type: 'solver', token: USDC_BASE, amount: '900' },
      { type: 'protocol', token: USDC_BASE, amount: '100' },
    ],
    steps: [{ type: 'BRIDGE', intents: [{ intentHash: INTENT, role: 'primary' }] }],
    execution: { transaction: { type: 'evm', chainId: 8453, to: OWNER, data: '0x', value: '0' } },
  };
});

const CHAINS = { chains: [{ chainId: 8453, name: 'Base', kind: 'evm', quoteSigner: QUOTE_SIGNER.address }] };

const upstream = ({ url }: SeenRequest): CannedAnswer => {
  if (url === '/v1/chains') return { status: 200, body: CHAINS };
  return url === '/v1/quotes'
    ? { status: 200, body: quote }
    : { status: 404, body: { code: 'endpoint-not-found' } };
};

describe('verify-quote', () => {
  test('reports a quote as valid, with the given signer and without a request', async () => {
    const file = await fileOf({ ...quote, quotes: [quote] });
    const args = ['verify-quote', file, '--signer', QUOTE_SIGNER.address.toLowerCase()];
    const program = await Program.start(MAIN, args);
    const { code } = await program.ending();
    expect(program.stdout.join('\n')).toBe(
      ['quote', 'quotes[0]']
        .map(
          (name) =>
            `${name}: valid, quote:${UUID}, signed by ${QUOTE_SIGNER.address} for Base, 1 intent, expires 2100-01-01T00:00:00Z`,
        )
        .join('\n'),
    );
    expect(code).toBe(0);
  });

  test('reads the signer from the chains, with the key', async () => {
    const server = await serve(upstream);
    const { code, out } = await run(['verify-quote', await fileOf(quote), '--base-url', server.url]);
    expect(out).toContain('quote: valid');
    expect(code).toBe(0);
    expect(server.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(['GET /v1/chains']);
    expect(server.seen[0]?.headers['x-api-key']).toBe(KEY);
  });

  test.each([
    [{ expiresAt: 4102444801 }, 'NOT VALID, signature: signed by 0x'],
    [{ id: UUID }, 'NOT VALID, id: expected text that begins with quote:'],
    [{ steps: [{ intents: [{ intentHash: TX }] }] }, `NOT VALID, steps: ${TX} is not among the intents`],
  ])('with %j names the invalid part and ends with 1', async (change, line) => {
    const server = await serve(upstream);
    const file = await fileOf({ ...quote, ...change });
    const domain = ['--quote-domain', 'ServiceQuoteV1'];
    const { code, out } = await run(['verify-quote', file, '--base-url', server.url, ...domain]);
    expect(out).toContain(line);
    expect(code).toBe(1);
  });

  test('of a chain without a published signer is unverifiable and ends with 75', async () => {
    const server = await serve(upstream);
    const file = await fileOf({ ...quote, source: { chainId: 1_399_811_149 } });
    const { code, out } = await run(['verify-quote', file, '--base-url', server.url]);
    expect(out).toContain(
      'UNVERIFIABLE, quoteSigner: the upstream publishes no quoteSigner for chain 1399811149',
    );
    expect(code).toBe(75);
  });

  test.each([
    ['by its chain', (url: string) => ['--base-url', url]],
    ['by a given signer', () => ['--signer', QUOTE_SIGNER.address]],
  ])('of another name is unverifiable and ends with 75, %s, and valid under that name', async (_, where) => {
    const server = await serve(upstream);
    const name = 'Acme Quote/V1';
    const covered = {
      id: `quote:${UUID}`,
      intentHashes: [INTENT],
      expiresAt: BigInt(IN_2100),
      chainId: QUOTE_CHAIN,
      name,
    };
    const file = await fileOf({ ...quote, signature: await signQuote(covered) });
    const unnamed = await run(['verify-quote', file, ...where(server.url)]);
    expect(unnamed.out).toMatch(/^quote: UNVERIFIABLE, quoteDomain: set upstream\.quoteDomain: .*found 0x/);
    expect(unnamed.code).toBe(75);
    const named = await run(['verify-quote', file, ...where(server.url), '--quote-domain', `${name}/1`]);
    expect([named.code, named.out]).toEqual([0, expect.stringContaining('quote: valid')]);
  });

  test('of the quotes of an answer, one that verifies proves the name for the others', async () => {
    const server = await serve(upstream);
    const file = await fileOf({ ...quote, expiresAt: 4102444801, quotes: [quote] });
    const { code, out } = await run(['verify-quote', file, '--base-url', server.url]);
    expect(out).toMatch(/^quote: NOT VALID, signature: .*\nquotes\[0\]: valid/);
    expect(code).toBe(1);
  });

  test('ends with 75 and no verdict when the chains cannot be read', async () => {
    const server = await serve(() => ({ status: 503, body: { code: 'service-unavailable' } }));
    const { code, out, err } = await run(['verify-quote', await fileOf(quote), '--base-url', server.url]);
    expect(out).toBe('');
    expect(err).toContain('intentwatch: upstream chains: found HTTP 503');
    expect(code).toBe(75);
  });
});

const record = {
  id: `intent:${INTENT}`,
  type: 'intent',
  status: 'filled',
  updatedAt: 1795174224,
  sourceTx: { chainId: 8453, txHash: TX, token: USDC_BASE, amount: '1250000000' },
  destinationTx: { chainId: 10, txHash: TX, token: USDC_OPTIMISM, amount: '1249000000' },
};

describe('status', () => {
  test.each([
    [['--intent', `intent:${INTENT}`], `intentHash=${INTENT}`],
    [['--quote', `quote:${UUID}`], `quoteId=${UUID}`],
    [['--job', UUID], `jobId=${UUID}`],
    [
      ['--wallet', OWNER, '--status', 'filled', '--limit', '5', '--cursor', 'c'],
      `wallet=${OWNER}&status=filled&limit=5&cursor=c`,
    ],
  ])('%j requests %s and prints a table', async (args, query) => {
    const server = await serve(() => ({ status: 200, body: { results: [record], nextCursor: null } }));
    const { code, out } = await run(['status', ...args, '--base-url', server.url]);
    expect(server.seen.map(({ url }) => url)).toEqual([`/v1/intents/status?${query}`]);
    const [head, row] = out.split('\n');
    expect(head?.split(/ {2,}/)).toEqual(['ID', 'STATUS', 'UPDATED', 'TRANSFER']);
    expect(row?.split(/ {2,}/)).toEqual([
      record.id,
      'filled',
      '2026-11-20T11:30:24Z',
      '1,250.00 USDC, Base to Optimism',
    ]);
    expect(code).toBe(0);
  });

  test('--tx requests the destination when no source is known', async () => {
    const unknown = { id: `intent:${TX}`, type: 'intent', status: 'unknown', updatedAt: null };
    const server = await serve(({ url }) => ({
      status: 200,
      body: { results: [url.includes('destination') ? record : unknown], nextCursor: null },
    }));
    const { out } = await run(['status', '--tx', TX, '--base-url', server.url]);
    expect(out).toContain(record.id);
    expect(server.seen.map(({ url }) => url)).toEqual([
      `/v1/intents/status?sourceTxHash=${TX}`,
      `/v1/intents/status?destinationTxHash=${TX}`,
    ]);
  });

  test('--json prints the whole answer; the table is made harmless', async () => {
    const odd = { ...record, status: 'a\u001b[31m\nword', more: { big: 1 } };
    const results = [odd, { id: 5 }];
    const server = await serve(() => ({ status: 200, body: { results, nextCursor: "n'x" } }));
    const args = ['status', '--wallet', OWNER, '--base-url', server.url];
    const asJson = await run([...args, '--json']);
    expect(JSON.parse(asJson.out)).toEqual({ results: [odd], nextCursor: "n'x" });
    const asTable = await run(args);
    expect(asTable.out).toContain('a [31m word');
    expect(asTable.out).toContain('result 1 cannot be read: id: found a number, expected text');
    expect(asTable.out).toContain(`more: --cursor 'n'\\''x'`);
  });

  test('reads the upstream from a config file', async () => {
    const server = await serve(() => ({ status: 200, body: { results: [], nextCursor: null } }));
    const config = await fileOf(
      [
        `upstream: { baseUrl: "${server.url}", apiKey: other-key }`,
        'receivers: [{ name: a, type: webhook, url: "https://example.com", secrets: ["whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="] }]',
        `subscriptions: [{ name: a, wallets: ["${OWNER}"], receivers: [a] }]`,
      ].join('\n'),
    );
    const { out, err } = await run(['status', '--wallet', OWNER, '--config', config]);
    expect(err).toBe('');
    expect(out).toBe('no transfers');
    expect(server.seen[0]?.headers['x-api-key']).toBe('other-key');
  });
});

const ROUTE = [
  '--from-chain',
  '8453',
  '--from-token',
  USDC_BASE,
  '--to-chain',
  '10',
  '--to-token',
  USDC_OPTIMISM,
  '--funder',
  OWNER,
];

describe('quote', () => {
  test('prices a route and verifies the answer', async () => {
    const server = await serve(upstream);
    const { code, out } = await run([
      'quote',
      ...ROUTE,
      '--amount',
      '1000000',
      '--slippage',
      '0.005',
      '--base-url',
      server.url,
    ]);
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({
      type: 'exact-in',
      dappId: 'intentwatch',
      slippage: '0.005',
      source: { chainId: 8453, token: USDC_BASE, funder: OWNER, amount: '1000000' },
      destination: { chainId: 10, token: USDC_OPTIMISM, recipient: OWNER },
    });
    expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['quote', `quote:${UUID}`],
      ['route', 'Base to Optimism'],
      ['in', '1.00 USDC'],
      ['out', '0.999 USDC'],
      ['at least', '0.994005 USDC'],
      ['fee, solver', '0.0009 USDC'],
      ['fee, protocol', '0.0001 USDC'],
      ['expires', '2100-01-01T00:00:00Z'],
      ['intent', INTENT],
      ['signature', `valid, signed by ${QUOTE_SIGNER.address}`],
    ]);
    expect(code).toBe(0);
  });

  test('requests v1 by a name of any letters, for the rule of dAppID is the open service’s', async () => {
    const server = await serve(upstream);
    const name = 'Zahlungen für uns (Test)';
    const args = ['quote', ...ROUTE, '--amount', '1000000', '--base-url', server.url, '--dapp-id', name];
    expect((await run(args)).code).toBe(0);
    expect(JSON.parse(server.seen[0]?.body ?? '')).toMatchObject({ dappId: name });
  });

  test('names the details for a support ticket after a failure', async () => {
    const body = {
      status: 502,
      code: 'solver-error',
      title: 'No quote',
      requestId: 'req-7',
      instance: '/q/1',
      legacyCode: '3',
    };
    const server = await serve(() => ({ status: 502, body }));
    const { err } = await run(['quote', ...ROUTE, '--amount', '1000000', '--base-url', server.url]);
    expect(err).toContain('title "No quote", instance /q/1, legacyCode 3, requestId req-7');
  });

  test('ends with 1 when the answer is not signed by the chain’s signer', async () => {
    const server = await serve((request) => {
      const answer = upstream(request);
      return request.url === '/v1/quotes' ? { ...answer, body: { ...quote, expiresAt: 1 } } : answer;
    });
    const { code, out } = await run([
      'quote',
      ...ROUTE,
      '--amount',
      '1',
      '--base-url',
      server.url,
      '--quote-domain',
      'ServiceQuoteV1',
    ]);
    expect(out).toContain('NOT VALID, signature: signed by');
    expect(code).toBe(1);
  });

  test('--json prints a document that verify-quote accepts', async () => {
    const server = await serve(upstream);
    const { out } = await run(['quote', ...ROUTE, '--amount', '1', '--json', '--base-url', server.url]);
    const verified = await run(['verify-quote', await fileOf(out), '--signer', QUOTE_SIGNER.address], {});
    expect(verified.out).toContain('quote: valid');
  });

  test('requests an exact output, a recipient and all quotes', async () => {
    const server = await serve(upstream);
    const args = [
      '--type',
      'exact-out',
      '--amount-out',
      '5',
      '--recipient',
      QUOTE_SIGNER.address,
      '--all',
      '--json',
    ];
    await run(['quote', ...ROUTE, ...args, '--base-url', server.url]);
    expect(JSON.parse(server.seen[0]?.body ?? '')).toEqual({
      type: 'exact-out',
      dappId: 'intentwatch',
      options: { allQuotes: true },
      source: { chainId: 8453, token: USDC_BASE, funder: OWNER },
      destination: { chainId: 10, token: USDC_OPTIMISM, recipient: QUOTE_SIGNER.address, amountOut: '5' },
    });
  });

  test('names the refused field', async () => {
    const server = await serve(() => ({
      status: 422,
      body: { code: 'amount-too-low', errors: [{ field: 'source.amount', detail: 'at least 100000' }] },
    }));
    const { code, err } = await run(['quote', ...ROUTE, '--amount', '1', '--base-url', server.url]);
    expect(err).toContain('(amount-too-low; source.amount: at least 100000)');
    expect(code).toBe(1);
    expect(server.seen).toHaveLength(1);
  });

  test('--open requests the open quoting service, without a key', async () => {
    const entry = {
      quoteID: `quote:${UUID}`,
      solverID: OWNER,
      quoteData: {
        quoteResponse: {
          destinationAmount: '999000',
          minimumDestinationAmount: '994005',
          estimatedFulfillTimeSec: 25,
          quoteExpiry: 4102444800,
        },
      },
    };
    const server = await serve(() => ({ status: 201, body: { data: [entry] } }));
    const { code, out } = await run([
      'quote',
      ...ROUTE,
      '--amount',
      '1000000',
      '--open',
      '--quotes-url',
      server.url,
    ]);
    expect(server.seen[0]).toMatchObject({ method: 'POST', url: '/api/v3/quotes/exactIn' });
    expect(server.seen[0]?.headers['x-api-key']).toBeUndefined();
    expect(out.split('\n')[1]?.split(/ {2,}/)).toEqual([
      `quote:${UUID}`,
      '0.999 USDC',
      '0.994005 USDC',
      '25 s',
      '2100-01-01T00:00:00Z',
      OWNER,
    ]);
    expect(code).toBe(0);
  });

  test('--open reports that no solver quotes a route, without a failure', async () => {
    const server = await serve(() => ({ status: 201, body: { data: [] } }));
    const { code, out } = await run([
      'quote',
      ...ROUTE,
      '--amount',
      '1',
      '--open',
      '--quotes-url',
      server.url,
    ]);
    expect(out).toBe('no solver quotes this route');
    expect(code).toBe(0);
  });
});
