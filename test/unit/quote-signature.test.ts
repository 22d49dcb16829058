import { type Hex, hexToBytes } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import {
  type QuoteVerdict,
  readSignedQuote,
  verifyQuoteSignature,
} from '../../src/domain/quotes/quote-signature.ts';
import { QUOTE_CHAIN, QUOTE_SIGNER, signQuote } from '../support/signed-quote.ts';
import { spread } from '../support/spread.ts';

const signer = QUOTE_SIGNER;
const solanaSigner = privateKeyToAccount(`0x${'22'.repeat(32)}`);
const BASE = QUOTE_CHAIN;
const SOLANA = 1399811149;
const hash = (digit: string): Hex => `0x${digit.repeat(64)}`;

const ID = 'quote:3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41';
const EXPIRES_AT = 1795174524;

/** Hashes in another order, in upper case and repeated; the signature covers a, b, c. */
async function signedQuote(chainId = BASE, account = signer): Promise<JsonObject & { signature: Hex }> {
  const intentHashes = [hash('a'), hash('b'), hash('c')];
  return {
    id: ID,
    type: 'exact-in',
    signature: await signQuote({ id: ID, intentHashes, expiresAt: BigInt(EXPIRES_AT), chainId }, account),
    expiresAt: EXPIRES_AT,
    intentHash: `0x${'B'.repeat(64)}`,
    source: { chainId, funder: '0x52908400098527886e0f7030069857d2e4169ee7' },
    steps: [
      { type: 'SWAP', intents: [{ intentHash: hash('c'), role: 'primary' }] },
      { type: 'BRIDGE', intents: [{ intentHash: hash('a') }, { intentHash: hash('b') }] },
    ],
  };
}

const verify = (quote: JsonValue, quoteSigner: string = signer.address): Promise<QuoteVerdict> =>
  verifyQuoteSignature({ quote, quoteSigner });

async function flawOf(quote: JsonValue, quoteSigner?: string): Promise<[string, string]> {
  const verdict = await verify(quote, quoteSigner);
  return verdict.valid ? ['', 'valid'] : [verdict.part, verdict.reason];
}

describe('a quote', () => {
  test.each([
    ['an EVM chain', BASE, signer],
    ['Solana', SOLANA, solanaSigner],
  ])('from %s is valid when its chain’s signer signed it', async (_name, chainId, account) => {
    const verdict = await verify(await signedQuote(chainId, account), account.address);
    expect(verdict).toMatchObject({
      valid: true,
      signer: account.address,
      quote: {
        id: ID,
        intentHashes: [hash('a'), hash('b'), hash('c')],
        expiresAt: BigInt(EXPIRES_AT),
        sourceChainId: chainId,
      },
    });
  });

  test('is valid for any letter case of the published signer', async () => {
    const quote = await signedQuote();
    expect(await verify(quote, signer.address.toLowerCase())).toMatchObject({ valid: true });
    expect(await verify(quote, `0x${signer.address.slice(2).toUpperCase()}`)).toMatchObject({ valid: true });
  });

  test('is valid for any letter case of its signature, that of the prefix too', async () => {
    const quote = await signedQuote();
    for (const signature of [quote.signature.toUpperCase(), `0x${quote.signature.slice(2).toUpperCase()}`]) {
      expect(await verify({ ...quote, signature })).toMatchObject({ valid: true });
    }
  });

  test('without steps is valid by its own intent hash alone', async () => {
    const covered = { id: ID, intentHashes: [hash('d')], expiresAt: 5n, chainId: 1 };
    const bare = {
      id: ID,
      intentHash: hash('d'),
      expiresAt: 5,
      source: { chainId: 1 },
      signature: await signQuote(covered),
    };
    expect(await verify(bare)).toMatchObject({ valid: true });
    expect(await verify({ ...bare, steps: [] })).toMatchObject({ valid: true });
    expect(await verify({ ...bare, steps: [{ type: 'BRIDGE' }] })).toMatchObject({ valid: true });
  });

  test('that expires later than JavaScript counts is valid by its digits', async () => {
    const expiresAt = 2n ** 64n - 1n;
    const covered = { id: ID, intentHashes: [hash('d')], expiresAt, chainId: 1 };
    const signature = await signQuote(covered);
    const quote = {
      id: ID,
      intentHash: hash('d'),
      expiresAt: String(expiresAt),
      source: { chainId: 1 },
      signature,
    };
    expect(await verify(quote)).toMatchObject({ valid: true });
    expect((await flawOf({ ...quote, expiresAt: String(expiresAt + 1n) }))[0]).toBe('expiresAt');
  });
});

