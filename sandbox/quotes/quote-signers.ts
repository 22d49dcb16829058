import { bytesToHex, type Hex, isHex } from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { bytes, randomStream } from '../world/random.ts';

/** The signed part of a quote. `expiresAt` is Unix seconds; hashes in any order and case. */
export type SignedPart = {
  sourceChainId: number;
  id: string;
  intentHashes: readonly string[];
  expiresAt: number;
};

/** Signing keys of quotes: one per source chain, determined by the seed and the number of rotations. */
export type QuoteSigners = {
  addressOf(chainId: number): string;
  sign(part: SignedPart): Promise<Hex>;
  /** Gives a chain a new key; quotes signed before retain their signature. */
  rotate(chainId: number): void;
};

const QUOTE_TYPES = {
  Quote: [
    { name: 'id', type: 'string' },
    { name: 'intentHashes', type: 'bytes32[]' },
    { name: 'expiresAt', type: 'uint64' },
  ],
} as const;

/** `domain`: name of the EIP-712 domain, `ServiceQuoteV1` in the interface. */
export function createQuoteSigners({ seed, domain }: { seed: number; domain: string }): QuoteSigners {
  const rotations = new Map<number, number>();
  const accounts = new Map<number, PrivateKeyAccount>();

  function accountOf(chainId: number): PrivateKeyAccount {
    const cached = accounts.get(chainId);
    if (cached !== undefined) return cached;
    const key = bytes(randomStream(seed, 'quote-signer', chainId, rotations.get(chainId) ?? 0), 32);
    const account = privateKeyToAccount(bytesToHex(key));
    accounts.set(chainId, account);
    return account;
  }

  return {
    addressOf: (chainId) => accountOf(chainId).address,
    sign: ({ sourceChainId, id, intentHashes, expiresAt }) =>
      accountOf(sourceChainId).signTypedData({
        domain: { name: domain, version: '1', chainId: sourceChainId },
        types: QUOTE_TYPES,
        primaryType: 'Quote',
        message: {
          id,
          intentHashes: [...new Set(intentHashes.map((hash) => hash.toLowerCase()))]
            .sort()
            .filter((hash) => isHex(hash)),
          expiresAt: BigInt(expiresAt),
        },
      }),
    rotate(chainId) {
      rotations.set(chainId, (rotations.get(chainId) ?? 0) + 1);
      accounts.delete(chainId);
    },
  };
}
