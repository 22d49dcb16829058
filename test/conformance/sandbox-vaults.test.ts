import { type Hex, type TypedDataDefinition, toHex } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { Sandbox, type SandboxOptions } from '../../sandbox/sandbox.ts';
import { eventually } from '../support/eventually.ts';

const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
const SOLANA = 1399811149;
const USDC_SOLANA = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const AMOUNT = 100_000_000n;
const CREATE = '/v1/deposit-gateway/deposit-addresses';
const ERC3009 = '/v1/deposit-gateway/submit/erc-3009';
const OLDER_ERC3009 = '/deposit-gateway/v1/gasless/transferWithAuthorization';
const ERC2612 = '/v1/deposit-gateway/submit/erc-2612';

const stranger = privateKeyToAccount(generatePrivateKey());
const newOwner = () => privateKeyToAccount(generatePrivateKey());

type Account = typeof stranger;

/** No vault of it expires, on a busy machine too. */
let sandbox: Sandbox;
let quick: Sandbox;
let nonces = 0;

beforeAll(async () => {
  sandbox = await start({ timeScale: 0.001 });
  quick = await start({ timeScale: 20 });
});

afterAll(async () => {
  await sandbox.close();
  await quick.close();
});

async function start(options: SandboxOptions): Promise<Sandbox> {
  const started = new Sandbox({ transfersPerSecond: 0, ...options });
  await started.start();
  return started;
}

const nextNonce = (): Hex => toHex(++nonces, { size: 32 });
const inAnHour = (): bigint => BigInt(Math.floor(Date.now() / 1000) + 3600);

const route = {
  sourceChainId: 8453,
  destinationChainId: 10,
  sourceToken: USDC_BASE,
  destinationToken: USDC_OPTIMISM,
  amount: AMOUNT.toString(),
  recipient: stranger.address,
};

const hex = z.custom<Hex>((value) => typeof value === 'string' && /^0x[0-9a-f]+$/i.test(value));
const vaultSchema = z.strictObject({
  data: z.strictObject({
    vaultAddress: hex,
    amount: z.string(),
    deadline: z.int(),
    state: z.literal('PENDING'),
    intentHash: hex,
    sourceChainId: z.int(),
  }),
});
const jobSchema = z.strictObject({
  data: z.looseObject({ id: z.guid(), status: z.string(), amount: z.string() }),
});

