import { decodeAbiParameters, decodeFunctionData, erc20Abi, getAddress, type Hex } from 'viem';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ROUTE_ABI } from '../../sandbox/quotes/intents.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';

const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = new Sandbox({ transfersPerSecond: 0 });
  await sandbox.start();
});

afterAll(async () => {
  await sandbox.close();
});

const quoteRequest = {
  sourceChainID: 8453,
  destinationChainID: 10,
  sourceToken: USDC_BASE,
  destinationToken: USDC_OPTIMISM,
  sourceAmount: '100000000',
  funder: WALLET,
  recipient: WALLET,
};
const request = { dAppID: 'tests', quoteRequest };

const hex = z.custom<Hex>((value) => typeof value === 'string' && /^0x[0-9a-f]+$/i.test(value));
const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/);
const amount = z.string().regex(/^\d+$/);
const entrySchema = z.strictObject({
  quoteID: z.string().regex(/^quote:[0-9a-f-]{36}$/),
  quoteResponseID: z.string().regex(/^quoteResponse:[0-9a-f-]{36}$/),
  solverID: address,
  quoteData: z.strictObject({
    contracts: z.strictObject({ sourcePortal: address, destinationPortal: address, prover: address }),
    quoteResponse: z.strictObject({
      intentExecutionType: z.enum(['SELF_PUBLISH', 'GASLESS']),
      sourceChainID: z.int(),
      destinationChainID: z.int(),
      finalDestinationChainID: z.int(),
      sourceToken: z.string(),
      destinationToken: z.string(),
      sourceAmount: amount,
      destinationAmount: amount,
      minimumDestinationAmount: amount,
      funder: z.string(),
      refundRecipient: z.string(),
      recipient: z.string(),
      fees: z.array(
        z.strictObject({
          name: z.string(),
          description: z.string(),
          token: z.strictObject({ address: z.string(), decimals: z.int(), symbol: z.string() }),
          amount,
          kinds: z.array(z.strictObject({ kind: z.string(), amount, basis: z.string() })),
        }),
      ),
      deadline: z.int(),
      quoteExpiry: z.int(),
      estimatedFulfillTimeSec: z.int(),
      encodedRoute: z.string().regex(/^0x[0-9a-f]+$/),
    }),
  }),
});
const answerSchema = z.strictObject({ data: z.array(entrySchema) });

function post(body: unknown, path = '/api/v3/quotes/exactIn'): Promise<Response> {
  return fetch(sandbox.quotesUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

async function quotes(body: unknown) {
  const response = await post(body);
  expect(response.status).toBe(201);
  return answerSchema.parse(await response.json()).data;
}

async function expectRefusal(response: Response, statusCode: number, field: unknown): Promise<void> {
  expect(response.status).toBe(statusCode);
  expect(await response.json()).toEqual({
    statusCode,
    createdBy: 'ValidationFilter',
    validationErrors: [{ field, message: expect.stringMatching(/./) }],
  });
}

describe('exactIn', () => {
  test('quotes without a key, the best first, with fees that add up', async () => {
    const entries = await quotes(request);
    expect(entries.length).toBeGreaterThan(1);
    const outputs = entries.map(({ quoteData: { quoteResponse } }) =>
      Number(quoteResponse.destinationAmount),
    );
    expect(outputs).toEqual([...outputs].sort((a, b) => b - a));
    for (const { quoteResponse } of entries.map(({ quoteData }) => quoteData)) {
      const fees = quoteResponse.fees.reduce((sum, fee) => sum + BigInt(fee.amount), 0n);
      expect(BigInt(quoteResponse.destinationAmount) + fees).toBe(100_000_000n);
      expect(quoteResponse).toMatchObject({ intentExecutionType: 'SELF_PUBLISH', sourceAmount: '100000000' });
    }
  });

  test('takes other contracts than the default ones', async () => {
    const [entry] = await quotes({ ...request, contracts: { prover: WALLET } });
    expect(entry?.quoteData.contracts.prover).toBe(WALLET.toLowerCase());
  });

  test.each([
    ['an unknown chain', { sourceChainID: 5 }],
    ['one chain', { destinationChainID: 8453, destinationToken: USDC_BASE }],
    ['a token that is not listed', { sourceToken: WALLET }],
    ['too little', { sourceAmount: '1' }],
  ])('succeeds without entries for %s', async (_case, part) => {
    expect(await quotes({ ...request, quoteRequest: { ...quoteRequest, ...part } })).toEqual([]);
  });

  test.each<[string, unknown, string]>([
    ['a missing dAppID', { quoteRequest }, 'dAppID'],
    ['a dAppID with a space', { ...request, dAppID: 'a b' }, 'dAppID'],
    ['a dAppID of 65 characters', { ...request, dAppID: 'a'.repeat(65) }, 'dAppID'],
    ['an unknown execution type', { ...request, intentExecutionTypes: ['X'] }, 'intentExecutionTypes.0'],
    ['an unknown key', { ...request, dappId: 'tests' }, 'dappId'],
    ['no quoteRequest', { dAppID: 'tests' }, 'quoteRequest'],
    [
      'an amount that is a number',
      { ...request, quoteRequest: { ...quoteRequest, sourceAmount: 1 } },
      'quoteRequest.sourceAmount',
    ],
    [
      'a malformed funder',
      { ...request, quoteRequest: { ...quoteRequest, funder: 'me' } },
      'quoteRequest.funder',
    ],
    ['no JSON', '{', 'body'],
  ])('refuses %s in its own form', async (_case, body, field) => {
    await expectRefusal(await post(body), 400, field);
  });
});

describe('exactOut', () => {
  const { sourceAmount, ...ends } = quoteRequest;
  const outRequest = { ...request, quoteRequest: { ...ends, destinationAmount: sourceAmount } };

  test('quotes the wanted output, the cheapest input first', async () => {
    const response = await post(outRequest, '/api/v3/quotes/exactOut');
    expect(response.status).toBe(201);
    const found = answerSchema
      .parse(await response.json())
      .data.map(({ quoteData }) => quoteData.quoteResponse);
    expect(found.map(({ destinationAmount }) => destinationAmount)).toEqual(Array(3).fill(sourceAmount));
    const inputs = found.map((one) => Number(one.sourceAmount));
    expect(inputs).toEqual(inputs.toSorted((a, b) => a - b));
    for (const { fees, sourceAmount: paid } of found) {
      const sum = fees.reduce((all, { amount: fee }) => all + BigInt(fee), 0n);
      expect(BigInt(paid) - sum).toBe(BigInt(sourceAmount));
    }
  });

  test('refuses an input in place of the output', async () => {
    const response = await post(request, '/api/v3/quotes/exactOut');
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      validationErrors: [{ field: 'quoteRequest.destinationAmount' }, { field: 'quoteRequest.sourceAmount' }],
    });
  });
});

