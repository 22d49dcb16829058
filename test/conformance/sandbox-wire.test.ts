import {
  concat,
  decodeAbiParameters,
  decodeFunctionData,
  encodeAbiParameters,
  erc20Abi,
  getAddress,
  type Hex,
  keccak256,
  numberToHex,
  parseAbi,
  parseAbiParameters,
  toFunctionSelector,
} from 'viem';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Sandbox, type SandboxOptions } from '../../sandbox/sandbox.ts';
import { readQuoteAnswer } from '../../src/upstream/wire/quote.ts';
import { opening } from '../support/opening.ts';

const { started } = opening();

const FUNDER = '0x52908400098527886E0F7030069857D2E4169EE7';
const REFUNDS = '0x2222222222222222222222222222222222222222';
const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
const USDT_OPTIMISM = '0x94b008aA00579c1307B0EF2c499aD98a8ce58e58';
const USDC_SOLANA = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const SOLANA = 1399811149;
const SOLANA_WALLET = '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T';

const evm = {
  type: 'exact-in',
  dappId: 'tests',
  source: { chainId: 8453, token: USDC_BASE, funder: FUNDER, amount: '100000000' },
  destination: { chainId: 10, token: USDC_OPTIMISM, recipient: FUNDER },
};
const swapped = { ...evm, destination: { ...evm.destination, token: USDT_OPTIMISM } };
const fromSolana = {
  ...evm,
  source: { chainId: SOLANA, token: USDC_SOLANA, funder: SOLANA_WALLET, amount: '100000000' },
};
const toSolana = {
  ...evm,
  destination: { chainId: SOLANA, token: USDC_SOLANA, recipient: SOLANA_WALLET },
};

/** No quote of it expires, on a busy machine too. */
function deployment(options: SandboxOptions = {}): Promise<Sandbox> {
  return started(new Sandbox({ transfersPerSecond: 0, ...options }));
}

function post(sandbox: Sandbox, path: string, body: unknown): Promise<Response> {
  return fetch(sandbox.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': sandbox.apiKey },
    body: JSON.stringify(body),
  });
}

async function quoteAt<T>(sandbox: Sandbox, schema: z.ZodType<T>, body: unknown): Promise<T> {
  const response = await post(sandbox, '/v1/quotes', body);
  expect(response.status).toBe(200);
  return schema.parse(await response.json());
}

const hex = z.custom<Hex>((value) => typeof value === 'string' && /^0x[0-9a-f]*$/i.test(value));
const amount = z.string().regex(/^\d+$/);
const word = z.string().min(1);
const signed = {
  id: z.string().regex(/^quote:[0-9a-f-]{36}$/),
  type: z.enum(['exact-in', 'exact-out', 'custom']),
  signature: hex,
  expiresAt: z.int(),
  intentHash: hex,
};
const transaction = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('evm'), chainId: z.int(), to: hex, data: hex, value: z.literal('0') }),
  z.strictObject({
    type: z.literal('svm'),
    chainId: z.int(),
    feePayer: word,
    instructions: z.array(z.unknown()).length(0),
  }),
]);

/** The members of the interface, and no other. */
const strictSchema = z.strictObject({
  ...signed,
  source: z.strictObject({ chainId: z.int(), funder: word }),
  destination: z.strictObject({ amountOut: amount, minAmountOut: amount }),
  fees: z.array(z.strictObject({ type: word })).min(1),
  steps: z.array(
    z.strictObject({
      type: word,
      intents: z.array(z.strictObject({ intentHash: hex, role: word })),
    }),
  ),
  execution: z.strictObject({ transaction }),
});

const tokens = z.array(z.strictObject({ token: word, amount }));
const intent = z.strictObject({
  route: z.strictObject({
    salt: hex,
    destination: z.int(),
    deadline: z.int(),
    portal: word,
    nativeAmount: z.literal('0'),
    tokens,
    calls: z.array(z.strictObject({ target: word, data: hex, value: z.literal('0') })),
  }),
  reward: z.strictObject({
    deadline: z.int(),
    creator: word,
    prover: word,
    nativeAmount: z.literal('0'),
    tokens,
  }),
});
const described = { symbol: word.nullable(), decimals: z.int().nullable() };
const fees = z.array(
  z.strictObject({
    type: word,
    amount,
    token: z.strictObject({ chainId: z.int(), address: word, ...described }),
    estimate: z.boolean(),
  }),
);
const side = z.strictObject({ chainId: z.int(), token: word, amount });

