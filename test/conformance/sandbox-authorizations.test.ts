import { AbiCoder, hexlify, keccak256, randomBytes, type TypedDataDomain, Wallet } from 'ethers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { spread } from '../support/spread.ts';

// Everything here follows the standards and is signed by ethers: it uses no code under test.

const BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
const TETHER = '0x94b008aA00579c1307B0EF2c499aD98a8ce58e58';
const SPENDER = '0x1111111111111111111111111111111111111111';
const AMOUNT = '100000000';

type Fields = { name: string; type: string }[];
type Place = { chainId: number; token: string; name: string };

const USDC_ON_BASE: Place = { chainId: 8453, token: BASE, name: 'USD Coin' };
const USDT_ON_OPTIMISM: Place = { chainId: 10, token: TETHER, name: 'Tether USD' };

function fields(signature: string): Fields {
  return signature.split(',').map((field) => {
    const [type = '', name = ''] = field.split(' ');
    return { type, name };
  });
}

const ERC3009 = fields(
  'address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce',
);
const PERMIT = fields('address owner,address spender,uint256 value,uint256 nonce,uint256 deadline');
const PERMIT2 = {
  PermitTransferFrom: fields('TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline'),
  TokenPermissions: fields('address token,uint256 amount'),
};
const PERMIT3 = fields('address owner,bytes32 salt,uint48 deadline,uint48 timestamp,bytes32 permitHash');

let sandbox: Sandbox;

beforeAll(async () => {
  // No quote or vault expires, on a busy machine too.
  sandbox = new Sandbox({ transfersPerSecond: 0, timeScale: 0.001 });
  await sandbox.start();
});

afterAll(async () => {
  await sandbox.close();
});

