import { type Hex, recoverTypedDataAddress } from 'viem';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { orderAt } from '../support/sandbox-order.ts';
import { signedData } from '../support/signed-quote.ts';

const FUNDER = '0x52908400098527886E0F7030069857D2E4169EE7';
const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
const USDC_SOLANA = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const USDT_TRON = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
const SOLANA = 1399811149;
const TRON = 728126428;
const SOLANA_WALLET = '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T';

let sandbox: Sandbox;

beforeAll(async () => {
  // No quote expires and no transfer moves on, on a busy machine too.
  sandbox = new Sandbox({ transfersPerSecond: 0, timeScale: 0.001 });
  await sandbox.start();
});

afterAll(async () => {
  await sandbox.close();
});

const hex = z.custom<Hex>((value) => typeof value === 'string' && /^0x[0-9a-f]+$/i.test(value));
const amount = z.string().regex(/^\d+$/).transform(BigInt);
const quoteSchema = z.object({
  id: z.string().regex(/^quote:[0-9a-f-]{36}$/),
  type: z.enum(['exact-in', 'exact-out', 'custom']),
  signature: hex,
  expiresAt: z.int(),
  intentHash: hex,
  source: z.object({ amount }),
  destination: z.object({ amountOut: amount, minAmountOut: amount }),
  fees: z.array(z.object({ amount })),
  steps: z.array(z.object({ intents: z.array(z.object({ intentHash: hex })) })),
});
const allQuotesSchema = quoteSchema.extend({ quotes: z.array(quoteSchema) });
const problemSchema = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  code: z.string(),
  detail: z.string().optional(),
  errors: z.array(z.strictObject({ field: z.string(), detail: z.string() })).optional(),
  solverErrors: z
    .array(
      z.strictObject({
        solver: z.string(),
        solverName: z.string(),
        code: z.string(),
        message: z.string(),
      }),
    )
    .optional(),
  requestId: z.string(),
});
const chainsSchema = z.object({
  chains: z.array(z.object({ chainId: z.int(), quoteSigner: z.string() })),
});

type Quote = z.infer<typeof quoteSchema>;

const source = { chainId: 8453, token: USDC_BASE, funder: FUNDER };
const destination = { chainId: 10, token: USDC_OPTIMISM, recipient: FUNDER };
const exactIn = {
  type: 'exact-in',
  dappId: 'tests',
  source: { ...source, amount: '100000000' },
  destination,
};

