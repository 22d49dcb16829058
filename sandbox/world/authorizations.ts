import {
  encodeAbiParameters,
  type Hex,
  hashTypedData,
  isHex,
  keccak256,
  recoverAddress,
  type TypedDataDefinition,
} from 'viem';
import type { Token } from './chains.ts';

/** The contracts that verify Permit2 and Permit3 signatures, at the same address on every chain. */
const PERMIT2 = '0x000000000022D473030F116dDEE9F6B43aC78BA3';
const PERMIT3 = '0x000000000033D473030F116DDee9F6b43AC78ba3';

/** ERC-3009 `TransferWithAuthorization`; times are Unix seconds. */
export type Erc3009 = {
  from: Hex;
  to: Hex;
  value: bigint;
  validAfter: bigint;
  validBefore: bigint;
  nonce: Hex;
};

/** EIP-2612 `Permit`; the nonce counts the permits of an owner. */
export type Erc2612 = { owner: Hex; spender: Hex; value: bigint; nonce: bigint; deadline: bigint };

/** Permit2 `PermitTransferFrom`. */
export type Permit2 = {
  owner: Hex;
  spender: Hex;
  token: Hex;
  amount: bigint;
  nonce: bigint;
  deadline: bigint;
};

/** Permit3: transfers on several chains under one signature. */
export type Permit3 = {
  owner: Hex;
  salt: Hex;
  deadline: number;
  timestamp: number;
  permits: readonly { chainId: bigint; token: Hex; amount: bigint; spender: Hex }[];
};

const address = (name: string) => ({ name, type: 'address' }) as const;
const uint256 = (name: string) => ({ name, type: 'uint256' }) as const;

export function erc3009Data(token: Token, message: Erc3009): TypedDataDefinition {
  return {
    domain: tokenDomain(token),
    types: {
      TransferWithAuthorization: [
        address('from'),
        address('to'),
        uint256('value'),
        uint256('validAfter'),
        uint256('validBefore'),
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message,
  };
}

export function erc2612Data(token: Token, message: Erc2612): TypedDataDefinition {
  return {
    domain: tokenDomain(token),
    types: {
      Permit: [address('owner'), address('spender'), uint256('value'), uint256('nonce'), uint256('deadline')],
    },
    primaryType: 'Permit',
    message,
  };
}

export function permit2Data(
  chainId: number,
  { token, amount, spender, nonce, deadline }: Permit2,
): TypedDataDefinition {
  return {
    domain: { name: 'Permit2', chainId, verifyingContract: PERMIT2 },
    types: {
      PermitTransferFrom: [
        { name: 'permitted', type: 'TokenPermissions' },
        address('spender'),
        uint256('nonce'),
        uint256('deadline'),
      ],
      TokenPermissions: [address('token'), uint256('amount')],
    },
    primaryType: 'PermitTransferFrom',
    message: { permitted: { token, amount }, spender, nonce, deadline },
  };
}

export function permit3Data({ owner, salt, deadline, timestamp, permits }: Permit3): TypedDataDefinition {
  const components = [uint256('chainId'), address('token'), uint256('amount'), address('spender')] as const;
  return {
    domain: { name: 'Permit3', version: '1', chainId: 1, verifyingContract: PERMIT3 },
    types: {
      Permit3: [
        address('owner'),
        { name: 'salt', type: 'bytes32' },
        { name: 'deadline', type: 'uint48' },
        { name: 'timestamp', type: 'uint48' },
        { name: 'permitHash', type: 'bytes32' },
      ],
    },
    primaryType: 'Permit3',
    message: {
      owner,
      salt,
      deadline,
      timestamp,
      permitHash: keccak256(encodeAbiParameters([{ type: 'tuple[]', components }], [permits])),
    },
  };
}

/** Recovers the signer, in lower case; null for an invalid signature. */
export async function recoverSigner(data: TypedDataDefinition, signature: string): Promise<string | null> {
  if (!isHex(signature)) return null;
  const hash = hashTypedData(data);
  try {
    return (await recoverAddress({ hash, signature })).toLowerCase();
  } catch {
    return null;
  }
}

function tokenDomain({ chainId, symbol, address: verifyingContract }: Token): TypedDataDefinition['domain'] {
  if (!isHex(verifyingContract)) throw new Error(`token ${verifyingContract} is not of an EVM chain`);
  return { name: symbol === 'USDC' ? 'USD Coin' : 'Tether USD', version: '2', chainId, verifyingContract };
}
