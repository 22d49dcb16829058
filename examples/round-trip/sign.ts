import { encodeAbiParameters, type Hex, keccak256, parseAbiParameters } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Erc3009Payload, Permit2Payload, Permit3Payload } from './payloads.ts';

/** A token and the chain it is on. Its contract states the name and version of its signing domain. */
export type Token = { chainId: number; address: Hex; name: string; version: string };

/** A permit: its owner, token and spender, the amount in base units, and the end of its validity (Unix seconds). */
export type Grant = { owner: PrivateKeyAccount; token: Token; spender: Hex; amount: bigint; until: bigint };

const PERMIT2 = '0x000000000022D473030F116dDEE9F6B43aC78BA3';
const PERMIT3 = '0x000000000033d473030f116ddee9f6b43ac78ba3';

/** The domain of a token's own signatures. */
function tokenDomain({ name, version, chainId, address }: Token) {
  return { name, version, chainId, verifyingContract: address } as const;
}

/** Authorizes one transfer to `spender`, by ERC-3009. `nonce` is 32 bytes that the owner has not used. */
export async function signErc3009(
  { owner, token, spender, amount, until }: Grant,
  nonce: Hex,
): Promise<Pick<Erc3009Payload, 'authorization' | 'signature'>> {
  const message = {
    from: owner.address,
    to: spender,
    value: amount,
    validAfter: 0n,
    validBefore: until,
    nonce,
  } as const;
  const signature = await owner.signTypedData({
    domain: tokenDomain(token),
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
    message,
  });
  const texts = { value: String(amount), validAfter: '0', validBefore: String(until) };
  return { authorization: { ...message, ...texts }, signature };
}

/** Permits `spender` to take the amount, by EIP-2612. `nonce` is the token's `nonces(owner)`. */
export async function signErc2612({ owner, token, spender, amount, until }: Grant, nonce: bigint) {
  const signature = await owner.signTypedData({
    domain: tokenDomain(token),
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
    message: { owner: owner.address, spender, value: amount, nonce, deadline: until },
  });
  return {
    chainId: token.chainId,
    owner: owner.address,
    spender,
    value: String(amount),
    deadline: String(until),
    signature,
  };
}

/** Authorizes one transfer through the Permit2 contract. `nonce` is a number that the owner has not used there. */
export async function signPermit2(
  { owner, token, spender, amount, until }: Grant,
  nonce: bigint,
): Promise<Pick<Permit2Payload, 'authorization' | 'signature'>> {
  const signature = await owner.signTypedData({
    domain: { name: 'Permit2', chainId: token.chainId, verifyingContract: PERMIT2 },
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
    message: { permitted: { token: token.address, amount }, spender, nonce, deadline: until },
  });
  const authorization = {
    owner: owner.address,
    spender,
    token: token.address,
    amount: String(amount),
    nonce: String(nonce),
    deadline: String(until),
  };
  return { authorization, signature };
}

/** Authorizes a transfer through the Permit3 contract. `salt` is 32 bytes that the owner has not used there. */
export async function signPermit3(
  { owner, token, spender, amount, until }: Grant,
  { salt, nowSeconds }: { salt: Hex; nowSeconds: number },
): Promise<Pick<Permit3Payload, 'authorization' | 'signature'>> {
  const permits = parseAbiParameters('(uint256 chainId, address token, uint256 amount, address spender)[]');
  const permit = { chainId: BigInt(token.chainId), token: token.address, amount, spender };
  const times = { deadline: Number(until), timestamp: nowSeconds };
  const signature = await owner.signTypedData({
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
      owner: owner.address,
      salt,
      ...times,
      permitHash: keccak256(encodeAbiParameters(permits, [[permit]])),
    },
  });
  const sent = { chainId: token.chainId, token: token.address, amount: String(amount), spender };
  return { authorization: { owner: owner.address, salt, ...times, permits: [sent] }, signature };
}