async function post(path: string, body: unknown): Promise<{ status: number; body: unknown }> {
  const response = await fetch(sandbox.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': sandbox.apiKey },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

const tokenDomain = ({ chainId, token, name }: Place): TypedDataDomain => ({
  name,
  version: '2',
  chainId,
  verifyingContract: token,
});

const inAnHour = (): number => Math.floor(Date.now() / 1_000) + 3_600;

function otherEnd({ chainId }: Place): { chainId: number; token: string } {
  return chainId === 8453 ? { chainId: 10, token: OPTIMISM } : { chainId: 8453, token: BASE };
}

async function quoteFor(owner: Wallet, place: Place): Promise<string> {
  const { body } = await post('/v1/quotes', {
    type: 'exact-in',
    dappId: 'tests',
    source: { chainId: place.chainId, token: place.token, funder: owner.address, amount: AMOUNT },
    destination: { ...otherEnd(place), recipient: owner.address },
  });
  return z.object({ id: z.string() }).parse(body).id;
}

async function vaultAt(owner: Wallet, place: Place): Promise<string> {
  const destination = otherEnd(place);
  const { body } = await post('/v1/deposit-gateway/deposit-addresses', {
    sourceChainId: place.chainId,
    sourceToken: place.token,
    destinationChainId: destination.chainId,
    destinationToken: destination.token,
    amount: AMOUNT,
    recipient: owner.address,
  });
  return z.object({ data: z.object({ vaultAddress: z.string() }) }).parse(body).data.vaultAddress;
}

type Sign = (owner: Wallet, place: Place) => Promise<Record<string, unknown> & { signature: string }>;

const erc3009Message = (owner: Wallet, to: string) => ({
  from: owner.address,
  to,
  value: AMOUNT,
  validAfter: '0',
  validBefore: String(inAnHour()),
  nonce: hexlify(randomBytes(32)),
});

const quoteErc3009: Sign = async (owner, place) => {
  const authorization = erc3009Message(owner, SPENDER);
  const types = { TransferWithAuthorization: ERC3009 };
  const signature = await owner.signTypedData(tokenDomain(place), types, authorization);
  return { quoteId: await quoteFor(owner, place), authorization, signature };
};

const vaultErc3009: Sign = async (owner, place) => {
  const message = erc3009Message(owner, await vaultAt(owner, place));
  const types = { TransferWithAuthorization: ERC3009 };
  const signature = await owner.signTypedData(tokenDomain(place), types, message);
  return { chainId: place.chainId, ...message, signature };
};

const vaultErc2612: Sign = async (owner, place) => {
  const spender = await vaultAt(owner, place);
  const sent = { owner: owner.address, spender, value: AMOUNT, deadline: String(inAnHour()) };
  const signature = await owner.signTypedData(tokenDomain(place), { Permit: PERMIT }, { ...sent, nonce: 0 });
  return { chainId: place.chainId, ...sent, signature };
};

const quotePermit2: Sign = async (owner, place) => {
  const { chainId, token } = place;
  const domain = {
    name: 'Permit2',
    chainId,
    verifyingContract: '0x000000000022D473030F116dDEE9F6B43aC78BA3',
  };
  const rest = { spender: SPENDER, nonce: String(BigInt(hexlify(randomBytes(32)))), deadline: inAnHour() };
  const message = { permitted: { token, amount: AMOUNT }, ...rest };
  const signature = await owner.signTypedData(domain, PERMIT2, message);
  const authorization = { owner: owner.address, token, amount: AMOUNT, ...rest };
  return { quoteId: await quoteFor(owner, place), authorization, signature };
};

const quotePermit3: Sign = async (owner, place) => {
  const domain = {
    name: 'Permit3',
    version: '1',
    chainId: 1,
    verifyingContract: '0x000000000033D473030F116DDee9F6B43Ac78BA3'.toLowerCase(),
  };
  const elsewhere = { chainId: 42161, token: SPENDER, amount: '7', spender: owner.address };
  const here = { chainId: place.chainId, token: place.token, amount: AMOUNT, spender: SPENDER };
  const permits = [elsewhere, here];
  const tuples = '(uint256 chainId,address token,uint256 amount,address spender)[]';
  const permitHash = keccak256(AbiCoder.defaultAbiCoder().encode([tuples], [permits]));
  const rest = {
    owner: owner.address,
    salt: hexlify(randomBytes(32)),
    deadline: inAnHour(),
    timestamp: Math.floor(Date.now() / 1_000),
  };
  const signature = await owner.signTypedData(domain, { Permit3: PERMIT3 }, { ...rest, permitHash });
  return { quoteId: await quoteFor(owner, place), authorization: { ...rest, permits }, signature };
};

const SCHEMES: [string, string, Sign][] = [
  ['ERC-3009 for a quote', '/v1/gasless/submit/erc-3009', quoteErc3009],
  ['Permit2', '/v1/gasless/submit/permit2', quotePermit2],
  ['Permit3', '/v1/gasless/submit/permit3', quotePermit3],
  ['ERC-3009 for a vault', '/v1/deposit-gateway/submit/erc-3009', vaultErc3009],
  ['ERC-3009 for a vault, older path', '/deposit-gateway/v1/gasless/transferWithAuthorization', vaultErc3009],
  ['EIP-2612', '/v1/deposit-gateway/submit/erc-2612', vaultErc2612],
];

const newOwner = (): Wallet => new Wallet(hexlify(randomBytes(32)));

describe.each(SCHEMES)('%s, signed by ethers:', (_scheme, path, sign) => {
  test.each([
    ['USDC on Base', USDC_ON_BASE],
    ['USDT on Optimism', USDT_ON_OPTIMISM],
  ])('is accepted for %s', async (_place, place) => {
    expect(await post(path, await sign(newOwner(), place))).toMatchObject({ status: 202 });
  });

  test('is refused when any byte of the signature is another', async () => {
    const payload = await sign(newOwner(), USDC_ON_BASE);
    const bytes = Buffer.from(payload.signature.slice(2), 'hex');
    // The first and last bytes of r, of s, and v are among nine.
    for (const at of spread(bytes.keys(), 9)) {
      const changed = Buffer.from(bytes);
      changed[at] = (bytes[at] ?? 0) ^ 1;
      const signature = `0x${changed.toString('hex')}`;
      const { status, body } = await post(path, { ...payload, signature });
      // Another signer is recovered, or none at all.
      expect([401, 403], `byte ${at}: ${JSON.stringify(body)}`).toContain(status);
    }
    expect(await post(path, payload)).toMatchObject({ status: 202 });
  });
});
