import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Event } from '../../src/domain/events/event.ts';
import { type Promised, TRANSFER } from '../../src/domain/events/event-schema.ts';
import { makeEvent } from '../../src/domain/events/make-event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { promisedBy, readImportedQuote } from '../../src/domain/quotes/promised.ts';
import { asSubjectId, eventKind } from '../../src/domain/subjects/subject.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { transferFacts } from '../../src/domain/transfers/transfer-facts.ts';

const HASH = `0x${'ab'.repeat(32)}`;
const USDC_BASE = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const USDC_OPTIMISM = '0x0b2c639c533813f4aa9d7837caf62653d097ff85';
const T = 1_795_174_200;

const SOURCE_TX = { chainId: 8453, txHash: `0x${'51'.repeat(32)}`, token: USDC_BASE, amount: '1250000000' };
const DESTINATION_TX = {
  chainId: 10,
  txHash: `0x${'d7'.repeat(32)}`,
  token: USDC_OPTIMISM,
  amount: '1249400000',
};
const STEP = {
  type: 'BRIDGE',
  intentHash: HASH,
  status: 'OPEN',
  from: { token: USDC_BASE, amount: '1250000000', chainId: 8453 },
  to: { token: USDC_OPTIMISM, amount: '1249400000', chainId: 10 },
  transactions: {},
};
const PROMISED: Promised = {
  quote: 'quote:3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41',
  source: { chainId: '8453', token: USDC_BASE, amount: '1250000000', funder: '0xfunder' },
  destination: {
    chainId: '10',
    token: USDC_OPTIMISM,
    amount: '1249400000',
    minimum: '1249000000',
    recipient: '0xrecipient',
  },
  fees: [{ kind: 'solver', token: USDC_BASE, amount: '600000' }],
};

type More = Partial<Parameters<typeof makeEvent>[0]> & { type?: string; changes?: string[] };

function eventOf(record: JsonObject, more: More = {}, id = `intent:${HASH}`): Event {
  const { type = 'intent.filled', changes = [], ...fields } = more;
  return makeEvent({
    subject: { kind: eventKind(asSubjectId(id)), id },
    sequence: 2,
    epoch: 1,
    transition: {
      type,
      status: 'filled',
      previousStatus: 'pending',
      changes,
      skipped: false,
      regression: false,
    },
    record,
    updatedAt: T + 30,
    nowMs: (T + 31) * 1_000,
    ...fields,
  });
}

const factsOf = (record: JsonObject, more?: More, id?: string) =>
  transferFacts(eventOf(record, more, id), COMMON_NAMES) ?? {};

const usdc = (amount: string, units: string, end: 'base' | 'optimism') => ({
  amount,
  units,
  symbol: 'USDC',
  token: end === 'base' ? USDC_BASE : USDC_OPTIMISM,
  chainId: end === 'base' ? '8453' : '10',
});

