import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { estimatedSeconds, promisedBy, readImportedQuote } from '../../src/domain/quotes/promised.ts';
import { readProblem } from '../../src/upstream/wire/problem.ts';
import { readQuoteAnswer } from '../../src/upstream/wire/quote.ts';

const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
const OWNER = '0x52908400098527886E0F7030069857D2E4169EE7';
const SOLVER = '0x8617E340B3D01FA5F11F306F4090FD50E238070D';
const INTENT = `0x${'a1'.repeat(32)}`;
const USDC = { symbol: 'USDC', decimals: 6 };

/** A quote in the shape that a deployment was seen to send. */
const recorded: JsonObject = {
  id: 'quote:3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41',
  type: 'exact-in',
  signature: `0x${'5'.repeat(130)}`,
  expiresAt: 4_102_444_800,
  intentHash: INTENT,
  slippage: 0,
  solver: { id: SOLVER },
  quotes: null,
  source: { chainId: 8453, token: USDC_BASE, amount: '1000000', funder: OWNER, ...USDC },
  destination: {
    chainId: 10,
    token: USDC_OPTIMISM,
    amountOut: '999000',
    minAmountOut: '994000',
    recipient: OWNER,
    symbol: null,
    decimals: null,
  },
  fees: [
    {
      type: 'protocol',
      amount: '100',
      token: { chainId: 8453, address: USDC_BASE, ...USDC },
      estimate: false,
    },
    {
      type: 'cctp',
      amount: '7',
      token: { chainId: 10, address: USDC_OPTIMISM, symbol: null, decimals: null },
      estimate: true,
    },
  ],
  steps: [
    {
      type: 'bridge',
      provider: 'a provider',
      from: {},
      to: {},
      fees: [],
      estimatedDurationSec: 14.5,
      intents: [{ role: 'local', intentHash: INTENT, intent: { route: {}, reward: {} } }],
    },
    {
      type: 'transfer',
      provider: 'a provider',
      from: {},
      to: {},
      fees: [],
      estimatedDurationSec: 20,
      intents: [],
    },
  ],
  execution: {
    transaction: { type: 'svm', chainId: 1_399_811_149, feePayer: 'a payer', instructions: [] },
    intent: { route: {}, reward: {} },
    vault: null,
  },
};

describe('a quote in the shape of a deployment', () => {
  test('is read whole: nothing in it is unreadable', () => {
    const read = readQuoteAnswer(recorded);
    expect(read).toMatchObject({
      value: {
        unreadable: [],
        solver: SOLVER,
        quotes: [],
        unreadableQuotes: [],
        fees: [
          { type: 'protocol', amount: '100', token: USDC_BASE, ...USDC },
          { type: 'cctp', amount: '7', token: USDC_OPTIMISM, decimals: null, symbol: null },
        ],
        transaction: { type: 'svm' },
      },
    });
  });

  test.each([
    'execution',
    'steps',
    'fees',
    'solver',
    'destination',
    'type',
  ])('is readable with null as %s', (member) => {
    expect(readQuoteAnswer({ ...recorded, [member]: null })).toMatchObject({ value: { unreadable: [] } });
  });

  test('names a member of another type as unreadable', () => {
    const fees = [{ type: 'protocol', amount: '100', token: { symbol: 'USDC' } }];
    const read = readQuoteAnswer({ ...recorded, fees, solver: 'a solver' });
    expect(read).toMatchObject({ value: { unreadable: ['fees', 'solver'], fees: [], solver: null } });
  });

  test('promises its fees by the address of their tokens, and the sum of its steps as estimate', () => {
    const quote = readImportedQuote(recorded);
    expect(quote === null ? null : promisedBy(quote)).toMatchObject({
      estimateSeconds: 35,
      fees: [
        { kind: 'protocol', token: USDC_BASE, amount: '100' },
        { kind: 'cctp', token: USDC_OPTIMISM, amount: '7' },
      ],
    });
  });
});

describe('the estimate of a quote', () => {
  const step = (estimatedDurationSec: JsonObject[string]) => ({ estimatedDurationSec });
  test.each<[string, JsonObject, number | null]>([
    ['its own before that of its steps', { estimatedFulfillTimeSec: 25, steps: [step(90)] }, 25],
    ['the sum over its steps', { steps: [step('20'), step(0.2), step(15)] }, 36],
    ['none where a step states none', { steps: [step(20), {}] }, null],
    ['none where a step states no number', { steps: [step(20), step('soon')] }, null],
    ['none where a step is no object', { steps: [step(20), 'a step'] }, null],
    ['none without steps', { steps: [] }, null],
    ['none where it is longer than a week', { steps: [step(600_000), step(10_000)] }, null],
  ])('is %s', (_, raw, seconds) => {
    expect(estimatedSeconds(raw)).toBe(seconds);
  });
});

describe('an error of the deposit gateway', () => {
  test.each([
    [{ details: { cause: 'the first', errorDesc: 'x' }, message: 'y' }, 'the first'],
    [{ details: { errorDesc: 'the second' }, errorDesc: 'x' }, 'the second'],
    [{ errorDesc: 'the third', cause: 'x' }, 'the third'],
    [{ cause: 'the fourth', message: 'x' }, 'the fourth'],
    [{ message: 'the most precise', error: 'Bad Request', errorCode: 'E1' }, 'the most precise'],
    [{ error: 'the sixth', errorCode: 'E1' }, 'the sixth'],
    [{ errorCode: 'E1' }, 'E1'],
    [{ details: 'no object', message: '' }, null],
  ])('has the reason of %j', (body, detail) => {
    expect(readProblem(JSON.stringify(body)).detail).toBe(detail);
  });

  test('has its code as `code` or `errorCode`', () => {
    expect(readProblem('{"errorCode":"VAULT_NOT_FOUND"}').code).toBe('VAULT_NOT_FOUND');
    expect(readProblem('{"code":7,"errorCode":"a text of some words"}').code).toBe(null);
  });
});
