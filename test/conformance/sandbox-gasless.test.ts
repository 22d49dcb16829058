import {
  encodeAbiParameters,
  type Hex,
  keccak256,
  parseAbiParameters,
  type TypedDataDefinition,
  toHex,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { Sandbox, type SandboxOptions } from '../../sandbox/sandbox.ts';

const USDC: Record<number, Hex> = {
  8453: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  10: '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85',
};
const SPENDER = '0x1111111111111111111111111111111111111111';
const PERMIT2 = '0x000000000022D473030F116dDEE9F6B43aC78BA3';
const PERMIT3 = '0x000000000033D473030F116DDee9F6b43AC78ba3';
const AMOUNT = 100_000_000n;

const owner = privateKeyToAccount(`0x${'48'.repeat(32)}`);
const stranger = privateKeyToAccount(`0x${'49'.repeat(32)}`);

type Account = typeof owner;

/** No quote of it expires, on a busy machine too. */
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

const jobSchema = z.strictObject({
  id: z.string().regex(/^gasless:[0-9a-f-]{36}$/),
  type: z.literal('gasless'),
  status: z.string(),
});

function post(path: string, body: unknown, { to = sandbox }: { to?: Sandbox } = {}) {
  return fetch(to.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': to.apiKey },
    body: JSON.stringify(body),
  });
}

async function quote({ funder = owner.address as string, chainId = 8453, to = sandbox } = {}) {
  const destination = chainId === 10 ? 8453 : 10;
  const response = await post(
    '/v1/quotes',
    {
      type: 'exact-in',
      dappId: 'tests',
      source: { chainId, token: USDC[chainId], funder, amount: AMOUNT.toString() },
      destination: { chainId: destination, token: USDC[destination], recipient: owner.address },
    },
    { to },
  );
  return z.looseObject({ id: z.string(), intentHash: z.string() }).parse(await response.json());
}

/** Amounts are sent as decimal strings. */
const wire = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_key, part) => (typeof part === 'bigint' ? part.toString() : part)));

/** Quotes, signs and submits; once more where the quote expired on a busy machine. */
async function submitted(
  path: string,
  sign: (signing: Signing) => Promise<unknown>,
  to: Sandbox,
): Promise<{ made: Awaited<ReturnType<typeof quote>>; payload: unknown; response: Response }> {
  for (;;) {
    const made = await quote({ to });
    const payload = await sign({ quoteId: made.id });
    const response = await post(path, payload, { to });
    if (response.status !== 410) return { made, payload, response };
  }
}

type Signing = { quoteId: string; signer?: Account; claimed?: Hex; value?: bigint };

async function body(
  quoteId: string,
  signer: Account,
  fields: { authorization: unknown; data: TypedDataDefinition },
) {
  return {
    quoteId,
    authorization: wire(fields.authorization),
    signature: await signer.signTypedData(fields.data),
  };
}

type Erc3009Changes = { nonce?: Hex; validAfter?: bigint; validBefore?: bigint; chainId?: number };

async function erc3009({
  quoteId,
  signer = owner,
  claimed = signer.address,
  value = AMOUNT,
  nonce = nextNonce(),
  validAfter = 0n,
  validBefore = inAnHour(),
  chainId = 8453,
}: Signing & Erc3009Changes) {
  const authorization = { from: claimed, to: SPENDER, value, validAfter, validBefore, nonce } as const;
  const fields = { from: 'address', to: 'address', value: 'uint256', validAfter: 'uint256' };
  const types = Object.entries({ ...fields, validBefore: 'uint256', nonce: 'bytes32' });
  return body(quoteId, signer, {
    authorization,
    data: {
      domain: { name: 'USD Coin', version: '2', chainId, verifyingContract: USDC[chainId] ?? '0x' },
      types: { TransferWithAuthorization: types.map(([name, type]) => ({ name, type })) },
      primaryType: 'TransferWithAuthorization',
      message: authorization,
    },
  });
}

async function permit2({
  quoteId,
  signer = owner,
  claimed = signer.address,
  value = AMOUNT,
  nonce = BigInt(nextNonce()),
  token = USDC[8453] ?? '0x',
  deadline = inAnHour(),
}: Signing & { nonce?: bigint; token?: Hex; deadline?: bigint }) {
  return body(quoteId, signer, {
    authorization: { owner: claimed, spender: SPENDER, token, amount: value, nonce, deadline },
    data: {
      domain: { name: 'Permit2', chainId: 8453, verifyingContract: PERMIT2 },
      types: {
        PermitTransferFrom: [
          { name: 'permitted', type: 'TokenPermissions' },
          { name: 'spender', type: 'address' },
          { name: 'nonce', type: 'uint256' },
          { name: 'deadline', type: 'uint256' },
        ],
        TokenPermissions: [
          { name: 'token', type: 'address' },
          { name: 'amount', type: 'uint256' },
        ],
      },
      primaryType: 'PermitTransferFrom',
      message: { permitted: { token, amount: value }, spender: SPENDER, nonce, deadline },
    },
  });
}

