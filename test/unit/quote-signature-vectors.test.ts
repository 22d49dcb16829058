import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { computeAddress, Signature, SigningKey, TypedDataEncoder } from 'ethers';
import fc from 'fast-check';
import { type Hex, isHex, recoverAddress } from 'viem';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { verifyQuoteSignature } from '../../src/domain/quotes/quote-signature.ts';
import { makeQuoteVectors, QUOTE_TYPES, type QuoteVector } from '../support/quote-vectors.ts';
import { spread } from '../support/spread.ts';

const FILE = join(import.meta.dirname, '../fixtures/quote-signatures/vectors.json');

const fileSchema = z.object({ madeBy: z.string(), vectors: z.array(z.custom<QuoteVector>()) });
const { vectors } = fileSchema.parse(JSON.parse(await readFile(FILE, 'utf8')));

/** Changes of one byte: of its lowest bit, of all bits. */
const MASKS = [0x01, 0xff];

const BYTES = 9;

const MAX_UINT64 = 2n ** 64n - 1n;
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** Every text that differs from this hex in one byte, by each of the masks. */
function hexChanges(hex: string): string[] {
  const bytes = Buffer.from(hex.slice(2), 'hex');
  return spread(bytes.keys(), BYTES).flatMap((at) =>
    MASKS.map((mask) => {
      const changed = Buffer.from(bytes);
      changed[at] = (bytes[at] ?? 0) ^ mask;
      return `0x${changed.toString('hex')}`;
    }),
  );
}

/** Every number of the same length that differs from this one in one byte, by each of the masks. */
function numberChanges(number: bigint, bytes: number): bigint[] {
  return spread(Array(bytes).keys(), BYTES).flatMap((at) =>
    MASKS.map((mask) => number ^ (BigInt(mask) << BigInt(8 * at))),
  );
}

/** The signed digest, by ethers. */
function digestOf({ chainId, ...message }: { chainId: number } & Record<string, unknown>): Hex {
  const domain = { name: 'ServiceQuoteV1', version: '1', chainId };
  return hex(TypedDataEncoder.hash(domain, QUOTE_TYPES, message));
}

function hex(text: string): Hex {
  if (!isHex(text)) throw new Error(`found ${text}, expected hex`);
  return text;
}

async function isValid(quote: JsonValue, quoteSigner: string): Promise<boolean> {
  return (await verifyQuoteSignature({ quote, quoteSigner })).valid;
}

/** The quotes that are accepted as signed. */
async function validOf(quotes: readonly JsonObject[], quoteSigner: string): Promise<JsonObject[]> {
  const verdicts = await Promise.all(quotes.map((quote) => isValid(quote, quoteSigner)));
  return quotes.filter((_, at) => verdicts[at]);
}

/** The quote with every occurrence of one intent, in any case, replaced by another. */
function withHash(quote: JsonObject, { from, to }: { from: string; to: string }): JsonObject {
  const swap = (value: JsonValue): JsonValue => {
    if (typeof value === 'string') return value.toLowerCase() === from ? to : value;
    if (Array.isArray(value)) return value.map(swap);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, swap(part)]));
  };
  const swapped = swap(quote);
  if (swapped === null || typeof swapped !== 'object' || Array.isArray(swapped)) throw new Error('no quote');
  return swapped;
}

test('the vectors equal the present signatures of ethers', async () => {
  expect(await makeQuoteVectors()).toEqual(vectors);
});