/** The recorded shape, and no other. */
const recordedSchema = z.strictObject({
  ...signed,
  slippage: z.number(),
  solver: z.strictObject({ id: hex }),
  quotes: z.null(),
  source: z.strictObject({ chainId: z.int(), token: word, ...described, funder: word, amount }),
  destination: z.strictObject({
    chainId: z.int(),
    token: word,
    ...described,
    recipient: word,
    amountOut: amount,
    minAmountOut: amount,
  }),
  refundRecipient: word.optional(),
  fees,
  steps: z.array(
    z.strictObject({
      type: z.string().regex(/^[a-z]+$/),
      provider: word,
      from: side,
      to: side,
      fees,
      estimatedDurationSec: z.number().positive(),
      intents: z.array(z.strictObject({ role: word, intentHash: hex, intent })),
    }),
  ),
  execution: z.strictObject({ transaction, intent, vault: hex.nullable() }),
});

describe('a quote in the recorded shape, which is the default', () => {
  test.each([
    ['between EVM chains', evm],
    ['with a swap', swapped],
    ['from Solana', fromSolana],
    ['to Solana', toSolana],
  ])('%s has exactly its members, and the daemon reads it whole', async (_case, body) => {
    const sandbox = await deployment();
    const found = await quoteAt(sandbox, z.json(), body);
    recordedSchema.parse(found);
    expect(readQuoteAnswer(found)).toMatchObject({ value: { unreadable: [] } });
  });

  test('has null for the symbol and decimals of a chain that is not EVM, and an empty list for a step without intent', async () => {
    const { source, destination, steps, execution } = await quoteAt(
      await deployment(),
      recordedSchema,
      toSolana,
    );
    expect(source).toMatchObject({ symbol: 'USDC', decimals: 6 });
    expect(destination).toMatchObject({ symbol: null, decimals: null });
    expect(steps.map(({ type, intents }) => [type, intents.length])).toEqual([
      ['bridge', 1],
      ['transfer', 0],
    ]);
    expect(execution.vault).not.toBe(null);
  });

  test('from Solana has no vault, and a transaction that the funder pays for', async () => {
    const { execution } = await quoteAt(await deployment(), recordedSchema, fromSolana);
    expect(execution).toMatchObject({
      vault: null,
      transaction: { type: 'svm', chainId: SOLANA, feePayer: SOLANA_WALLET, instructions: [] },
    });
  });

  test('lists the quote of every solver with allQuotes, whose entries have no list', async () => {
    const response = await post(await deployment(), '/v1/quotes', { ...evm, options: { allQuotes: true } });
    const { quotes, ...best } = z.looseObject({ quotes: z.array(z.json()) }).parse(await response.json());
    expect(quotes).toHaveLength(3);
    expect(quotes[0]).toEqual(best);
    for (const entry of quotes) recordedSchema.omit({ quotes: true }).parse(entry);
  });
});

const PORTAL = parseAbi([
  'struct TokenAmount { address token; uint256 amount; }',
  'struct Reward { uint64 deadline; address creator; address prover; uint256 nativeAmount; TokenAmount[] tokens; }',
  'function publishAndFund(uint64 destination, bytes route, Reward reward, bool allowPartial) payable',
]);
const REWARD = parseAbiParameters([
  'Reward reward',
  'struct TokenAmount { address token; uint256 amount; }',
  'struct Reward { uint64 deadline; address creator; address prover; uint256 nativeAmount; TokenAmount[] tokens; }',
]);
const ROUTE = parseAbiParameters([
  'Route route',
  'struct TokenAmount { address token; uint256 amount; }',
  'struct Call { address target; bytes data; uint256 value; }',
  'struct Route { bytes32 salt; uint64 deadline; address portal; uint256 nativeAmount; TokenAmount[] tokens; Call[] calls; }',
]);

async function evmQuote(body: object = evm, options: SandboxOptions = {}) {
  const quote = await quoteAt(await deployment(options), recordedSchema, body);
  const { transaction: funding } = quote.execution;
  if (funding.type !== 'evm') throw new Error(`found a transaction of ${funding.type}`);
  return { ...quote, funding };
}

