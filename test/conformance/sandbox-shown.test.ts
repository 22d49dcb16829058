import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { eventually } from '../support/eventually.ts';
import { signErc3009 } from './suite/signing.ts';

const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_ETHEREUM = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48';
const USDT_ETHEREUM = '0xdAC17F958D2ee523a2206206994597C13D831ec7';
const USDT_SOLANA = 'Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB';
const SPENDER = '0x1111111111111111111111111111111111111111';
const AMOUNT = '100000000';
const KEY = generatePrivateKey();
const FUNDER = privateKeyToAccount(KEY).address;

/** No quote of it expires, on a busy machine too. */
const sandbox = new Sandbox({ transfersPerSecond: 0, timeScale: 0.001 });
const quick = new Sandbox({ transfersPerSecond: 0, timeScale: 100 });
beforeAll(() => Promise.all([sandbox.start(), quick.start()]));
afterAll(() => Promise.all([sandbox.close(), quick.close()]));

async function request(
  path: string,
  {
    body,
    key = sandbox.apiKey,
    url = sandbox.url,
  }: { body?: object; key?: string | null; url?: string } = {},
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...(key === null ? {} : { 'x-api-key': key }), 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

const source = { chainId: 8453, token: USDC_BASE, funder: FUNDER, amount: AMOUNT };
const swapped = { chainId: 1, token: USDT_ETHEREUM, recipient: WALLET };
const quoteRequest = { type: 'exact-in', dappId: 'tests', source, destination: swapped };

const quoteSchema = z.object({
  id: z.string(),
  intentHash: z.string(),
  steps: z.array(
    z.object({ type: z.string(), intents: z.array(z.object({ intentHash: z.string(), role: z.string() })) }),
  ),
});
const page = z.object({
  results: z.array(z.looseObject({ id: z.string(), type: z.string(), status: z.string() })),
});

async function statusOf(query: string) {
  const { body } = await request(`/v1/intents/status?${query}`, { url: quick.url });
  return page.parse(body).results;
}

/** A v1 quote whose token is swapped after its arrival, funded by a job; a new one where it expired before. */
async function swappedTransfer(): Promise<{ quote: z.infer<typeof quoteSchema>; jobUuid: string }> {
  const { url } = quick;
  const quote = quoteSchema.parse((await request('/v1/quotes', { url, body: quoteRequest })).body);
  const signed = await signErc3009({
    key: KEY,
    chainId: 8453,
    token: USDC_BASE,
    to: SPENDER,
    value: BigInt(AMOUNT),
  });
  const submitted = await request('/v1/gasless/submit/erc-3009', {
    url,
    body: { quoteId: quote.id, ...signed },
  });
  if (submitted.status === 410) return swappedTransfer();
  expect(submitted.status).toBe(202);
  const { id } = z.object({ id: z.string() }).parse(submitted.body);
  return { quote, jobUuid: id.slice('gasless:'.length) };
}

async function newVault({ url } = sandbox) {
  const { body } = await request('/v1/deposit-gateway/deposit-addresses', {
    url,
    body: {
      sourceChainId: 8453,
      destinationChainId: 1,
      sourceToken: USDC_BASE,
      destinationToken: USDC_ETHEREUM,
      amount: AMOUNT,
      recipient: WALLET,
    },
  });
  return z.object({ data: z.looseObject({ vaultAddress: z.string() }) }).parse(body).data.vaultAddress;
}

async function vaultPayload(vault: string): Promise<Record<string, unknown>> {
  const signing = { key: KEY, chainId: 8453, token: USDC_BASE, to: vault, value: BigInt(AMOUNT) };
  const { authorization, signature } = await signErc3009(signing);
  return { chainId: 8453, ...authorization, signature };
}

describe('a transfer whose token is swapped', () => {
  test('has several steps and intents, which its signature covers, and several sub-statuses', async () => {
    const { quote, jobUuid } = await swappedTransfer();
    expect(quote.steps.map(({ type }) => type)).toEqual(['bridge', 'swap']);
    const hashes = quote.steps.flatMap(({ intents }) => intents.map(({ intentHash }) => intentHash));
    expect(new Set(hashes).size).toBe(2);
    expect(hashes[0]).toBe(quote.intentHash);

    const [waiting] = await eventually('the intents', async () => {
      const results = await statusOf(`intentHash=${hashes[1]}`);
      return results[0]?.status !== 'unknown' && results;
    });
    const early = waiting?.status === 'pending' ? waiting.txHash : null;
    expect(early).toBeNull();

    const [filled] = await eventually('the fill', async () => {
      const results = await statusOf(`intentHash=${hashes[0]}`);
      return (
        /filled|settled/.test(results[0]?.status ?? '') && results[0]?.destinationTx !== undefined && results
      );
    });
    expect(filled?.steps).toMatchObject([
      { type: 'BRIDGE', intentHash: hashes[0], status: 'FULFILLED', to: { token: USDC_ETHEREUM } },
      {
        type: 'SWAP',
        intentHash: hashes[1],
        status: 'FULFILLED',
        from: { token: USDC_ETHEREUM },
        to: { token: USDT_ETHEREUM },
      },
    ]);
    expect(filled?.destinationTx).toMatchObject({ token: USDT_ETHEREUM });
    const [job] = await statusOf(`jobId=${jobUuid}`);
    expect(job?.intentHashes).toEqual(hashes);
    expect(job?.subStatuses).toMatchObject([
      { chainId: 8453, intentHashes: [hashes[0]] },
      { chainId: 1, intentHashes: [hashes[1]], txHash: null },
    ]);
    const [swap] = await statusOf(`intentHash=${hashes[1]}`);
    expect(swap).toMatchObject({ type: 'intent', txHash: expect.any(String), steps: [{ type: 'SWAP' }] });
  });
});

describe('a vault that is funded as a deposit address', () => {
  test('is on wallet pages, with the status of its intent', async () => {
    const { vaultAddress, funded } = await eventually('it is funded in its time', async () => {
      const address = await newVault(quick);
      const answer = await request('/fund', {
        url: quick.controlUrl,
        body: { vaultAddress: address, chainId: 8453, depositAddress: true },
      });
      return answer.status === 410 ? null : { vaultAddress: address, funded: answer };
    });
    const { intentHash } = z.object({ intentHash: z.string() }).parse(funded.body);
    const results = await eventually('the deposit address', async () => {
      const all = await statusOf(`wallet=${WALLET}&limit=50`);
      return all.some(({ type }) => type === 'deposit-address') && all;
    });
    expect(results.find(({ type }) => type === 'deposit-address')).toMatchObject({
      id: `deposit-address:${vaultAddress}`,
      status: results.find(({ id }) => id === `intent:${intentHash}`)?.status,
      intentHashes: [intentHash],
    });
  });
});

describe('an error', () => {
  const quotes = (body: object) => request('/v1/quotes', { body });

  test('of a market without solvers is 502 solver-error, for quotes and for vaults', async () => {
    sandbox.setMarket({ solvers: 0 });
    expect(await quotes(quoteRequest)).toMatchObject({ status: 502, body: { code: 'solver-error' } });
    const vault = await request('/v1/deposit-gateway/deposit-addresses', {
      body: {
        sourceChainId: 8453,
        destinationChainId: 1,
        sourceToken: USDC_BASE,
        destinationToken: USDC_ETHEREUM,
        amount: AMOUNT,
        recipient: WALLET,
      },
    });
    expect(vault).toMatchObject({ status: 502, body: { code: 'solver-error' } });
    sandbox.setMarket({ solvers: 3 });
  });

  test('names its place, and its old number from before v1 if it had one', async () => {
    const { body } = await quotes({});
    expect(body).toMatchObject({
      instance: '/v1/quotes',
      legacyCode: '1001',
      requestId: expect.stringMatching(/-/),
    });
    expect((await request('/v1/intents/nothing')).body).not.toHaveProperty('legacyCode');
  });

  test('at the deposit vaults has a short number as requestId', async () => {
    const { body } = await request('/v1/deposit-gateway/status');
    expect(body).toMatchObject({ requestId: expect.stringMatching(/^\d{1,5}$/) });
  });

  test('with a key on a path that no endpoint begins with is the gateway’s 403', async () => {
    expect(await request('/v1/nothing-here')).toEqual({
      status: 403,
      body: { Message: 'User is not authorized to access this resource' },
    });
    expect(await request('/v1/intents/nothing')).toMatchObject({
      status: 404,
      body: { code: 'endpoint-not-found' },
    });
  });
});

describe('a signed authorization', () => {
  test.each([
    'validAfter',
    'validBefore',
  ])('whose %s is a number is refused, at every endpoint', async (field) => {
    const payload = await vaultPayload(await newVault());
    const wrong = { ...payload, [field]: Number(payload[field]) };
    for (const path of [
      '/deposit-gateway/v1/gasless/transferWithAuthorization',
      '/v1/deposit-gateway/submit/erc-3009',
    ]) {
      const refused = await request(path, { body: wrong, key: null });
      expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining(field)]);
    }
    const { id } = quoteSchema.parse((await quotes()).body);
    const { chainId: _, signature, ...authorization } = wrong as Record<string, unknown>;
    const atV1 = await request('/v1/gasless/submit/erc-3009', {
      body: { quoteId: id, authorization, signature },
    });
    expect(atV1).toMatchObject({ status: 400, body: { errors: [{ field: `authorization.${field}` }] } });
  });

  const quotes = () => request('/v1/quotes', { body: quoteRequest });

  test('is recognised at the endpoint that took it, and at no other', async () => {
    const body = await vaultPayload(await newVault());
    const first = await request('/v1/deposit-gateway/submit/erc-3009', { body, key: null });
    expect(first.status).toBe(202);
    expect((await request('/v1/deposit-gateway/submit/erc-3009', { body, key: null })).status).toBe(200);
    const other = await request('/deposit-gateway/v1/gasless/transferWithAuthorization', { body, key: null });
    expect(other).toMatchObject({ status: 409, body: { code: 'signature-already-bound' } });
  });
});

test('an open quote to a chain that is not EVM passes over another one', async () => {
  const { body } = await request('/api/v3/quotes/exactIn', {
    url: sandbox.quotesUrl,
    body: {
      dAppID: 'tests',
      quoteRequest: {
        sourceChainID: 1,
        destinationChainID: 1399811149,
        sourceToken: USDT_ETHEREUM,
        destinationToken: USDT_SOLANA,
        sourceAmount: AMOUNT,
        funder: WALLET,
        recipient: USDT_SOLANA,
      },
    },
  });
  expect(body).toMatchObject({
    data: [
      { quoteData: { quoteResponse: { destinationChainID: 10, finalDestinationChainID: 1399811149 } } },
      {},
      {},
    ],
  });
});