async function permit3({
  quoteId,
  signer = owner,
  claimed = signer.address,
  value = AMOUNT,
  salt = nextNonce(),
  chainIds = [10, 8453],
}: Signing & { salt?: Hex; chainIds?: number[] }) {
  const permits = chainIds.map(
    (chainId) =>
      ({
        chainId: BigInt(chainId),
        token: USDC[chainId] ?? '0x',
        amount: value,
        spender: SPENDER,
      }) as const,
  );
  const tuples = parseAbiParameters('(uint256 chainId, address token, uint256 amount, address spender)[]');
  const times = { deadline: Number(inAnHour()), timestamp: Math.floor(Date.now() / 1000) };
  return body(quoteId, signer, {
    authorization: {
      owner: claimed,
      salt,
      ...times,
      permits: permits.map((permit) => ({ ...permit, chainId: Number(permit.chainId) })),
    },
    data: {
      domain: { name: 'Permit3', version: '1', chainId: 1, verifyingContract: PERMIT3 },
      types: {
        Permit3: [
          { name: 'owner', type: 'address' },
          { name: 'salt', type: 'bytes32' },
          { name: 'deadline', type: 'uint48' },
          { name: 'timestamp', type: 'uint48' },
          { name: 'permitHash', type: 'bytes32' },
        ],
      },
      primaryType: 'Permit3',
      message: {
        owner: claimed,
        salt,
        ...times,
        permitHash: keccak256(encodeAbiParameters(tuples, [permits])),
      },
    },
  });
}

async function expectProblem(response: Response, status: number, code: string) {
  const problem = z.looseObject({ errors: z.array(z.looseObject({ field: z.string() })).optional() });
  const found = problem.parse(await response.json());
  expect(found).toMatchObject({ status, code, type: expect.stringMatching(`/v1/errors/${code}$`) });
  expect(response.status).toBe(status);
  return found;
}

async function statusOf(filter: string) {
  const response = await fetch(`${quick.url}/v1/intents/status?${filter}`, {
    headers: { 'x-api-key': quick.apiKey },
  });
  const results = z.object({ results: z.tuple([z.record(z.string(), z.unknown())]) });
  return results.parse(await response.json()).results[0];
}

const SCHEMES = [
  { scheme: 'erc-3009', path: '/v1/gasless/submit/erc-3009', sign: erc3009 },
  { scheme: 'permit2', path: '/v1/gasless/submit/permit2', sign: permit2 },
  { scheme: 'permit3', path: '/v1/gasless/submit/permit3', sign: permit3 },
];
const ERC3009 = '/v1/gasless/submit/erc-3009';

describe.each(SCHEMES)('a submit by $scheme', ({ path, sign }) => {
  test('queues a job that funds the quote, and its intent is born', async () => {
    const { made, response } = await submitted(path, sign, quick);
    const { id: quoteId, intentHash } = made;
    expect(response.status).toBe(202);
    const job = jobSchema.parse(await response.json());
    expect(job.status).toBe('pending');
    const jobId = job.id.slice('gasless:'.length);
    await vi.waitFor(async () => {
      expect(await statusOf(`jobId=${jobId}`)).toMatchObject({
        status: 'published',
        intentHashes: [intentHash],
        subStatuses: [{ chainId: 8453, quoteIds: [quoteId], intentHashes: [intentHash], state: 'published' }],
      });
    }, 170_000);
    expect(await statusOf(`quoteId=${quoteId.slice('quote:'.length)}`)).toMatchObject({
      status: 'submitted',
    });
    const moves = quick.transitions().flatMap(({ subject, to }) => (subject === job.id ? [to] : []));
    expect(moves).toEqual(['pending', 'submitted', 'published']);
    expect(await statusOf(`intentHash=${intentHash}`)).toMatchObject({ id: `intent:${intentHash}` });
  });

  test('signed by a stranger is funder-mismatch', async () => {
    const { id: quoteId } = await quote();
    const payload = await sign({ quoteId, signer: stranger, claimed: owner.address });
    await expectProblem(await post(path, payload), 403, 'funder-mismatch');
    const own = await sign({ quoteId, signer: stranger });
    await expectProblem(await post(path, own), 403, 'funder-mismatch');
  });

  test('with an impossible signature is invalid-signature', async () => {
    const { id: quoteId } = await quote();
    const payload = { ...(await sign({ quoteId })), signature: `0x${'00'.repeat(64)}1b` };
    await expectProblem(await post(path, payload), 401, 'invalid-signature');
  });

  test('whose signature funds another quote is signature-already-bound', async () => {
    const { id: quoteId } = await quote();
    const payload = await sign({ quoteId });
    expect((await post(path, payload)).status).toBe(202);
    const { id: otherId } = await quote();
    const bound = await post(path, { ...payload, quoteId: otherId });
    await expectProblem(bound, 409, 'signature-already-bound');
  });

  test('for a quote that is funded already is signature-already-bound', async () => {
    const { id: quoteId } = await quote();
    expect((await post(path, await sign({ quoteId }))).status).toBe(202);
    await expectProblem(await post(path, await sign({ quoteId })), 409, 'signature-already-bound');
  });

  test('of less than the quoted amount is amount-too-low', async () => {
    const { id: quoteId } = await quote();
    await expectProblem(await post(path, await sign({ quoteId, value: AMOUNT - 1n })), 422, 'amount-too-low');
  });

  test('for an unknown quote, or by its bare id, is invalid-request', async () => {
    const unknown = await sign({ quoteId: 'quote:00000000-0000-4000-8000-000000000000' });
    const { id } = await quote();
    const bare = await sign({ quoteId: id.slice('quote:'.length) });
    for (const payload of [unknown, bare]) {
      const problem = await expectProblem(await post(path, payload), 400, 'invalid-request');
      expect(problem.errors?.map(({ field }) => field)).toEqual(['quoteId']);
    }
  });

  test('with unknown or missing keys is invalid-request', async () => {
    const { id: quoteId } = await quote();
    const payload = await sign({ quoteId });
    await expectProblem(await post(path, { ...payload, more: 1 }), 400, 'invalid-request');
    await expectProblem(await post(path, { quoteId }), 400, 'invalid-request');
    await expectProblem(await post(path, { ...payload, signature: '0x12' }), 400, 'invalid-request');
  });
});