function post(path: string, body: unknown, base = sandbox.url): Promise<Response> {
  return fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': sandbox.apiKey },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

async function quote(body: unknown): Promise<Quote> {
  const response = await post('/v1/quotes', body);
  expect(response.status).toBe(200);
  return quoteSchema.parse(await response.json());
}

async function refused(body: unknown, status: number) {
  const response = await post('/v1/quotes', body);
  expect(response.status).toBe(status);
  expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  const problem = problemSchema.parse(await response.json());
  expect(problem).toMatchObject({ status, type: `${sandbox.url}/v1/errors/${problem.code}` });
  return problem;
}

const fieldsOf = (problem: z.infer<typeof problemSchema>) => problem.errors?.map(({ field }) => field);

async function signerOf(chainId: number): Promise<string | undefined> {
  const response = await fetch(`${sandbox.url}/v1/chains`, { headers: { 'x-api-key': sandbox.apiKey } });
  const { chains } = chainsSchema.parse(await response.json());
  return chains.find((chain) => chain.chainId === chainId)?.quoteSigner;
}

function recover({ id, intentHash, steps, expiresAt, signature }: Quote, chainId: number): Promise<Hex> {
  const hashes = [intentHash, ...steps.flatMap(({ intents }) => intents.map((intent) => intent.intentHash))];
  const covered = { id, intentHashes: [...new Set(hashes)].sort(), expiresAt: BigInt(expiresAt), chainId };
  return recoverTypedDataAddress({ ...signedData(covered), signature });
}

async function statusOf(filter: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${sandbox.url}/v1/intents/status?${filter}`, {
    headers: { 'x-api-key': sandbox.apiKey },
  });
  const { results } = z
    .object({ results: z.array(z.record(z.string(), z.unknown())) })
    .parse(await response.json());
  return results[0] ?? {};
}

const uuidOf = ({ id }: Quote) => id.slice('quote:'.length);

function sumOfFees({ fees }: Quote): bigint {
  return fees.reduce((sum, fee) => sum + fee.amount, 0n);
}

describe('amounts', () => {
  test.each([
    ['exact-in', exactIn],
    [
      'exact-out',
      { ...exactIn, type: 'exact-out', source, destination: { ...destination, amountOut: '77777777' } },
    ],
    ['custom', { ...exactIn, type: 'custom', destination: { ...destination, amountOut: '99000001' } }],
  ])('of an %s quote are integers, and the fees are the difference of the two sides', async (type, body) => {
    const made = await quote(body);
    expect(made.type).toBe(type);
    expect(made.source.amount).toBe(made.destination.amountOut + sumOfFees(made));
    expect(made.destination.minAmountOut).toBeLessThanOrEqual(made.destination.amountOut);
  });

  test('a fixed amount stays fixed', async () => {
    expect((await quote(exactIn)).source.amount).toBe(100_000_000n);
    const out = await quote({
      ...exactIn,
      type: 'exact-out',
      source,
      destination: { ...destination, amountOut: '5000000' },
    });
    expect(out.destination).toMatchObject({ amountOut: 5_000_000n, minAmountOut: 5_000_000n });
  });

  test('slippage of 1 % lowers the least output by 1 %, as a number or a string', async () => {
    for (const slippage of [0.01, '0.01']) {
      const { destination: to } = await quote({ ...exactIn, slippage });
      expect(to.minAmountOut).toBe(to.amountOut - to.amountOut / 100n);
    }
  });
});

describe('signatures', () => {
  test('of a Solana source chain recover in the same way', async () => {
    const made = await quote({
      ...exactIn,
      source: { chainId: SOLANA, token: USDC_SOLANA, funder: SOLANA_WALLET, amount: '100000000' },
    });
    expect(await recover(made, SOLANA)).toBe(await signerOf(SOLANA));
  });

  test('come from a new signer after a rotation, which the chain publishes', async () => {
    const before = await quote(exactIn);
    const old = await signerOf(8453);
    const other = await signerOf(42161);
    const response = await post('/rotate-signer', { chainId: 8453 }, sandbox.controlUrl);
    const rotated = await signerOf(8453);
    expect(await response.json()).toEqual({ chains: [{ chainId: 8453, quoteSigner: rotated }] });
    expect(rotated).not.toBe(old);
    expect(await signerOf(42161)).toBe(other);
    expect(await recover(before, 8453)).toBe(old);
    expect(await recover(await quote(exactIn), 8453)).toBe(rotated);
  });

  test('with allQuotes every quote has its own, and the best comes first', async () => {
    const response = await post('/v1/quotes', { ...exactIn, options: { allQuotes: true } });
    const { quotes, ...best } = allQuotesSchema.parse(await response.json());
    expect(quotes.length).toBeGreaterThan(1);
    expect(quotes[0]).toEqual(best);
    expect(new Set(quotes.map(({ id }) => id)).size).toBe(quotes.length);
    const outputs = quotes.map(({ destination: { amountOut } }) => amountOut);
    expect(outputs.every((output) => output <= best.destination.amountOut)).toBe(true);
    for (const each of quotes) expect(await recover(each, 8453)).toBe(await signerOf(8453));
  });
});

describe('the transaction that funds a quote', () => {
  test('moves the quote from active to submitted, and its intent to pending', async () => {
    const made = await quote(exactIn);
    expect(await statusOf(`quoteId=${uuidOf(made)}`)).toEqual({
      id: made.id,
      type: 'quote',
      status: 'active',
      updatedAt: expect.any(Number),
      steps: [],
    });
    expect(await statusOf(`intentHash=${made.intentHash}`)).toMatchObject({ status: 'unknown' });
    const funded = await post('/fund', { quoteId: made.id }, sandbox.controlUrl);
    expect(await funded.json()).toEqual({
      intentHash: made.intentHash,
      sourceTxHash: expect.stringMatching(/^0x/),
    });
    expect(await statusOf(`quoteId=${uuidOf(made)}`)).toMatchObject({
      status: 'submitted',
      intentHashes: [made.intentHash],
      sourceTx: { chainId: 8453, token: USDC_BASE, amount: '100000000' },
    });
    expect(await statusOf(`intentHash=${made.intentHash}`)).toMatchObject({ status: 'pending' });
  });

  test('moves its intent to settled', async () => {
    const quick = new Sandbox({ transfersPerSecond: 0, timeScale: 50 });
    await quick.start();
    onTestFinished(() => quick.close());
    const { intentHash } = await orderAt(quick, { fate: 'settled' });
    const moves = (): string[] =>
      quick.transitions().flatMap(({ subject, to }) => (subject === `intent:${intentHash}` ? [to] : []));
    await vi.waitFor(() => expect(moves()).toEqual(['pending', 'filled', 'settled']), { timeout: 300_000 });
  });

  test('funds a quote once, and only one that was made', async () => {
    const made = await quote(exactIn);
    const fund = (quoteId: string) => post('/fund', { quoteId, fate: 'refunded' }, sandbox.controlUrl);
    expect((await fund(uuidOf(made))).status).toBe(200);
    expect((await fund(made.id)).status).toBe(409);
    expect((await fund('quote:00000000-0000-4000-8000-000000000000')).status).toBe(404);
    expect((await post('/fund', { fate: 'refunded' }, sandbox.controlUrl)).status).toBe(400);
  });
});

describe('a request that is wrong', () => {
  test.each<[string, unknown, string]>([
    ['an unknown key inside', { ...exactIn, source: { ...exactIn.source, note: 'x' } }, 'source.note'],
    ['an unknown option', { ...exactIn, options: { all: true } }, 'options.all'],
    ['an amount of 0', { ...exactIn, source: { ...source, amount: '0' } }, 'source.amount'],
    ['exact-in without an amount', { ...exactIn, source }, 'source.amount'],
    [
      'exact-in with an output',
      { ...exactIn, destination: { ...destination, amountOut: '1' } },
      'destination.amountOut',
    ],
    ['exact-out without an output', { ...exactIn, type: 'exact-out', source }, 'destination.amountOut'],
    ['custom without an output', { ...exactIn, type: 'custom' }, 'destination.amountOut'],
    [
      'a recipient of another kind of chain',
      { ...exactIn, destination: { ...destination, recipient: SOLANA_WALLET } },
      'destination.recipient',
    ],
    ['a slippage in words', { ...exactIn, slippage: 'little' }, 'slippage'],
    ['a list', [exactIn], 'body'],
  ])('with %s is invalid-request and names the field', async (_case, body, field) => {
    const problem = await refused(body, 400);
    expect(problem.code).toBe('invalid-request');
    expect(fieldsOf(problem)).toEqual([field]);
  });

  test.each(['{', '', '"text"', 'null', '{"__proto__":1}'])('that is %j is invalid-request', async (text) => {
    expect((await refused(text, 400)).code).toBe('invalid-request');
  });

  test('with a slippage of 2 as text is slippage-out-of-bounds', async () => {
    expect((await refused({ ...exactIn, slippage: '2' }, 400)).code).toBe('slippage-out-of-bounds');
  });
});

describe('a route without a solver', () => {
  const tron = { chainId: TRON, token: USDT_TRON, recipient: USDT_TRON };
  const from = (part: object) => ({ ...exactIn, source: { ...exactIn.source, ...part } });

  test.each<[string, unknown, number, string]>([
    ['an unknown chain', from({ chainId: 999 }), 422, 'chain-not-supported'],
    [
      'one chain',
      { ...exactIn, destination: { ...destination, chainId: 8453, token: USDC_BASE } },
      422,
      'chain-pair-unsupported',
    ],
    [
      'Tron as source',
      from({ chainId: TRON, token: USDT_TRON, funder: USDT_TRON }),
      422,
      'chain-pair-unsupported',
    ],
    ['too little', from({ amount: '99999' }), 422, 'amount-too-low'],
    ['too much', from({ amount: '1000000000001' }), 422, 'amount-too-high'],
    [
      'more than there is',
      { ...from({ amount: '250000000001' }), destination: tron },
      422,
      'insufficient-liquidity',
    ],
    [
      'an output too near to the input',
      { ...exactIn, type: 'custom', destination: { ...destination, amountOut: '100000000' } },
      422,
      'no-route-found',
    ],
    ['a token that is not listed', from({ token: FUNDER }), 502, 'solver-error'],
  ])('because of %s states it, for every solver', async (_case, body, status, code) => {
    const problem = await refused(body, status);
    expect(problem.code).toBe(code);
    expect(problem.solverErrors?.length).toBeGreaterThan(0);
    for (const error of problem.solverErrors ?? []) expect(error.code).toBe(code);
  });

  test('Tron as destination is served', async () => {
    await quote({ ...exactIn, destination: tron });
  });
});