describe('single', () => {
  test('answers with the best quote alone', async () => {
    const [best] = await quotes(request);
    const response = await post(request, '/api/v3/quotes/single');
    expect(response.status).toBe(201);
    const { data } = z.strictObject({ data: entrySchema.shape.quoteData }).parse(await response.json());
    expect(data.contracts).toEqual(best?.quoteData.contracts);
    expect(data.quoteResponse.destinationAmount).toBe(best?.quoteData.quoteResponse.destinationAmount);
  });

  test('is 404 where no solver quotes', async () => {
    const little = { ...request, quoteRequest: { ...quoteRequest, sourceAmount: '1' } };
    await expectRefusal(await post(little, '/api/v3/quotes/single'), 404, 'quoteRequest');
  });
});

describe('an open quote', () => {
  test('has a route whose bytes pay the stated output to the recipient', async () => {
    const [entry] = await quotes(request);
    const { encodedRoute, destinationAmount } = entry?.quoteData.quoteResponse ?? {};
    const [route] = decodeAbiParameters(ROUTE_ABI, hex.parse(encodedRoute));
    const [call] = route.calls;
    if (call === undefined || destinationAmount === undefined) throw new Error('the route has a call');
    expect(decodeFunctionData({ abi: erc20Abi, data: call.data })).toEqual({
      functionName: 'transfer',
      args: [WALLET, BigInt(destinationAmount)],
    });
    expect(getAddress(route.portal)).toBe(getAddress(entry?.quoteData.contracts.destinationPortal ?? ''));
  });

  test('names the requested refundRecipient, else the funder', async () => {
    const stated = async (more: object) =>
      (await quotes({ ...request, quoteRequest: { ...quoteRequest, ...more } }))[0]?.quoteData.quoteResponse;
    expect((await stated({}))?.refundRecipient).toBe(WALLET);
    const refundRecipient = '0x2222222222222222222222222222222222222222';
    expect((await stated({ refundRecipient }))?.refundRecipient).toBe(refundRecipient);
    const elsewhere = { ...quoteRequest, refundRecipient: 'me' };
    const refused = await post({ ...request, quoteRequest: elsewhere });
    await expectRefusal(refused, 400, 'quoteRequest.refundRecipient');
  });
});

test.each([
  '/api/v1/solverRegistry/registerSolver',
  '/%zz',
])('%s is only listed: 404 in the same form', async (path) => {
  await expectRefusal(await post({}, path), 404, 'path');
});

describe('the market', () => {
  const setMarket = async (market: object) =>
    fetch(`${sandbox.controlUrl}/market`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(market),
    });

  const outputs = async () =>
    (await quotes(request)).map(({ quoteData }) => BigInt(quoteData.quoteResponse.destinationAmount));

  afterEach(() => {
    sandbox.setMarket({ extraFee: 0, solvers: 3 });
  });

  test('can be made dearer: outputs fall, and amounts and fees still add up', async () => {
    const before = await outputs();
    expect(await (await setMarket({ extraFee: 0.02 })).json()).toEqual({ extraFee: 0.02, solvers: 3 });
    const entries = await quotes(request);
    const after = entries.map(({ quoteData }) => quoteData.quoteResponse);
    expect(after.map((one) => BigInt(one.destinationAmount))).toEqual(before.map((one) => one - 2_000_000n));
    for (const { sourceAmount, destinationAmount, fees } of after) {
      const paid = fees.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
      expect(BigInt(destinationAmount) + paid).toBe(BigInt(sourceAmount));
    }
  });

  test('can lose its solvers, which is a success without quotes, and get them back', async () => {
    await setMarket({ solvers: 0 });
    expect(await quotes(request)).toEqual([]);
    expect(await (await fetch(`${sandbox.controlUrl}/market`)).json()).toEqual({ extraFee: 0, solvers: 0 });
    await setMarket({ solvers: 2 });
    expect(await quotes(request)).toHaveLength(2);
  });

  test('is recorded in the log of answers: the request, and the outputs of the answer', async () => {
    const shown = (await outputs()).map(String);
    expect(sandbox.answers().at(-1)?.quoted).toEqual({ request: quoteRequest, outputs: shown });
  });

  test.each([
    { solvers: 4 },
    { solvers: 0.5 },
    { extraFee: -0.1 },
    { extraFee: 1 },
    { fee: 1 },
  ])('refuses %j', async (market) => {
    expect((await setMarket(market)).status).toBe(400);
    expect(await quotes(request)).toHaveLength(3);
  });
});
