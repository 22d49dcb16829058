import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { passesFilter, type TransferFilter } from '../../src/domain/events/filter.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';

const USDC_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_OPTIMISM = '0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85';
const USDC_BNB = '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d';
const UNKNOWN_TOKEN = `0x${'12'.repeat(20)}`;
const ALICE = '0x52908400098527886e0f7030069857d2e4169ee7';
const BOB = '0xde709f2102306220921060314715629080e2fb77';

const ALL: TransferFilter = { wallets: null, chains: null, minAmount: null };
const CLAIM_KEYS = [`treasury|wallet:${ALICE}`];

function tx(chainId: number, token: string, amount: string): JsonObject {
  return { chainId, token, amount, txHash: '0xab' };
}

function passes(
  filter: Partial<TransferFilter>,
  record: JsonObject,
  claimKeys: readonly string[] = CLAIM_KEYS,
): boolean {
  return passesFilter({ ...ALL, ...filter }, { record, claimKeys }, COMMON_NAMES);
}

const TRANSFER: JsonObject = {
  sourceTx: tx(8453, USDC_BASE, '1250000000'),
  destinationTx: tx(10, USDC_OPTIMISM, '1249500000'),
};

describe('wallets', () => {
  test.each([
    ['of the list', [ALICE], CLAIM_KEYS, true],
    ['not of the list', [BOB], CLAIM_KEYS, false],
    ['one of several', [BOB], [...CLAIM_KEYS, `payroll|wallet:${BOB}`], true],
    ['none: the subject is named by itself', [BOB], ['order|intent:0xab'], true],
    [
      'not of the list, but the subject is named by itself too',
      [BOB],
      [...CLAIM_KEYS, 'order|intent:0xab'],
      true,
    ],
    ['none: what it came from is named', [BOB], ['order|quote:3f1c'], true],
  ])('%s', (_, wallets, claimKeys, expected) => {
    expect(passes({ wallets }, TRANSFER, claimKeys)).toBe(expected);
  });
});

describe('chains', () => {
  const source: JsonObject = { sourceTx: tx(8453, USDC_BASE, '1') };
  const steps: JsonObject = {
    sourceTx: tx(8453, USDC_BASE, '1'),
    steps: [{ from: tx(8453, USDC_BASE, '1'), to: { chainId: 10, token: USDC_OPTIMISM, amount: '1' } }],
  };
  test.each([
    ['the source', ['8453'], TRANSFER, true],
    ['the destination', ['10'], TRANSFER, true],
    ['neither end', ['1'], TRANSFER, false],
    ['the destination of a step that is not done', ['10'], steps, true],
    ['neither end of a step that is not done', ['1'], steps, false],
    ['an end that is not known yet', ['1'], source, true],
    ['a record without facts', ['1'], {}, true],
    ['a record of another shape', ['1'], { sourceTx: 'none', destinationTx: [8453] }, true],
  ])('%s', (_, chains, record, expected) => {
    expect(passes({ chains }, record)).toBe(expected);
  });
});

describe('minAmount', () => {
  const sent = (amount: string, token = USDC_BASE, chainId = 8453): JsonObject => ({
    sourceTx: tx(chainId, token, amount),
  });
  test.each([
    ['exactly it', '1250', TRANSFER, true],
    ['less', '1250.000001', TRANSFER, false],
    ['sent enough, delivered less', '1249.9', TRANSFER, true],
    ['a base unit less', '0.5', sent('499999'), false],
    ['more digits than the token has', '0.0000005', sent('1'), true],
    ['more digits than the token has, and less', '0.0000015', sent('1'), false],
    ['18 decimals', '1000', sent(`1000${'0'.repeat(18)}`, USDC_BNB, 56), true],
    ['18 decimals and less', '1000', sent(`999${'9'.repeat(18)}`, USDC_BNB, 56), false],
    ['an unknown token', '1000000', sent('1', UNKNOWN_TOKEN), true],
    ['a known token on another chain', '1000000', sent('1', USDC_BASE, 10), true],
    ['no amount', '1', { sourceTx: { chainId: 8453, token: USDC_BASE } }, true],
    ['an amount that is no number', '1', sent('many'), true],
    ['an amount of a thousand digits', '1', sent('9'.repeat(1_000)), true],
    ['nothing known', '1', {}, true],
    [
      'unknown where it comes from, too little where it goes',
      '1',
      { destinationTx: tx(10, USDC_OPTIMISM, '5') },
      false,
    ],
    ['zero', '0', sent('0'), true],
  ])('%s', (_, minAmount, record, expected) => {
    expect(passes({ minAmount }, record)).toBe(expected);
  });

  test('compares as decimals do, for any two numbers', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 10n ** 20n }),
        fc.bigInt({ min: 0n, max: 10n ** 20n }),
        (amount, min) => {
          const text = `${min / 1_000_000n}.${String(min % 1_000_000n).padStart(6, '0')}`;
          expect(passes({ minAmount: text }, sent(String(amount)))).toBe(amount >= min);
        },
      ),
    );
  });
});

test('all filters have to let an event through', () => {
  expect(passes({ wallets: [ALICE], chains: ['10'], minAmount: '1000' }, TRANSFER)).toBe(true);
  expect(passes({ wallets: [BOB], chains: ['10'], minAmount: '1000' }, TRANSFER)).toBe(false);
  expect(passes({ wallets: [ALICE], chains: ['1'], minAmount: '1000' }, TRANSFER)).toBe(false);
  expect(passes({ wallets: [ALICE], chains: ['10'], minAmount: '2000' }, TRANSFER)).toBe(false);
});

test('a record of any shape is decided on, and without filters everything passes', () => {
  const records = fc.dictionary(
    fc.constantFrom('sourceTx', 'destinationTx', 'steps', 'amount', 'sourceChainId', 'other'),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(records, (found) => {
      const record: JsonObject = JSON.parse(JSON.stringify(found));
      expect(passes({}, record)).toBe(true);
      expect(typeof passes({ chains: ['1'], minAmount: '1' }, record)).toBe('boolean');
    }),
  );
});
