import { Wallet } from 'ethers';
import type { JsonObject } from '../../src/domain/json.ts';

/** A quote that ethers signed, and the content of its signature, written out. */
export type QuoteVector = {
  name: string;
  quoteSigner: string;
  covered: { chainId: number; id: string; intentHashes: string[]; expiresAt: string };
  quote: JsonObject & { signature: string };
};

/** The content of a quote's signature, as EIP-712 types. */
export const QUOTE_TYPES = {
  Quote: [
    { name: 'id', type: 'string' },
    { name: 'intentHashes', type: 'bytes32[]' },
    { name: 'expiresAt', type: 'uint64' },
  ],
};

const BASE = 8453;
const SOLANA = 1399811149;

/** A hash of 32 bytes that all differ, so that no change of one byte can pass for another. */
function hash(first: number): string {
  const bytes = Array.from({ length: 32 }, (_, at) => (first + 37 * at) % 256);
  return `0x${Buffer.from(bytes).toString('hex')}`;
}

const upper = (text: string): string => `0x${text.slice(2).toUpperCase()}`;
const mixed = (text: string): string =>
  text.replace(/[a-f]/g, (digit, at: number) => (at % 2 === 0 ? digit.toUpperCase() : digit));

const [A, B, C, D] = [hash(0x0a), hash(0x5b), hash(0x9c), hash(0xed)];

/** The parts of each vector: `covered` by hand, the quote as a service could send it. */
const CASES: {
  name: string;
  chainId: number;
  key: string;
  id: string;
  expiresAt: number | string;
  /** `intentHash`, then the hashes of each step. */
  hashes: [string, string[][] | null];
  covered: string[];
}[] = [
  {
    name: 'one intent on an EVM chain, without steps',
    chainId: BASE,
    key: '11',
    id: 'quote:3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41',
    expiresAt: 1795174524,
    hashes: [A, null],
    covered: [A],
  },
  {
    name: 'the intent of the quote again in its step',
    chainId: 10,
    key: '22',
    id: 'quote:00000000-0000-4000-8000-000000000001',
    expiresAt: 1795174525,
    hashes: [B, [[B]]],
    covered: [B],
  },
  {
    name: 'several intents in several steps, in no order, on Solana',
    chainId: SOLANA,
    key: '33',
    id: 'quote:9a1b2c3d-4e5f-4a6b-8c7d-0e1f2a3b4c5d',
    expiresAt: 1795174526,
    hashes: [D, [[C], [A, B]]],
    covered: [A, B, C, D],
  },
  {
    name: 'the same intents in upper, mixed and lower case, and twice',
    chainId: 1,
    key: '44',
    id: 'quote:ffffffff-ffff-4fff-bfff-ffffffffffff',
    expiresAt: 4294967296,
    hashes: [upper(C), [[mixed(C), A], [upper(A)], [C, mixed(A)]]],
    covered: [A, C],
  },
  {
    name: 'the largest expiry, as digits',
    chainId: 42161,
    key: '55',
    id: 'quote:12345678-9abc-4def-8123-456789abcdef',
    expiresAt: '18446744073709551615',
    hashes: [A, [[], [B]]],
    covered: [A, B],
  },
];

/** Signs every case with ethers. The signatures are deterministic (RFC 6979). */
export async function makeQuoteVectors(): Promise<QuoteVector[]> {
  return Promise.all(
    CASES.map(async ({ name, chainId, key, id, expiresAt, hashes: [intentHash, steps], covered }) => {
      const wallet = new Wallet(`0x${key.repeat(32)}`);
      const domain = { name: 'ServiceQuoteV1', version: '1', chainId };
      const signature = await wallet.signTypedData(domain, QUOTE_TYPES, {
        id,
        intentHashes: covered,
        expiresAt,
      });
      const intents = (step: string[]): JsonObject => ({
        type: 'BRIDGE',
        intents: step.map((of) => ({ intentHash: of, role: 'primary' })),
      });
      return {
        name,
        quoteSigner: wallet.address,
        covered: { chainId, id, intentHashes: covered, expiresAt: String(expiresAt) },
        quote: {
          id,
          type: 'exact-in',
          expiresAt,
          intentHash,
          source: { chainId },
          ...(steps === null ? {} : { steps: steps.map(intents) }),
          signature,
        },
      };
    }),
  );
}