describe('the transaction of a quote', () => {
  test('calls publishAndFund, and its arguments are the intent that the quote states and signs', async () => {
    const { intentHash, funding, execution, destination } = await evmQuote();
    expect(toFunctionSelector(PORTAL[0])).toBe('0xdf00f8fa');
    const [chain, encodedRoute, reward, isPartial] = decodeFunctionData({
      abi: PORTAL,
      data: funding.data,
    }).args;
    const rewardHash = keccak256(encodeAbiParameters(REWARD, [reward]));
    const head = numberToHex(chain, { size: 8 });
    expect(keccak256(concat([head, keccak256(encodedRoute), rewardHash]))).toBe(intentHash);
    expect([chain, isPartial]).toEqual([10n, false]);
    expect(reward).toMatchObject({ creator: FUNDER, tokens: [{ token: USDC_BASE, amount: 100_000_000n }] });
    const [route] = decodeAbiParameters(ROUTE, encodedRoute);
    const amountOut = BigInt(destination.amountOut);
    expect(route.tokens).toEqual([{ token: USDC_OPTIMISM, amount: amountOut }]);
    const [call] = route.calls;
    if (call === undefined) throw new Error('the route has a call');
    expect(decodeFunctionData({ abi: erc20Abi, data: call.data })).toEqual({
      functionName: 'transfer',
      args: [FUNDER, amountOut],
    });
    const stated = execution.intent;
    expect(stated.route).toMatchObject({ salt: route.salt, deadline: Number(route.deadline) });
    expect(stated.reward).toMatchObject({ creator: FUNDER, deadline: Number(reward.deadline) });
    expect(getAddress(funding.to)).toBe(getAddress(stated.route.portal));
  });

  test('can be sent until the quote ends, its route 85 min and its reward 96 min longer', async () => {
    const { expiresAt, execution } = await evmQuote();
    expect(execution.intent.route.deadline - expiresAt).toBe(5_100);
    expect(execution.intent.reward.deadline - expiresAt).toBe(5_760);
  });

  test('has deadlines that follow the time scale', async () => {
    const { expiresAt, execution } = await evmQuote(evm, { timeScale: 100 });
    expect(execution.intent.route.deadline - expiresAt).toBe(51);
    expect(execution.intent.reward.deadline - expiresAt).toBe(58);
  });

  test('gives a refund to the refundRecipient, which the quote repeats', async () => {
    const { refundRecipient, execution } = await evmQuote({ ...evm, refundRecipient: REFUNDS });
    expect([refundRecipient, execution.intent.reward.creator]).toEqual([REFUNDS, REFUNDS]);
  });
});

test('a refundRecipient of another chain, and the visibility of 0.8.0, are refused by name', async () => {
  const sandbox = await deployment();
  const problem = z.looseObject({ errors: z.array(z.object({ field: z.string(), detail: z.string() })) });
  const errorsOf = async (more: object) => {
    const response = await post(sandbox, '/v1/quotes', { ...evm, ...more });
    expect(response.status).toBe(400);
    return problem.parse(await response.json()).errors;
  };
  expect(await errorsOf({ refundRecipient: SOLANA_WALLET })).toEqual([
    { field: 'refundRecipient', detail: expect.stringMatching(/expected an address of Base/) },
  ]);
  expect(await errorsOf({ options: { visibility: 'public' } })).toEqual([
    { field: 'options.visibility', detail: expect.stringMatching(/retired with 0\.8\.0/) },
  ]);
});

test('a refund arrives at the refundRecipient', async () => {
  const sandbox = await deployment({ timeScale: 500 });
  let made: Hex;
  for (;;) {
    const { id, intentHash } = await quoteAt(sandbox, recordedSchema, { ...evm, refundRecipient: REFUNDS });
    made = intentHash;
    const funded = await fetch(`${sandbox.controlUrl}/fund`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ quoteId: id, fate: 'refunded' }),
    });
    // On a busy machine it expires before.
    if (funded.status === 200) break;
  }
  const refunds = () =>
    sandbox.payments().filter(({ payment, intentHash }) => payment === 'refund' && intentHash === made);
  await expect.poll(refunds, { timeout: 170_000 }).toMatchObject([{ recipient: REFUNDS }]);
});

describe('a quote with --wire strict', () => {
  test.each([
    ['between EVM chains', evm],
    ['with a swap', swapped],
    ['from Solana', fromSolana],
  ])('%s has the members of the interface alone', async (_case, body) => {
    const found = await quoteAt(await deployment({ wire: 'strict' }), z.json(), body);
    strictSchema.parse(found);
    expect(readQuoteAnswer(found)).toMatchObject({ value: { unreadable: [] } });
  });

  test('lists those of every solver in the same shape', async () => {
    const sandbox = await deployment({ wire: 'strict' });
    const response = await post(sandbox, '/v1/quotes', { ...evm, options: { allQuotes: true } });
    const list = strictSchema.extend({ quotes: z.array(strictSchema) });
    expect(list.parse(await response.json()).quotes).toHaveLength(3);
  });
});
