import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readGaslessJob } from '../../examples/round-trip/submit.ts';
import { type JsonObject, type JsonValue, parseJson } from '../../src/domain/json.ts';
import { LIMITS } from '../../src/domain/limits.ts';
import { verifyQuoteSignature } from '../../src/domain/quotes/quote-signature.ts';
import { readChains, readTokens } from '../../src/upstream/wire/chain-list.ts';
import { readOpenQuotes } from '../../src/upstream/wire/open-quote.ts';
import { readQuoteAnswer } from '../../src/upstream/wire/quote.ts';

const HASH = `0x${'a'.repeat(64)}`;
const SIGNER = `0x${'1'.repeat(40)}`;

const quote: JsonObject = {
  id: 'quote:1',
  type: 'exact-in',
  signature: `0x${'12'.repeat(64)}1b`,
  expiresAt: 5,
  intentHash: HASH,
  source: { chainId: 1, token: '0x', funder: '0x', amount: '5' },
  destination: { chainId: 10, token: '0x', recipient: '0x', amountOut: '5', minAmountOut: '4' },
  fees: [{ type: 'solver', token: '0x', amount: '1' }],
  steps: [{ type: 'BRIDGE', intents: [{ intentHash: HASH, role: 'primary' }] }],
  execution: { transaction: { type: 'evm' } },
};

const openQuotes: JsonObject = {
  data: [
    { quoteID: 'quote:1', quoteData: { quoteResponse: { destinationAmount: '5', fees: [], deadline: 5 } } },
  ],
};

const noise = fc.json({ maxDepth: 3 }).map((text) => parseJson(text, { limits: LIMITS.upstream }));

function mutated(value: JsonObject): fc.Arbitrary<JsonObject> {
  return fc.record({ picks: fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }), noise }).map((change) => {
    const copy = structuredClone(value);
    let at: JsonValue[] | JsonObject = copy;
    for (const [depth, pick] of change.picks.entries()) {
      const keys: string[] = Object.keys(at);
      const key = keys[pick % keys.length];
      if (key === undefined) break;
      const child: JsonValue | undefined = Array.isArray(at) ? at[Number(key)] : at[key];
      if (depth < change.picks.length - 1 && typeof child === 'object' && child !== null) {
        at = child;
        continue;
      }
      if (Array.isArray(at)) at[Number(key)] = change.noise;
      else at[key] = change.noise;
      break;
    }
    return copy;
  });
}

describe('for any answer', () => {
  test('every reader gives a value or states its findings', () => {
    const readers = [readQuoteAnswer, readOpenQuotes, readChains, readTokens, readGaslessJob];
    fc.assert(
      fc.property(fc.oneof(noise, mutated(quote), mutated(openQuotes)), (body) => {
        for (const read of readers) {
          const parsed = read(body);
          if ('mismatch' in parsed) expect(parsed.mismatch).toMatch(/ as /);
          else expect(parsed.value).toBeTypeOf('object');
        }
      }),
      { numRuns: 3_000 },
    );
  });

  test('a quote whose core is untouched is read, with all its members', () => {
    const core = ['id', 'signature', 'expiresAt', 'intentHash', 'source'];
    fc.assert(
      fc.property(mutated(quote), (body) => {
        fc.pre(core.every((name) => JSON.stringify(body[name]) === JSON.stringify(quote[name])));
        expect(readQuoteAnswer(body)).toMatchObject({ value: { id: 'quote:1', raw: body } });
      }),
      { numRuns: 1_000 },
    );
  });

  test('a quote gets a verdict, and an unsigned one is never valid', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(noise, mutated(quote)), async (body) => {
        const verdict = await verifyQuoteSignature({ quote: body, quoteSigner: SIGNER });
        expect(verdict).toMatchObject({ valid: false, reason: expect.stringMatching(/./) });
      }),
      { numRuns: 500 },
    );
  });
});
