import { decodeFunctionData, type Hex, pad, parseAbi, toEventSelector, zeroAddress } from 'viem';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { orderAt, quoteAt, type SandboxOrder } from '../support/sandbox-order.ts';

const { started } = opening();

const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const SOLANA_WALLET = '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T';
const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const SOLANA = 1399811149;

const BURN = parseAbi([
  'function depositForBurn(uint256 amount, uint32 destinationDomain, bytes32 mintRecipient, address burnToken)',
]);

const hex = z.custom<Hex>((value) => typeof value === 'string' && /^0x[0-9a-f]*$/i.test(value));

const quoteSchema = z.object({
  destination: z.object({ amountOut: z.string() }),
  fees: z.array(z.object({ type: z.string(), estimate: z.boolean() })),
  steps: z.array(z.object({ provider: z.string(), intents: z.array(z.object({ role: z.string() })) })),
  execution: z.object({
    intent: z.object({
      route: z.looseObject({ calls: z.array(z.object({ data: hex })) }),
    }),
  }),
});

function deployment(timeScale = 1): Promise<Sandbox> {
  return started(new Sandbox({ transfersPerSecond: 0, localIntents: true, timeScale }));
}

async function quoted(order: SandboxOrder = {}): Promise<z.infer<typeof quoteSchema>> {
  return quoteSchema.parse(await quoteAt(await deployment(), order));
}

test('a local intent ends on its source chain, where its route burns the tokens for the recipient', async () => {
  const { steps, fees, execution, destination } = await quoted();
  expect(steps.map(({ provider, intents }) => [provider, intents.map(({ role }) => role)])).toEqual([
    ['cctp', ['local']],
  ]);
  expect(fees.map(({ type, estimate }) => [type, estimate])).toEqual([
    ['protocol', false],
    ['cctp', true],
  ]);
  const { route } = execution.intent;
  const { amountOut } = destination;
  expect(route).toMatchObject({ destination: 8453, tokens: [{ token: USDC_BASE, amount: amountOut }] });
  expect(decodeFunctionData({ abi: BURN, data: route.calls[0]?.data ?? '0x' }).args).toEqual([
    BigInt(amountOut),
    2,
    pad(WALLET, { size: 32 }).toLowerCase(),
    USDC_BASE,
  ]);
});

test.each<[string, SandboxOrder]>([
  ['another token', { swapsTo: 'USDT' }],
  ['another source', { from: SOLANA, to: 10, funder: SOLANA_WALLET }],
])('no local intent is made for %s', async (_case, order) => {
  expect((await quoted(order)).steps[0]?.intents[0]?.role).toBe('primary');
});

test('a local intent is fulfilled by a transaction of its source chain, and paid by a mint that names no intent', async () => {
  const sandbox = await deployment(100);
  const { intentHash } = await orderAt(sandbox);
  const fulfilment = await eventually('it is filled, with its details', async () => {
    const response = await fetch(`${sandbox.url}/v1/intents/status?intentHash=${intentHash}`, {
      headers: { 'x-api-key': sandbox.apiKey },
    });
    const [record] = statusSchema.parse(await response.json()).results;
    return record?.steps?.[0]?.transactions.fulfilled ?? null;
  });
  expect(fulfilment.chainId).toBe(8453);
  const paid = (kind: string) =>
    sandbox.payments().find((one) => one.intentHash === intentHash && one.payment === kind);
  const [burn, mint] = [paid('burn'), paid('destination')];
  expect(burn).toMatchObject({ chainId: 8453, txHash: fulfilment.txHash });
  expect(mint).toMatchObject({ chainId: 10, from: zeroAddress });
  expect(await fulfilmentsIn(sandbox, 8453, burn?.txHash)).toEqual([intentHash]);
  expect(await fulfilmentsIn(sandbox, 10, mint?.txHash)).toEqual([]);
});

const transaction = z.object({ chainId: z.int(), txHash: z.string() });

const statusSchema = z.object({
  results: z.array(
    z.object({
      steps: z.array(z.object({ transactions: z.object({ fulfilled: transaction.optional() }) })).optional(),
    }),
  ),
});

const receiptSchema = z.object({
  result: z.object({ logs: z.array(z.object({ topics: z.array(z.string()) })) }),
});

/** Hashes of the intents that a transaction fulfils, by its logs. */
async function fulfilmentsIn(sandbox: Sandbox, chainId: number, txHash: unknown): Promise<unknown[]> {
  const response = await fetch(sandbox.rpcUrl(chainId, 'any'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getTransactionReceipt', params: [txHash] }),
  });
  const { logs } = receiptSchema.parse(await response.json()).result;
  // `Transfer` has three topics too: its first one is another.
  const transfer = toEventSelector('event Transfer(address indexed, address indexed, uint256)');
  return logs.filter(({ topics }) => topics[0] !== transfer).map(({ topics }) => topics[1]);
}