describe('nonces', () => {
  test('of ERC-3009 and Permit2 and the salt of Permit3 can be used once', async () => {
    const salt = nextNonce();
    const signs = [
      ['erc-3009', (quoteId: string, value: bigint) => erc3009({ quoteId, nonce: salt, value })],
      ['permit2', (quoteId: string, value: bigint) => permit2({ quoteId, nonce: BigInt(salt), value })],
      ['permit3', (quoteId: string, value: bigint) => permit3({ quoteId, salt, value })],
    ] as const;
    for (const [scheme, sign] of signs) {
      const path = `/v1/gasless/submit/${scheme}`;
      expect((await post(path, await sign((await quote()).id, AMOUNT))).status).toBe(202);
      const second = await sign((await quote()).id, AMOUNT + 1n);
      await expectProblem(await post(path, second), 409, 'nonce-used');
    }
  });

  test('of ERC-3009 belong to one token', async () => {
    const nonce = nextNonce();
    expect((await post(ERC3009, await erc3009({ quoteId: (await quote()).id, nonce }))).status).toBe(202);
    const { id: quoteId } = await quote({ chainId: 10 });
    expect((await post(ERC3009, await erc3009({ quoteId, nonce, chainId: 10 }))).status).toBe(202);
  });

  test('are not used up by a submit that is refused', async () => {
    const nonce = nextNonce();
    const { id: quoteId } = await quote();
    expect((await post(ERC3009, await erc3009({ quoteId, nonce, value: 1n }))).status).toBe(422);
    expect((await post(ERC3009, await erc3009({ quoteId, nonce }))).status).toBe(202);
  });
});

describe('times', () => {
  test('an authorization that has ended is authorization-expired', async () => {
    const { id: quoteId } = await quote();
    const past = BigInt(Math.floor(Date.now() / 1000) - 10);
    const erc = await erc3009({ quoteId, validBefore: past });
    await expectProblem(await post(ERC3009, erc), 401, 'authorization-expired');
    const permit = await permit2({ quoteId, deadline: past });
    await expectProblem(await post('/v1/gasless/submit/permit2', permit), 401, 'authorization-expired');
  });

  test('an authorization that has not begun is invalid-request', async () => {
    const { id: quoteId } = await quote();
    const payload = await erc3009({ quoteId, validAfter: inAnHour() });
    const problem = await expectProblem(await post(ERC3009, payload), 400, 'invalid-request');
    expect(problem.errors?.map(({ field }) => field)).toEqual(['authorization.validAfter']);
  });

  test('an expired quote is quote-expired; an earlier submit is still there', async () => {
    const fast = await start({ timeScale: 1_000 });
    const { payload, response: first } = await submitted(ERC3009, erc3009, fast);
    expect(first.status).toBe(202);
    const late = await quote({ to: fast });
    const expiresAt = z.int().parse(late.expiresAt);
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(expiresAt * 1000), { timeout: 170_000 });
    const refused = await post(ERC3009, await erc3009({ quoteId: late.id }), { to: fast });
    await expectProblem(refused, 410, 'quote-expired');
    const again = await post(ERC3009, payload, { to: fast });
    expect(again.status).toBe(200);
    await fast.close();
  });
});

test('a signature for another chain is funder-mismatch', async () => {
  const { id: quoteId } = await quote();
  await expectProblem(await post(ERC3009, await erc3009({ quoteId, chainId: 10 })), 403, 'funder-mismatch');
});

test('a permit for other tokens is invalid-request', async () => {
  const { id: quoteId } = await quote();
  const other = await permit2({ quoteId, token: USDC[10] ?? '0x' });
  await expectProblem(await post('/v1/gasless/submit/permit2', other), 400, 'invalid-request');
  const elsewhere = await permit3({ quoteId, chainIds: [10] });
  await expectProblem(await post('/v1/gasless/submit/permit3', elsewhere), 400, 'invalid-request');
});