describe.each(vectors.map((vector) => [vector.name, vector] as const))('%s:', (_name, vector) => {
  const { quote, quoteSigner, covered } = vector;

  test('the signature of ethers is valid, and covers all members', async () => {
    const verdict = await verifyQuoteSignature({ quote, quoteSigner });
    expect(verdict).toMatchObject({
      valid: true,
      signer: quoteSigner,
      quote: {
        id: covered.id,
        intentHashes: covered.intentHashes,
        expiresAt: BigInt(covered.expiresAt),
        sourceChainId: covered.chainId,
      },
    });
  });

  test('no change of one byte of the id', async () => {
    const bytes = Buffer.from(covered.id);
    const changes = spread(bytes.keys(), BYTES).flatMap((at) =>
      // Only ASCII stays one byte.
      [0x01, 0x10].map((mask) => {
        const changed = Buffer.from(bytes);
        changed[at] = (bytes[at] ?? 0) ^ mask;
        return { ...quote, id: changed.toString('latin1') };
      }),
    );
    expect(changes.filter(({ id }) => id === covered.id)).toEqual([]);
    expect(await validOf(changes, quoteSigner)).toEqual([]);
  });

  test.each(covered.intentHashes)('no change of one byte of the intent %s', async (from) => {
    const changes = hexChanges(from).map((to) => withHash(quote, { from, to }));
    expect(await validOf(changes, quoteSigner)).toEqual([]);
  });

  test('no change of one byte of the expiry', async () => {
    const changes = numberChanges(BigInt(covered.expiresAt), 8).map((expiresAt) => ({
      ...quote,
      expiresAt: String(expiresAt),
    }));
    expect(await validOf(changes, quoteSigner)).toEqual([]);
    expect(await isValid({ ...quote, expiresAt: covered.expiresAt }, quoteSigner)).toBe(true);
  });

  test('no change of one byte of the chain id', async () => {
    // JavaScript counts six bytes exactly; a larger chain id cannot be read.
    const changes = numberChanges(BigInt(covered.chainId), 8).map((chainId) => ({
      ...quote,
      source: { chainId: String(chainId) },
    }));
    expect(await validOf(changes, quoteSigner)).toEqual([]);
    const same = { ...quote, source: { chainId: String(covered.chainId) } };
    expect(await isValid(same, quoteSigner)).toBe(true);
  });

  test('no change of one byte of the signature', async () => {
    const changes = hexChanges(quote.signature).map((signature) => ({ ...quote, signature }));
    expect(changes).toHaveLength(spread(Array(65).keys(), BYTES).length * MASKS.length);
    expect(await validOf(changes, quoteSigner)).toEqual([]);
  });

  test('no change of one byte of the signer', async () => {
    const verdicts = hexChanges(quoteSigner).map((signer) => isValid(quote, signer));
    expect((await Promise.all(verdicts)).filter(Boolean)).toEqual([]);
  });

  // Each recovers the same signer, which is the interface's only requirement.
  test.each<[string, (signature: Signature) => string]>([
    ['the end 0 or 1', ({ r, s, yParity }) => `${r}${s.slice(2)}0${yParity}`],
    ['a high s', (signature) => highS(signature, 27)],
    ['a high s and the end 0 or 1', (signature) => highS(signature, 0)],
  ])('valid with %s in the signature, and not with the other end', async (_form, write) => {
    const signature = hex(write(Signature.from(quote.signature)));
    // ethers refuses a high s.
    expect(await recoverAddress({ hash: digestOf(covered), signature })).toBe(quoteSigner);
    expect(await isValid({ ...quote, signature }, quoteSigner)).toBe(true);
    const other = (Number.parseInt(signature.slice(-2), 16) ^ (signature.at(-2) === '1' ? 7 : 1))
      .toString(16)
      .padStart(2, '0');
    expect(await isValid({ ...quote, signature: signature.slice(0, -2) + other }, quoteSigner)).toBe(false);
  });

  test('not with 64 bytes (EIP-2098) in the signature, though the signer is the same', async () => {
    const signature = hex(Signature.from(quote.signature).compactSerialized);
    expect(computeAddress(SigningKey.recoverPublicKey(digestOf(covered), signature))).toBe(quoteSigner);
    const verdict = await verifyQuoteSignature({ quote: { ...quote, signature }, quoteSigner });
    expect(verdict).toMatchObject({ valid: false, part: 'signature' });
  });
});

/** The other of the two signatures that recover alike. */
function highS({ r, s, yParity }: Signature, from: 0 | 27): string {
  const end = from + (yParity === 0 ? 1 : 0);
  return `${r}${(ORDER - BigInt(s)).toString(16).padStart(64, '0')}${end.toString(16).padStart(2, '0')}`;
}

const hashes = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((raw) => `0x${Buffer.from(raw).toString('hex')}`);

test('any quote signed by ethers is valid as it is, in any order and letter case, and not when one byte is another', async () => {
  const drawn = fc.record({
    key: fc.bigInt({ min: 1n, max: ORDER - 1n }),
    uuid: fc.uuid(),
    chainId: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    expiresAt: fc.bigInt({ min: 0n, max: MAX_UINT64 }),
    covered: fc.uniqueArray(hashes, { minLength: 1, maxLength: 5 }),
    again: fc.array(fc.nat(), { maxLength: 4 }),
    byte: fc.nat(64),
    mask: fc.integer({ min: 1, max: 255 }),
  });
  await fc.assert(
    fc.asyncProperty(drawn, async ({ key, uuid, chainId, expiresAt, covered, again, byte, mask }) => {
      const id = `quote:${uuid}`;
      const signingKey = new SigningKey(`0x${key.toString(16).padStart(64, '0')}`);
      const digest = digestOf({ chainId, id, intentHashes: covered.toSorted(), expiresAt });
      const signature = signingKey.sign(digest).serialized;
      const [main = '', ...others] = covered;
      const repeated = again.map((at) => `0x${(covered[at % covered.length] ?? '').slice(2).toUpperCase()}`);
      const quote = {
        id,
        expiresAt: String(expiresAt),
        intentHash: main,
        source: { chainId },
        steps: [{ type: 'BRIDGE', intents: [...others, ...repeated].map((intentHash) => ({ intentHash })) }],
        signature,
      };
      const quoteSigner = computeAddress(signingKey);
      expect(await isValid(quote, quoteSigner)).toBe(true);
      const raw = Buffer.from(signature.slice(2), 'hex');
      const former = raw[byte] ?? 0;
      raw[byte] = former ^ mask;
      // The last byte may be written as 27 or 28, or as 0 or 1.
      if (byte === 64 && raw[byte] === former - 27) return;
      expect(await isValid({ ...quote, signature: `0x${raw.toString('hex')}` }, quoteSigner)).toBe(false);
    }),
    { numRuns: 100 },
  );
});
