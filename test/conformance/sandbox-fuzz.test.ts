import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../src/sandbox/sandbox.ts';

const RUNS = 150;
const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
const SIGNATURE = `0x${'12'.repeat(64)}1b`;
const NONCE = `0x${'07'.repeat(32)}`;
const [amount, validAfter, deadline] = ['100000000', '0', '99999999999'];

let sandbox: Sandbox;
let quoteId = '';
let vault = '';

beforeAll(async () => {
  sandbox = new Sandbox({ transfersPerSecond: 0 });
  await sandbox.start();
  const quote = await (await post(sandbox.url, '/v1/quotes', JSON.stringify(BODIES['/v1/quotes']()))).json();
  quoteId = z.object({ id: z.string() }).parse(quote).id;
  const path = '/v1/deposit-gateway/deposit-addresses';
  const created = await (await post(sandbox.url, path, JSON.stringify(BODIES[path]()))).json();
  vault = z.object({ data: z.object({ vaultAddress: z.string() }) }).parse(created).data.vaultAddress;
});

afterAll(async () => {
  await sandbox.close();
});

const erc3009 = () => ({ from: WALLET, value: amount, validAfter, validBefore: deadline, nonce: NONCE });
const owned = () => ({ owner: WALLET, deadline });

/** A body of each endpoint that is right in its form. */
const BODIES = {
  '/v1/quotes': () => ({
    type: 'exact-in',
    dappId: 'fuzz',
    slippage: '0.01',
    source: { chainId: 8453, token: BASE, funder: WALLET, amount },
    destination: { chainId: 10, token: OPTIMISM, recipient: WALLET, minAmountOut: '1' },
    options: { allQuotes: false },
  }),
  '/v1/gasless/submit/erc-3009': () => ({
    quoteId,
    authorization: { ...erc3009(), to: WALLET },
    signature: SIGNATURE,
  }),
  '/v1/gasless/submit/permit2': () => ({
    quoteId,
    authorization: { ...owned(), spender: WALLET, token: BASE, amount, nonce: '1' },
    signature: SIGNATURE,
  }),
  '/v1/gasless/submit/permit3': () => ({
    quoteId,
    authorization: {
      ...owned(),
      salt: NONCE,
      timestamp: 1,
      permits: [{ chainId: 8453, token: BASE, amount, spender: WALLET }],
    },
    signature: SIGNATURE,
  }),
  '/v1/deposit-gateway/deposit-addresses': () => ({
    sourceChainId: 8453,
    destinationChainId: 10,
    sourceToken: BASE,
    destinationToken: OPTIMISM,
    amount,
    recipient: WALLET,
    refundRecipient: WALLET,
  }),
  '/v1/deposit-gateway/submit/erc-3009': () => ({
    chainId: 8453,
    ...erc3009(),
    to: vault,
    signature: SIGNATURE,
  }),
  '/v1/deposit-gateway/submit/erc-2612': () => ({
    chainId: 8453,
    ...owned(),
    spender: vault,
    value: amount,
    signature: SIGNATURE,
  }),
  '/api/v3/quotes/exactIn': () => ({
    dAppID: 'fuzz',
    intentExecutionTypes: ['GASLESS'],
    quoteRequest: {
      sourceChainID: 8453,
      destinationChainID: 10,
      sourceToken: BASE,
      destinationToken: OPTIMISM,
      sourceAmount: amount,
      funder: WALLET,
      recipient: WALLET,
    },
  }),
};

/** An answer of the interface's own shapes: a success, a Problem, the gateway's form or the open service's. */
const shapeSchema = z.union([
  z.looseObject({ id: z.string() }),
  z.looseObject({ data: z.unknown() }),
  z.looseObject({ results: z.array(z.unknown()) }),
  z.looseObject({ type: z.url(), title: z.string().min(1), status: z.int(), code: z.string() }),
  z.looseObject({ statusCode: z.int(), error: z.string(), message: z.string(), code: z.string() }),
  z.looseObject({
    statusCode: z.int(),
    createdBy: z.literal('ValidationFilter'),
    validationErrors: z.array(z.object({ field: z.string().min(1), message: z.string().min(1) })),
  }),
]);

function post(base: string, path: string, body: string): Promise<Response> {
  return fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': sandbox.apiKey },
    body,
  });
}

async function expectShape(response: Response): Promise<void> {
  const text = await response.text();
  expect(response.status, text).not.toBe(500);
  expect(shapeSchema.safeParse(JSON.parse(text)).success, text).toBe(true);
}

/** A number that picks a place, and what is put there; `undefined` takes the member away. */
const mutation = fc.record({
  place: fc.nat(),
  value: fc.oneof(
    fc.jsonValue(),
    fc.constant(undefined),
    fc.bigInt({ min: 0n, max: 2n ** 260n }).map(String),
    fc.constantFrom(0, -1, 1e30, '0', '1e3', '0x', WALLET.toLowerCase(), `0x${'F'.repeat(40)}`, ' '),
    fc.uint8Array({ minLength: 65, maxLength: 65 }).map((raw) => `0x${Buffer.from(raw).toString('hex')}`),
  ),
});

type Tree = { [key: string]: unknown };

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;

/** Every member of a body, however deep. */
function places(tree: Tree): { parent: Tree; key: string }[] {
  return Object.entries(tree).flatMap(([key, value]) => [
    { parent: tree, key },
    ...(isTree(value) ? places(value) : []),
  ]);
}

const PATHS = Object.entries(BODIES);

test.each(PATHS)(
  '%s answers mutated and random bodies in shapes of the interface',
  async (path, body) => {
    const base = path.startsWith('/api') ? sandbox.quotesUrl : sandbox.url;
    const mutated = fc.array(mutation, { minLength: 1, maxLength: 3 }).map((mutations) => {
      const tree: Tree = structuredClone(body());
      for (const { place, value } of mutations) {
        const all = places(tree);
        const found = all[place % Math.max(1, all.length)];
        if (found !== undefined) found.parent[found.key] = value;
      }
      return JSON.stringify(tree);
    });
    const anything = fc.oneof({ weight: 8, arbitrary: mutated }, fc.json(), fc.string());
    await fc.assert(
      fc.asyncProperty(anything, async (text) => expectShape(await post(base, path, text))),
      { numRuns: RUNS },
    );
  },
  60_000,
);

test('the status endpoint answers any query in shapes of the interface', async () => {
  const name = fc.constantFrom('wallet', 'status', 'cursor', 'limit', 'quoteId', 'jobId', 'intentHash', 'x');
  const value = fc.oneof(fc.string(), fc.uuid(), fc.constantFrom('pending', '1', '51', WALLET, '__proto__'));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(name, value), { maxLength: 4 }), async (pairs) => {
      const query = new URLSearchParams(pairs.map(([key, text]) => [key, text.toWellFormed()]));
      const response = await fetch(`${sandbox.url}/v1/intents/status?${query}`, {
        headers: { 'x-api-key': sandbox.apiKey },
      });
      await expectShape(response);
    }),
    { numRuns: RUNS },
  );
}, 60_000);