/** No key is sent: these endpoints are open. */
function post(path: string, body: unknown, to = sandbox): Promise<Response> {
  return fetch(to.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

async function createVault(to = sandbox) {
  const response = await post(CREATE, route, to);
  expect(response.status).toBe(201);
  return vaultSchema.parse(await response.json()).data;
}

async function get(path: string, to = sandbox): Promise<Record<string, unknown>> {
  const response = await fetch(to.url + path);
  expect(response.status).toBe(200);
  return z.object({ data: z.record(z.string(), z.unknown()) }).parse(await response.json()).data;
}

async function expectRefusal(response: Response, status: number, code: string): Promise<void> {
  expect(await response.json()).toEqual({
    requestId: expect.stringMatching(/^\d{1,5}$/),
    statusCode: status,
    error: expect.stringMatching(/./),
    message: expect.stringMatching(/./),
    code,
    details: { cause: expect.stringMatching(/./) },
  });
  expect(response.status).toBe(status);
}

/** Makes a vault, signs and submits; once more where the vault expired on a busy machine. */
async function submitted(path: string, sign: (signing: Signing) => Promise<unknown>, to: Sandbox) {
  for (;;) {
    const { vaultAddress: vault, intentHash } = await createVault(to);
    const response = await post(path, await sign({ vault, signer: newOwner() }), to);
    if (response.status !== 410) return { vault, intentHash, response };
  }
}

type Signing = { vault: Hex; signer: Account; claimed?: Hex; value?: bigint };

const domain = { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: USDC_BASE } as const;

async function signed(signer: Account, data: TypedDataDefinition) {
  const texts = Object.entries(data.message).map(([name, value]) => [
    name,
    typeof value === 'bigint' ? value.toString() : value,
  ]);
  return { chainId: 8453, ...Object.fromEntries(texts), signature: await signer.signTypedData(data) };
}

function erc3009({
  vault,
  signer,
  claimed = signer.address,
  value = AMOUNT,
  nonce = nextNonce(),
}: Signing & { nonce?: Hex }) {
  return signed(signer, {
    domain,
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message: { from: claimed, to: vault, value, validAfter: 0n, validBefore: inAnHour(), nonce },
  });
}

async function erc2612({
  vault,
  signer,
  claimed = signer.address,
  value = AMOUNT,
  nonce = 0n,
}: Signing & { nonce?: bigint }) {
  const { nonce: _nonce, ...body } = await signed(signer, {
    domain,
    types: {
      Permit: [
        { name: 'owner', type: 'address' },
        { name: 'spender', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'nonce', type: 'uint256' },
        { name: 'deadline', type: 'uint256' },
      ],
    },
    primaryType: 'Permit',
    message: { owner: claimed, spender: vault, value, nonce, deadline: inAnHour() },
  });
  return body;
}

describe('a vault', () => {
  test('is made with a deadline and found at both generations of the endpoint', async () => {
    const { intentHash: _intentHash, ...vault } = await createVault();
    expect(vault).toMatchObject({ amount: AMOUNT.toString(), sourceChainId: 8453 });
    expect(vault.deadline).toBeGreaterThan(Date.now() / 1000);
    const query = `${vault.vaultAddress}?sourceChainId=8453`;
    expect(await get(`/v1/deposit-gateway/${query}`)).toEqual(vault);
    expect(await get(`/deposit-gateway/v2/depositAddresses/${query}`)).toEqual(vault);
  });

  test('that is funded by a transaction becomes an intent', async () => {
    const fund = (vaultAddress: string) =>
      fetch(`${quick.controlUrl}/fund`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ vaultAddress, chainId: 8453 }),
      });
    const { vaultAddress, intentHash, answer } = await eventually('it is funded in its time', async () => {
      const vault = await createVault(quick);
      const funded = await fund(vault.vaultAddress);
      return funded.status === 410 ? null : { ...vault, answer: await funded.json() };
    });
    expect(answer).toMatchObject({ intentHash });
    expect((await fund(vaultAddress)).status).toBe(409);
    const fetchVault = () => get(`/v1/deposit-gateway/${vaultAddress}?sourceChainId=8453`, quick);
    await vi.waitFor(
      async () => expect(await fetchVault()).toMatchObject({ state: 'PUBLISHED', intentHash }),
      170_000,
    );
  });

  test('without funding expires, and can then not be funded', async () => {
    const fast = await start({ timeScale: 1_000 });
    const { vaultAddress } = await createVault(fast);
    const fetchVault = () => get(`/v1/deposit-gateway/${vaultAddress}?sourceChainId=8453`, fast);
    await vi.waitFor(
      async () => expect(await fetchVault()).toMatchObject({ state: 'EXPIRED_UNFUNDED' }),
      170_000,
    );
    const payload = await erc3009({ vault: vaultAddress, signer: newOwner() });
    await expectRefusal(await post(ERC3009, payload, fast), 410, 'quote-expired');
    await fast.close();
  });

  test.each<[string, unknown, number, string]>([
    ['an unknown key', { ...route, note: 1 }, 400, 'invalid-request'],
    ['a missing recipient', { ...route, recipient: undefined }, 400, 'invalid-request'],
    ['a malformed recipient', { ...route, recipient: '0x1' }, 400, 'invalid-request'],
    ['an amount that is a number', { ...route, amount: 100000000 }, 400, 'invalid-request'],
    ['no JSON', '{', 400, 'invalid-request'],
    ['an unknown chain', { ...route, destinationChainId: 5 }, 422, 'chain-not-supported'],
    [
      'a source chain that has no vaults',
      { ...route, sourceChainId: SOLANA, sourceToken: USDC_SOLANA },
      422,
      'chain-not-supported',
    ],
    ['too little', { ...route, amount: '1' }, 422, 'amount-too-low'],
    ['an unlisted token', { ...route, sourceToken: stranger.address }, 502, 'solver-error'],
  ])('is not made with %s', async (_case, body, status, code) => {
    await expectRefusal(await post(CREATE, body), status, code);
  });
});

