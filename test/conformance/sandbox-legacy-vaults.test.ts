import { type Hex, toHex } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { signErc2612, signErc3009 } from '../../examples/round-trip/sign.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';

const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const SOLANA_WALLET = '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T';
const REFUNDS = '0x2222222222222222222222222222222222222222';
const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const TOKEN = { chainId: 8453, address: USDC_BASE, name: 'USD Coin', version: '2' } as const;
const CREATE = '/deposit-gateway/v2/depositAddresses';
const FOUR_HOURS = 4 * 3_600;

/** Its four hours end within seconds. */
let quick: Sandbox;
/** No vault of it expires. */
let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = new Sandbox({ transfersPerSecond: 0 });
  quick = new Sandbox({ transfersPerSecond: 0, timeScale: 100 });
  await Promise.all([sandbox.start(), quick.start()]);
});

afterAll(async () => {
  await Promise.all([sandbox.close(), quick.close()]);
});

const hex = z.custom<Hex>((value) => typeof value === 'string' && /^0x[0-9a-f]+$/i.test(value));
const vaultSchema = z.strictObject({
  data: z.strictObject({ vaultAddress: hex, amount: z.string(), deadline: z.int() }),
});

let made = 0;

/** A body that was not sent before. */
function body(more: object = {}) {
  made += 1;
  const amount = String(1_000_000 + made);
  return { sourceChainId: 8453, amount, recipient: WALLET, depositor: WALLET, ...more };
}

function post(to: Sandbox, path: string, content: unknown): Promise<Response> {
  return fetch(to.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(content),
  });
}

async function create(content: unknown, to = sandbox) {
  const response = await post(to, CREATE, content);
  expect(response.status).toBe(201);
  return vaultSchema.parse(await response.json()).data;
}

function fund(to: Sandbox, vaultAddress: string, how: object = {}): Promise<Response> {
  const order = { vaultAddress, chainId: 8453, ...how };
  return fetch(`${to.controlUrl}/fund`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(order),
  });
}

async function stateOf(path: string, to = sandbox): Promise<unknown> {
  const response = await fetch(to.url + path);
  return z.object({ data: z.unknown() }).parse(await response.json()).data;
}

