import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { DEPLOYMENT } from './deployment.ts';

/** The signer of the quotes of tests, and a chain that may publish it. */
export const QUOTE_SIGNER = privateKeyToAccount(`0x${'11'.repeat(32)}`);
export const QUOTE_CHAIN = 8453;

/** An expiry in the year 2100, Unix seconds. */
export const IN_2100 = 4_102_444_800;

/**
 * The content of a signature. Written out by each test, not computed by the code under test. `name`: that of the domain, where
 * it is not the deployment's.
 */
export type Covered = {
  id: string;
  intentHashes: readonly Hex[];
  expiresAt: bigint;
  chainId: number;
  name?: string;
};

/** The data that a quote's signature covers. */
export function signedData({ id, intentHashes, expiresAt, chainId, name = DEPLOYMENT.domain.name }: Covered) {
  return {
    domain: { name, version: '1', chainId },
    types: {
      Quote: [
        { name: 'id', type: 'string' },
        { name: 'intentHashes', type: 'bytes32[]' },
        { name: 'expiresAt', type: 'uint64' },
      ],
    },
    primaryType: 'Quote',
    message: { id, intentHashes, expiresAt },
  } as const;
}

/** Signs exactly these values. */
export async function signQuote(covered: Covered, by = QUOTE_SIGNER): Promise<Hex> {
  return by.signTypedData(signedData(covered));
}