describe('a quote that was altered is not valid:', () => {
  test('each byte of the id', async () => {
    const quote = await signedQuote();
    for (const at of spread(Array(ID.length).keys(), 9)) {
      const id = `${ID.slice(0, at)}${ID[at] === '0' ? '1' : '0'}${ID.slice(at + 1)}`;
      expect(await verify({ ...quote, id }), id).toMatchObject({ valid: false });
    }
    expect(await verify({ ...quote, id: ID.slice(0, -1) })).toMatchObject({ valid: false });
  });

  test('each byte of the intent hash, and of a hash in a step', async () => {
    const quote = await signedQuote();
    for (const at of spread(Array(32).keys(), 9)) {
      const changed = `${hash('b').slice(0, 2 + 2 * at)}${'7f'}${hash('b').slice(4 + 2 * at)}`;
      expect(await verify({ ...quote, intentHash: changed })).toMatchObject({ valid: false });
      const steps = [
        { intents: [{ intentHash: hash('a') }, { intentHash: hash('c') }, { intentHash: changed }] },
      ];
      expect(await verify({ ...quote, steps })).toMatchObject({ valid: false });
    }
  });

  test('each bit of the expiry and of the chain id', async () => {
    const quote = await signedQuote();
    for (const bit of spread(Array(50).keys(), 17)) {
      const expiresAt = Number(BigInt(EXPIRES_AT) ^ (1n << BigInt(bit)));
      expect(await verify({ ...quote, expiresAt })).toMatchObject({ valid: false });
      const chainId = Number(BigInt(BASE) ^ (1n << BigInt(bit)));
      expect(await verify({ ...quote, source: { chainId } })).toMatchObject({ valid: false });
    }
  });

  test('each byte of the signature, in several ways', async () => {
    const quote = await signedQuote();
    const bytes = hexToBytes(quote.signature);
    for (const [at, byte] of spread(bytes.entries(), 17)) {
      for (const value of [byte ^ 1, byte ^ 0x80, byte ^ 27, 0, 1, 255]) {
        // The last byte may be written as 27 or 28, or as 0 or 1.
        if (value === byte || (at === 64 && value === byte - 27)) continue;
        const hex = value.toString(16).padStart(2, '0');
        const signature = `${quote.signature.slice(0, 2 + 2 * at)}${hex}${quote.signature.slice(4 + 2 * at)}`;
        expect(await verify({ ...quote, signature }), signature).toMatchObject({ valid: false });
      }
    }
  });

  test('a last byte that names no signer', async () => {
    const quote = await signedQuote();
    const flaw = await flawOf({ ...quote, signature: `${quote.signature.slice(0, 130)}02` });
    expect(flaw).toEqual(['signature', 'its last byte is 0x02, expected 0x1b, 0x1c, 0x00 or 0x01']);
  });

  test('a signature for one chain, on another chain with the same signer', async () => {
    const quote = await signedQuote(SOLANA, signer);
    expect((await flawOf({ ...quote, source: { chainId: BASE } }))[0]).toBe('signature');
    const verdict = await verifyQuoteSignature({
      quote: { ...quote, source: { chainId: BASE } },
      quoteSigner: signer.address,
      otherChains: [
        { chainId: 1, quoteSigner: solanaSigner.address },
        { chainId: SOLANA, quoteSigner: signer.address },
      ],
    });
    expect(verdict).toMatchObject({
      valid: false,
      part: 'source.chainId',
      reason: `found ${BASE}, but the quote was signed for chain ${SOLANA}`,
    });
  });

  test('an intent that was added, which is named', async () => {
    const quote = await signedQuote();
    const steps = [
      ...(Array.isArray(quote.steps) ? quote.steps : []),
      { intents: [{ intentHash: hash('9') }] },
    ];
    expect(await flawOf({ ...quote, steps })).toEqual([
      'steps',
      `${hash('9')} is not among the intents that were signed`,
    ]);
  });

  test('a removed intent', async () => {
    expect((await flawOf({ ...(await signedQuote()), steps: [] }))[0]).toBe('signature');
  });

  test('another key, which is named', async () => {
    const other = privateKeyToAccount(`0x${'47'.repeat(32)}`);
    const verdict = await verify(await signedQuote(BASE, other));
    expect(verdict).toMatchObject({ valid: false, part: 'signature', recovered: other.address });
    expect((await flawOf(await signedQuote(BASE, other)))[1]).toContain(
      `signed by ${other.address}, expected ${signer.address} (chain ${BASE})`,
    );
  });
});

describe('a quote that cannot be read is not valid, and its part is named:', () => {
  test.each<[string, JsonObject]>([
    ['id', { id: ID.slice('quote:'.length) }],
    ['id', { id: 'quote:' }],
    ['id', { id: 5 }],
    ['intentHash', { intentHash: '0x12' }],
    ['intentHash', { intentHash: null }],
    ['steps', { steps: {} }],
    ['steps', { steps: ['BRIDGE'] }],
    ['steps', { steps: [{ intents: 'one' }] }],
    ['steps', { steps: [{ intents: [{ intentHash: '0x12' }] }] }],
    ['steps', { steps: [{ intents: [hash('a')] }] }],
    ['expiresAt', { expiresAt: -1 }],
    ['expiresAt', { expiresAt: 1.5 }],
    ['expiresAt', { expiresAt: '2026-11-20' }],
    ['source.chainId', { source: null }],
    ['source.chainId', { source: { chainId: 0 } }],
    ['source.chainId', { source: { chainId: '8453a' } }],
    ['signature', { signature: '0x' }],
    ['signature', { signature: null }],
    ['signature', { signature: `0x${'00'.repeat(64)}1b` }],
    ['signature', { signature: `0x${'11'.repeat(64)}1d` }],
  ])('%s of %j', async (part, change) => {
    expect((await flawOf({ ...(await signedQuote()), ...change }))[0]).toBe(part);
  });

  test.each([[null], ['quote'], [[]]])('%j is no quote', async (value) => {
    expect((await flawOf(value))[0]).toBe('quote');
    expect(readSignedQuote(value)).toMatchObject({ part: 'quote' });
  });

  test.each(['', '0x1', 'So11111111111111111111111111111111111111112'])('signer %j', async (quoteSigner) => {
    expect((await flawOf(await signedQuote(), quoteSigner))[0]).toBe('quoteSigner');
  });
});