describe.each([
  { name: 'ERC-3009', path: ERC3009, sign: erc3009 },
  { name: 'ERC-3009 at the older path', path: OLDER_ERC3009, sign: erc3009 },
  { name: 'EIP-2612', path: ERC2612, sign: erc2612 },
])('a submit by $name', ({ path, sign }) => {
  test('queues a job that funds the vault', async () => {
    const { vault, intentHash, response } = await submitted(path, sign, quick);
    expect(response.status).toBe(202);
    const { data: job } = jobSchema.parse(await response.json());
    expect(job).toEqual({ id: job.id, status: 'PENDING', amount: AMOUNT.toString() });
    await vi.waitFor(async () => {
      expect(await get(`/v1/deposit-gateway/status?id=${job.id}`, quick)).toMatchObject({
        status: 'COMPLETED',
        intentHash,
      });
    }, 170_000);
    expect(await get(`/deposit-gateway/v1/gasless/jobs/${job.id}`, quick)).toMatchObject({
      status: 'COMPLETED',
    });
    expect(await get(`/v1/deposit-gateway/${vault}?sourceChainId=8453`, quick)).toMatchObject({
      state: 'PUBLISHED',
      intentHash,
    });
    const states = quick
      .transitions()
      .flatMap(({ subject, to }) => (subject === `vault:8453:${vault.toLowerCase()}` ? [to] : []));
    expect(states).toEqual(['PENDING', 'FUNDING_DETECTED', 'PUBLISHED']);
  });

  test('signed by a stranger is funder-mismatch', async () => {
    const { vaultAddress: vault } = await createVault();
    const payload = await sign({ vault, signer: stranger, claimed: newOwner().address });
    await expectRefusal(await post(path, payload), 403, 'funder-mismatch');
  });

  test('of less than the quoted amount is amount-too-low, of more is accepted', async () => {
    const { vaultAddress: vault } = await createVault();
    const signer = newOwner();
    const less = await sign({ vault, signer, value: AMOUNT - 1n });
    await expectRefusal(await post(path, less), 422, 'amount-too-low');
    const more = await sign({ vault, signer, value: AMOUNT + 1n });
    expect((await post(path, more)).status).toBe(202);
  });

  test('for an unknown vault is not-found', async () => {
    const payload = await sign({ vault: stranger.address, signer: newOwner() });
    await expectRefusal(await post(path, payload), 404, 'not-found');
  });

  test('with unknown keys or a short signature is invalid-request', async () => {
    const { vaultAddress: vault } = await createVault();
    const payload = await sign({ vault, signer: newOwner() });
    await expectRefusal(await post(path, { ...payload, more: 1 }), 400, 'invalid-request');
    await expectRefusal(await post(path, { ...payload, signature: '0x1b' }), 400, 'invalid-request');
  });
});

test('an intent that was funded gaslessly goes on to settled', async () => {
  const fast = await start({ timeScale: 500 });
  const { intentHash, response } = await submitted(ERC3009, erc3009, fast);
  expect(response.status).toBe(202);
  const moves = () =>
    fast.transitions().flatMap(({ subject, to }) => (subject === `intent:${intentHash}` ? [to] : []));
  await vi.waitFor(() => expect(moves()).toEqual(['pending', 'filled', 'settled']), { timeout: 170_000 });
  await fast.close();
});

test('a nonce of ERC-3009 can be used once, at whichever path', async () => {
  const nonce = nextNonce();
  const signer = newOwner();
  const first = await erc3009({ vault: (await createVault()).vaultAddress, signer, nonce });
  expect((await post(OLDER_ERC3009, first)).status).toBe(202);
  expect((await post(OLDER_ERC3009, first)).status).toBe(200);
  await expectRefusal(await post(ERC3009, first), 409, 'signature-already-bound');
  const second = await erc3009({ vault: (await createVault()).vaultAddress, signer, nonce });
  await expectRefusal(await post(ERC3009, second), 409, 'nonce-used');
});

test('permits of an owner count from 0, and a former count is nonce-used', async () => {
  const signer = newOwner();
  const permit = async (nonce: bigint) =>
    post(ERC2612, await erc2612({ vault: (await createVault()).vaultAddress, signer, nonce }));
  await expectRefusal(await permit(1n), 403, 'funder-mismatch');
  expect((await permit(0n)).status).toBe(202);
  await expectRefusal(await permit(0n), 409, 'nonce-used');
  expect((await permit(1n)).status).toBe(202);
});

test('a vault that the sandbox lets live by itself is not funded by anyone else', async () => {
  const [vault] = quick.subjects().vaults;
  const born = () =>
    fetch(`${quick.url}/v1/deposit-gateway/${vault?.address}?sourceChainId=${vault?.chainId}`);
  await vi.waitFor(async () => expect((await born()).status).toBe(200), 170_000);
  const payload = await erc3009({ vault: hex.parse(vault?.address), signer: newOwner() });
  const response = await post(ERC3009, { ...payload, chainId: vault?.chainId }, quick);
  await expectRefusal(response, 400, 'invalid-request');
});

test('status without an id is refused', async () => {
  await expectRefusal(await fetch(`${sandbox.url}/v1/deposit-gateway/status`), 400, 'invalid-request');
});
