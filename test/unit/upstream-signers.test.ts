import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { UpstreamFailure } from '../../src/upstream/client/failure.ts';
import { QuoteSigners } from '../../src/upstream/client/quote-signers.ts';
import type { Answer } from '../../src/upstream/client/send-request.ts';
import {
  type ChainEntry,
  type ParsedList,
  readChains,
  readTokens,
} from '../../src/upstream/wire/chain-list.ts';
import { QUOTE_CHAIN, QUOTE_SIGNER, signQuote } from '../support/signed-quote.ts';

const old = QUOTE_SIGNER;
const current = privateKeyToAccount(`0x${'22'.repeat(32)}`);
const stranger = privateKeyToAccount(`0x${'33'.repeat(32)}`);
const INTENT: Hex = `0x${'a'.repeat(64)}`;

async function quoteBy(account: typeof old, chainId = QUOTE_CHAIN): Promise<JsonObject> {
  const signature = await signQuote(
    { id: 'quote:1', intentHashes: [INTENT], expiresAt: 5n, chainId },
    account,
  );
  return { id: 'quote:1', signature, expiresAt: 5, intentHash: INTENT, source: { chainId } };
}

/** A chains endpoint whose signer can be rotated, and that counts its reads. */
function chains() {
  const state = { signer: old.address, reads: 0, down: false, pending: [] as (() => void)[], held: false };
  const answer = async (): Promise<Answer<ParsedList<ChainEntry>>> => {
    state.reads++;
    if (state.down) {
      throw new UpstreamFailure({
        endpoint: 'chains',
        code: 'unavailable',
        found: 'nothing',
        expected: 'chains',
        httpStatus: null,
        problemCode: null,
        retryAfterMs: null,
      });
    }
    const parsed = readChains({ chains: [{ chainId: 8453, quoteSigner: state.signer }, { chainId: 10 }] });
    if ('mismatch' in parsed) throw new Error(parsed.mismatch);
    if (state.held) await new Promise<void>((resolve) => state.pending.push(resolve));
    return { value: parsed.value, httpStatus: 200, dateMs: null, durationMs: 1 };
  };
  return { state, client: { chains: answer } };
}

describe('the signers of quotes', () => {
  test('that were read shortly before a quote are trusted for those that do not hold, where that is requested', async () => {
    const { state, client } = chains();
    const signers = new QuoteSigners({ client });
    expect(await signers.verify(await quoteBy(old))).toMatchObject({ valid: true });
    for (let i = 0; i < 3; i++) {
      const verdict = await signers.verify(await quoteBy(stranger), { trustedForMs: 60_000 });
      expect(verdict).toMatchObject({ valid: false, part: 'signature' });
    }
    expect(state.reads).toBe(1);
    state.signer = current.address;
    const strict = await signers.verify(await quoteBy(current), { trustedForMs: 0 });
    expect([strict.valid, state.reads]).toEqual([true, 2]);
  });

  test('are read once and cached', async () => {
    const { state, client } = chains();
    const signers = new QuoteSigners({ client });
    for (let i = 0; i < 3; i++)
      expect(await signers.verify(await quoteBy(old))).toMatchObject({ valid: true });
    expect(state.reads).toBe(1);
  });

  test('are read again when a quote does not match, so that a rotation is followed', async () => {
    const { state, client } = chains();
    const signers = new QuoteSigners({ client });
    await signers.verify(await quoteBy(old));
    state.signer = current.address;
    expect(await signers.verify(await quoteBy(current))).toMatchObject({ valid: true });
    expect(state.reads).toBe(2);
    expect(await signers.verify(await quoteBy(old))).toMatchObject({ valid: false, recovered: old.address });
    expect(state.reads).toBe(3);
  });

  test('are read again when they are old', async () => {
    const { state, client } = chains();
    const signers = new QuoteSigners({ client, freshMs: 0 });
    await signers.verify(await quoteBy(old));
    state.signer = current.address;
    expect(await signers.verify(await quoteBy(old))).toMatchObject({ valid: false });
    expect(state.reads).toBe(2);
  });

  test('are read once for all concurrent callers', async () => {
    const { state, client } = chains();
    const signers = new QuoteSigners({ client });
    const quote = await quoteBy(old);
    const verdicts = await Promise.all([signers.verify(quote), signers.verify(quote), signers.verify(quote)]);
    expect(verdicts.map(({ valid }) => valid)).toEqual([true, true, true]);
    expect(state.reads).toBe(1);
  });

  test('are read anew for a quote that came while an older read was under way', async () => {
    const { state, client } = chains();
    const signers = new QuoteSigners({ client });
    await signers.verify(await quoteBy(old));
    state.held = true;
    const forged = signers.verify(await quoteBy(stranger));
    await expect.poll(() => state.pending.length).toBe(1);
    // The read under way has the signer from before this rotation.
    state.signer = current.address;
    const rotated = signers.verify(await quoteBy(current));
    // It has joined that read before its end.
    await new Promise((resolve) => setImmediate(resolve));
    state.held = false;
    state.pending[0]?.();
    expect(await forged).toMatchObject({ valid: false, recovered: stranger.address });
    expect(await rotated).toMatchObject({ valid: true });
    expect(state.reads).toBe(3);
  });

  test('that cannot be read make no verdict', async () => {
    const { state, client } = chains();
    const signers = new QuoteSigners({ client });
    await signers.verify(await quoteBy(old));
    state.down = true;
    await expect(signers.verify(await quoteBy(current))).rejects.toThrow(UpstreamFailure);
    expect(await signers.verify(await quoteBy(old))).toMatchObject({ valid: true });
  });

  test.each([10, 99])('that chain %i does not publish are named as missing', async (chainId) => {
    const { client } = chains();
    const verdict = await new QuoteSigners({ client }).verify(await quoteBy(old, chainId));
    expect(verdict).toMatchObject({ valid: false, part: 'quoteSigner' });
  });

  test('are not requested a quote that cannot be read', async () => {
    const { state, client } = chains();
    const verdict = await new QuoteSigners({ client }).verify({ ...(await quoteBy(old)), expiresAt: null });
    expect(verdict).toMatchObject({ valid: false, part: 'expiresAt' });
    expect(state.reads).toBe(0);
  });
});

describe('a list of chains or tokens', () => {
  const chain = { chainId: 8453, name: 'Base', quoteSigner: old.address, extra: 1 };
  const token = { chainId: '8453', address: '0xAb', symbol: 'USDC', decimals: 6 };

  test.each([[[chain]], [{ chains: [chain] }], [{ data: [chain] }]])('is read from %j', (body) => {
    const { chainId, name, quoteSigner } = chain;
    expect(readChains(body)).toEqual({
      value: { entries: [{ chainId, name, quoteSigner, unreadable: [] }], unreadable: [] },
    });
  });

  test('retains its readable entries', () => {
    expect(readTokens({ tokens: [token, { ...token, address: 5 }, 'USDC', { address: '0x' }] })).toEqual({
      value: {
        entries: [{ chainId: 8453, address: '0xAb', symbol: 'USDC', decimals: 6 }],
        unreadable: [
          { index: 1, reason: 'a number as address' },
          { index: 2, reason: 'a string as an entry' },
          { index: 3, reason: 'nothing as chainId' },
        ],
      },
    });
  });

  test.each([[null], [{}], [{ chains: {} }], ['x']])('is not %j', (body) => {
    expect(readChains(body)).toMatchObject({ mismatch: expect.stringContaining('as the list of chains') });
  });
});