describe('the summary of a transfer in an event', () => {
  test('names chains, amounts and links of both ends', () => {
    expect(factsOf({ sourceTx: SOURCE_TX, destinationTx: DESTINATION_TX })).toEqual({
      source: {
        chainId: '8453',
        chain: 'Base',
        txHash: SOURCE_TX.txHash,
        txUrl: `https://basescan.org/tx/${SOURCE_TX.txHash}`,
      },
      destination: {
        chainId: '10',
        chain: 'Optimism',
        txHash: DESTINATION_TX.txHash,
        txUrl: `https://optimistic.etherscan.io/tx/${DESTINATION_TX.txHash}`,
      },
      sent: usdc('1250000000', '1250', 'base'),
      delivered: usdc('1249400000', '1249.4', 'optimism'),
    });
  });

  test('counts an amount of steps as promised, never as sent or delivered', () => {
    expect(factsOf({ steps: [STEP] })).toEqual({
      source: { chainId: '8453', chain: 'Base' },
      destination: { chainId: '10', chain: 'Optimism' },
      toSend: usdc('1250000000', '1250', 'base'),
      promised: usdc('1249400000', '1249.4', 'optimism'),
    });
  });

  test('states no units of a token of unknown decimals, and nothing of an invalid amount', () => {
    const token = `0x${'99'.repeat(20)}`;
    const facts = factsOf({
      sourceTx: { ...SOURCE_TX, token },
      destinationTx: { ...DESTINATION_TX, amount: '12.5' },
    });
    expect(facts.sent).toEqual({ amount: '1250000000', token, chainId: '8453' });
    expect(facts).not.toHaveProperty('delivered');
  });

  test('states the promise of the quote, its fees and the payee', () => {
    expect(factsOf({ steps: [] }, { promised: PROMISED })).toEqual({
      source: { chainId: '8453', chain: 'Base' },
      destination: { chainId: '10', chain: 'Optimism' },
      toSend: usdc('1250000000', '1250', 'base'),
      promised: usdc('1249400000', '1249.4', 'optimism'),
      minimum: usdc('1249000000', '1249', 'optimism'),
      fees: [{ kind: 'solver', ...usdc('600000', '0.6', 'base') }],
      quote: PROMISED.quote,
      funder: '0xfunder',
      recipient: '0xrecipient',
    });
  });

  test.each<[string, JsonObject, { amount: string; share: number } | undefined]>([
    ['less than the minimum', { amount: '1200000000' }, { amount: '49000000', share: 0.039231 }],
    ['the minimum', { amount: '1249000000' }, undefined],
    ['another token', { amount: '1', token: USDC_BASE }, undefined],
    ['another chain', { amount: '1', chainId: 8453 }, undefined],
    ['an unstated token', { amount: '1', token: null }, undefined],
    ['nothing', { amount: '0' }, { amount: '1249000000', share: 1 }],
  ])('finds a shortfall only in comparable amounts: %s', (_, more, shortfall) => {
    const facts = factsOf({ destinationTx: { ...DESTINATION_TX, ...more } }, { promised: PROMISED });
    if (shortfall === undefined) expect(facts).not.toHaveProperty('shortfall');
    else expect(facts.shortfall).toMatchObject(shortfall);
  });

  test('counts from the funding to the change, and for an event of the clock to now', () => {
    expect(factsOf({}, { fundedAt: T }).secondsSinceFunding).toBe(30);
    expect(factsOf({}, { fundedAt: T, type: 'intent.overdue' }).secondsSinceFunding).toBe(31);
    for (const more of [{ fundedAt: null }, { fundedAt: T, updatedAt: null }, { fundedAt: T + 31 }]) {
      expect(factsOf({}, more)).not.toHaveProperty('secondsSinceFunding');
    }
  });

  test('gives the old and the new value of each changed member', () => {
    const before = { status: 'pending', steps: [STEP], 'dotted.name': 'a', gone: 1, long: 'x'.repeat(1_001) };
    const record = {
      status: 'filled',
      steps: [{ ...STEP, status: 'FULFILLED' }],
      'dotted.name': 'b',
      gone: null,
      long: 'short',
      destinationTx: { ...DESTINATION_TX, note: 'y'.repeat(2_000) },
    };
    const changes = ['status', 'steps[0].status', 'dotted.name', 'gone', 'long', 'destinationTx'];
    expect(factsOf(record, { before, changes }).changed).toEqual([
      { path: 'status', old: 'pending', new: 'filled' },
      { path: 'steps[0].status', old: 'OPEN', new: 'FULFILLED' },
      { path: 'dotted.name', old: 'a', new: 'b' },
      { path: 'gone', old: 1, new: null },
      { path: 'long', new: 'short' },
      { path: 'destinationTx', old: null },
    ]);
    expect(factsOf(record, { changes })).not.toHaveProperty('changed');
  });

  test('names the failed parts, and the reason', () => {
    const subStatus = { chainId: 8453, quoteIds: [], txHash: null, intentHashes: [], state: 'failed' };
    expect(
      factsOf({
        error: 'no gas',
        steps: [{ ...STEP, status: 'Reverted', reason: 'slippage' }, STEP],
        subStatuses: [subStatus, { ...subStatus, state: 'published' }],
      }),
    ).toMatchObject({
      error: 'no gas',
      failed: [
        { path: 'steps[0]', status: 'Reverted', intentHash: HASH, reason: 'slippage' },
        { path: 'subStatuses[0]', status: 'failed', chainId: '8453' },
      ],
    });
  });

  test('states the same of a route, with the fees of its quote', () => {
    const quoteResponse = {
      refundRecipient: '0xback',
      fees: [
        {
          name: 'Solver fee',
          amount: '1500',
          token: { address: USDC_BASE, decimals: 6, symbol: 'USDC' },
          kinds: [{ kind: 'gas', amount: '1', basis: 'flat' }],
        },
      ],
    };
    const record = {
      type: 'route',
      source: { chainId: 8453, token: USDC_BASE, decimals: 6 },
      destination: { chainId: 10, token: USDC_OPTIMISM, decimals: 6 },
      amount: '1250000000',
      funder: '0xfunder',
      recipient: '0xrecipient',
      output: '1249400000',
      minimumOutput: '1249000000',
      fees: [],
      quote: { quoteData: { quoteResponse } },
    };
    expect(factsOf(record, { type: 'route.available', updatedAt: null }, 'route:r')).toEqual({
      source: { chainId: '8453', chain: 'Base' },
      destination: { chainId: '10', chain: 'Optimism' },
      toSend: usdc('1250000000', '1250', 'base'),
      promised: usdc('1249400000', '1249.4', 'optimism'),
      minimum: usdc('1249000000', '1249', 'optimism'),
      fees: [{ kind: 'gas', amount: '1500', units: '0.0015', token: USDC_BASE, symbol: 'USDC' }],
      funder: '0xfunder',
      recipient: '0xrecipient',
      refundRecipient: '0xback',
    });
  });

  test('states nothing where nothing is known', () => {
    expect(transferFacts(eventOf({ status: 'filled' }), COMMON_NAMES)).toBe(null);
  });

  test('fits its schema, for any record', () => {
    const shape = fc.oneof(
      fc.record({ sourceTx: fc.json(), steps: fc.array(fc.json()) }),
      fc.dictionary(
        fc.constantFrom(
          'sourceTx',
          'destinationTx',
          'steps',
          'error',
          'funder',
          'type',
          'fees',
          'subStatuses',
        ),
        fc.oneof(
          fc.jsonValue(),
          fc.array(fc.dictionary(fc.constantFrom('status', 'amount', 'token', 'from', 'to'), fc.jsonValue())),
        ),
      ),
    );
    fc.assert(
      fc.property(shape, fc.boolean(), (made, isRoute) => {
        const text = JSON.stringify(isRoute ? { ...made, type: 'route' } : made);
        // A member of this name is never copied.
        const record: JsonObject = JSON.parse(text, (key, value) =>
          key === '__proto__' ? undefined : value,
        );
        const facts = transferFacts(
          eventOf(record, { before: record, changes: Object.keys(record) }),
          COMMON_NAMES,
        );
        if (facts !== null) expect(TRANSFER.parse(facts)).toEqual(facts);
      }),
      { numRuns: 200 },
    );
  });
});

describe('the promise of an imported quote', () => {
  test('is its content in the shape of the interface, and nothing else', () => {
    const quote = readImportedQuote({
      id: 'quote:3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41',
      source: { chainId: 8453, token: USDC_BASE, amount: '1250000000', funder: '0xfunder' },
      destination: { chainId: 10, token: USDC_OPTIMISM, amountOut: '12x', minAmountOut: '1249000000' },
      fees: [{ type: 'solver', amount: '600000', token: USDC_BASE }, { type: 'odd' }, 7],
      estimatedFulfillTimeSec: 25,
      execution: { secret: 1 },
    });
    expect(quote === null ? null : promisedBy(quote)).toEqual({
      quote: 'quote:3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41',
      source: { chainId: '8453', token: USDC_BASE, amount: '1250000000', funder: '0xfunder' },
      destination: { chainId: '10', token: USDC_OPTIMISM, minimum: '1249000000' },
      fees: [{ kind: 'solver', token: USDC_BASE, amount: '600000' }],
      estimateSeconds: 25,
    });
  });
});
