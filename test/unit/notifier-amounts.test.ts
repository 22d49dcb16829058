import { describe, expect, test } from 'vitest';
import { COMMON_NAMES, chainName, explorerTxUrl } from '../../src/domain/transfers/chains.ts';
import { describeAmount, formatUnits } from '../../src/domain/transfers/money.ts';

const USDC_ON_BASE = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';

describe('amounts in token units', () => {
  test.each([
    ['1250000000', 6, '1,250.00'],
    ['1249400000', 6, '1,249.40'],
    ['1', 6, '0.000001'],
    ['0', 6, '0.00'],
    ['1000000', 6, '1.00'],
    ['999999999999', 6, '999,999.999999'],
    ['1234567000000', 6, '1,234,567.00'],
    ['5', 0, '5.00'],
    ['123456789012345678901234567890', 18, '123,456,789,012.34567890123456789'],
  ])('%s with %i decimals is %s', (amount, decimals, expected) => {
    expect(formatUnits(amount, decimals)).toBe(expected);
  });

  test.each([
    '',
    '-1',
    '1.5',
    '1e9',
    '0x10',
    ' 1',
    '١٢',
    '9'.repeat(101),
  ])('%j is no whole number', (amount) => {
    expect(formatUnits(amount, 6)).toBeNull();
  });

  test('a known token is named, in either case of its address', () => {
    const amount = { amount: '1250000000', chainId: '8453' };
    expect(describeAmount({ ...amount, token: USDC_ON_BASE })).toBe('1,250.00 USDC');
    expect(describeAmount({ ...amount, token: USDC_ON_BASE.toLowerCase() })).toBe('1,250.00 USDC');
  });

  test('the same address on another chain is another token, so the amount stays in base units', () => {
    expect(describeAmount({ amount: '1250000000', chainId: '1', token: USDC_ON_BASE })).toBe(
      `1250000000 base units of ${USDC_ON_BASE}`,
    );
    expect(describeAmount({ amount: '1250000000', chainId: null, token: null })).toBe(
      '1250000000 base units',
    );
  });

  test('an amount that is no number is shown as it came', () => {
    const amount = describeAmount({ amount: 'about 3', chainId: '8453', token: USDC_ON_BASE });
    expect(amount).toBe(`about 3 base units of ${USDC_ON_BASE}`);
  });

  test('base58 addresses retain their letter case', () => {
    expect(COMMON_NAMES.token('728126428', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t')?.symbol).toBe('USDT');
    expect(COMMON_NAMES.token('728126428', 'tr7nhqjekqxgtci8q8zy4pl8otszgjlj6t')).toBeNull();
  });
});

describe('chains', () => {
  test('an unknown chain is named by its id', () => {
    expect(chainName('8453')).toBe('Base');
    expect(chainName('999999')).toBe('chain 999999');
  });

  test('only a text in the form of a transaction hash gets a link', () => {
    const hash = `0x${'ab'.repeat(32)}`;
    expect(explorerTxUrl('10', hash)).toBe(`https://optimistic.etherscan.io/tx/${hash}`);
    expect(explorerTxUrl('999999', hash)).toBeNull();
    expect(explorerTxUrl('10', '../login?next=//evil.example')).toBeNull();
    expect(explorerTxUrl('10', `${hash}"><script>`)).toBeNull();
  });
});