describe('a vault of the legacy generation', () => {
  test('is made without a destination, can be funded for four hours, and is found at both generations', async () => {
    const { vaultAddress, deadline, amount } = await create(body({ dAppID: 'acme-app' }));
    const seconds = deadline - Date.now() / 1000;
    expect(seconds).toBeGreaterThan(FOUR_HOURS / 2);
    expect(seconds).toBeLessThanOrEqual(FOUR_HOURS + 1);
    for (const path of [`/v1/deposit-gateway/${vaultAddress}`, `${CREATE}/${vaultAddress}`]) {
      const vault = await stateOf(`${path}?sourceChainId=8453`);
      expect(vault).toEqual({ vaultAddress, amount, deadline, state: 'PENDING', sourceChainId: 8453 });
    }
  });

  test('is the same one for the same body until it is funded', async () => {
    const content = body();
    const { vaultAddress } = await create(content);
    expect((await create({ ...content, depositor: WALLET.toLowerCase() })).vaultAddress).toBe(vaultAddress);
    expect((await create({ ...content, refundRecipient: REFUNDS })).vaultAddress).not.toBe(vaultAddress);
    expect((await fund(sandbox, vaultAddress)).status).toBe(200);
    expect((await create(content)).vaultAddress).not.toBe(vaultAddress);
  });

  test('is another one for the same body after the deadline', async () => {
    const short = new Sandbox({ transfersPerSecond: 0, timeScale: 10_000 });
    await short.start();
    const content = body();
    const { vaultAddress } = await create(content, short);
    await vi.waitFor(async () => expect((await create(content, short)).vaultAddress).not.toBe(vaultAddress), {
      timeout: 170_000,
      interval: 100,
    });
    await short.close();
  });

  test.each([
    ['an EVM address, on Optimism', WALLET, 10],
    ['a Solana address, on Solana', SOLANA_WALLET, 1399811149],
    ['a Tron address, on Tron', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 728126428],
  ])('delivers to %s', async (_case, recipient, chainId) => {
    const { vaultAddress } = await create(body({ recipient }), quick);
    const funded = z.object({ intentHash: z.string() }).parse(await (await fund(quick, vaultAddress)).json());
    const delivered = () =>
      quick
        .payments()
        .find(({ intentHash, payment }) => intentHash === funded.intentHash && payment === 'destination');
    await vi.waitFor(() => expect(delivered()).toMatchObject({ recipient, chainId }), { timeout: 170_000 });
  });

  test.each([
    ['its depositor', {}, WALLET.toLowerCase()],
    ['its refundRecipient', { refundRecipient: REFUNDS }, REFUNDS],
  ])('is refunded to %s', async (_case, more, recipient) => {
    const { vaultAddress } = await create(body(more), quick);
    const funding = await fund(quick, vaultAddress, { fate: 'refunded' });
    const funded = z.object({ intentHash: z.string() }).parse(await funding.json());
    const refund = () =>
      quick
        .payments()
        .find(({ intentHash, payment }) => intentHash === funded.intentHash && payment === 'refund');
    await vi.waitFor(() => expect(refund()).toMatchObject({ recipient }), { timeout: 170_000 });
  });

  test.each<[string, object, number, string]>([
    ['an unknown key', { note: 1 }, 400, 'invalid-request'],
    [
      'a destination, which only the current generation has',
      { destinationChainId: 10 },
      400,
      'invalid-request',
    ],
    ['no depositor', { depositor: undefined }, 400, 'invalid-request'],
    ['a recipient of no chain', { recipient: 'me' }, 400, 'invalid-request'],
    ['a refundRecipient of another chain', { refundRecipient: SOLANA_WALLET }, 400, 'invalid-request'],
    ['a dAppID with a space', { dAppID: 'a b' }, 400, 'invalid-request'],
    ['an unknown chain', { sourceChainId: 5 }, 422, 'chain-not-supported'],
    ['a chain without vaults', { sourceChainId: 1399811149 }, 422, 'chain-not-supported'],
    ['too little', { amount: '1' }, 422, 'amount-too-low'],
  ])('is not made with %s', async (_case, more, status, code) => {
    const response = await post(sandbox, CREATE, body(more));
    expect([response.status, await response.json()]).toMatchObject([status, { code }]);
  });
});

const jobSchema = z.object({ data: z.object({ id: z.guid(), status: z.string() }) });

/** Statuses of a job of the deposit gateway, from its birth to its end. */
async function statusesOf(response: Response): Promise<string[]> {
  expect(response.status).toBe(202);
  const { id } = jobSchema.parse(await response.json()).data;
  const statuses = (): string[] =>
    quick.transitions().flatMap(({ subject, to }) => (subject === `gasless:gateway:${id}` ? [to] : []));
  await vi.waitFor(() => expect(statuses()).toContain('COMPLETED'), { timeout: 170_000 });
  return statuses();
}

describe('a job of the deposit gateway', () => {
  const owner = privateKeyToAccount(generatePrivateKey());

  async function grant() {
    const { vaultAddress: spender, amount } = await create(body(), quick);
    const until = BigInt(Math.floor(Date.now() / 1000) + 3_600);
    return { owner, token: TOKEN, spender, amount: BigInt(amount), until } as const;
  }

  test('by a permit is PENDING, PERMIT_SENT and COMPLETED', async () => {
    const { spender, ...permit } = await signErc2612(await grant(), 0n);
    const path = '/deposit-gateway/v1/gasless/permit';
    expect((await post(quick, path, { ...permit, spender })).status).toBe(400);
    const response = await post(quick, path, { ...permit, depositAddress: spender });
    expect(await statusesOf(response)).toEqual(['PENDING', 'PERMIT_SENT', 'COMPLETED']);
    const again = await post(quick, path, { ...permit, depositAddress: spender });
    expect(again.status).toBe(200);
  });

  test.each([
    '/deposit-gateway/v1/gasless/transferWithAuthorization',
    '/v1/deposit-gateway/submit/erc-3009',
  ])('by ERC-3009 never shows PERMIT_SENT: %s', async (path) => {
    const { authorization, signature } = await signErc3009(await grant(), toHex(++made, { size: 32 }));
    const response = await post(quick, path, { chainId: 8453, ...authorization, signature });
    expect(await statusesOf(response)).toEqual(['PENDING', 'COMPLETED']);
  });
});
