import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeCursor, encodeCursor } from '../../sandbox/endpoints/cursor.ts';
import type { IntentStatus } from '../../sandbox/world/record.ts';
import { createWalletIndex, type WalletIndex } from '../../sandbox/world/wallet-index.ts';

function sweep(
  index: WalletIndex<string>,
  query: { wallet: string; status: IntentStatus | null; limit: number },
) {
  const entries: string[] = [];
  let before: number | null = null;
  do {
    const page = index.page({ ...query, before });
    expect(page.entries.length).toBeLessThanOrEqual(query.limit);
    entries.push(...page.entries);
    before = page.before;
  } while (before !== null);
  return entries;
}

test.each([1, 20, 50])('pages of %i lead through 1,203 transfers without loss or repetition', (limit) => {
  const index = createWalletIndex<string>();
  const keys = Array.from({ length: 1_203 }, (_, number) => `transfer-${number}`);
  for (const key of keys) index.put({ key, entry: key, wallets: ['alice', 'bob'], status: 'settled' });
  expect(sweep(index, { wallet: 'alice', status: null, limit })).toEqual(keys.toReversed());
  expect(sweep(index, { wallet: 'bob', status: 'settled', limit })).toEqual(keys.toReversed());
  expect(sweep(index, { wallet: 'bob', status: 'pending', limit })).toEqual([]);
});

test('a transfer that changes moves to the front and into the list of its status', () => {
  const index = createWalletIndex<string>();
  for (const key of ['a', 'b', 'c']) index.put({ key, entry: key, wallets: ['alice'], status: 'pending' });
  index.put({ key: 'a', entry: 'a, filled', wallets: ['alice'], status: 'filled' });
  expect(sweep(index, { wallet: 'alice', status: null, limit: 2 })).toEqual(['a, filled', 'c', 'b']);
  expect(sweep(index, { wallet: 'alice', status: 'pending', limit: 2 })).toEqual(['c', 'b']);
  expect(sweep(index, { wallet: 'alice', status: 'filled', limit: 2 })).toEqual(['a, filled']);
});

test('a transfer from a wallet to itself is shown once', () => {
  const index = createWalletIndex<string>();
  const address = '0xAbCdEf0123456789aBcDeF0123456789AbCdEf01';
  index.put({ key: 'a', entry: 'a', wallets: [address, address.toLowerCase()], status: 'pending' });
  expect(sweep(index, { wallet: address, status: null, limit: 2 })).toEqual(['a']);
});

test('pages equal those of a plain list, after any changes', () => {
  const change = fc.record({
    key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    status: fc.constantFrom<IntentStatus>('pending', 'filled', 'settled'),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), fc.integer({ min: 1, max: 4 }), (changes, limit) => {
      const index = createWalletIndex<string>();
      const newest = new Map<string, IntentStatus>();
      for (const { key, status } of changes) {
        index.put({ key, entry: key, wallets: ['alice'], status });
        newest.delete(key);
        newest.set(key, status);
      }
      const expected = [...newest].toReversed();
      for (const status of [null, 'pending', 'filled', 'settled'] as const) {
        const fitting = expected.filter(([, current]) => status === null || current === status);
        expect(sweep(index, { wallet: 'alice', status, limit })).toEqual(fitting.map(([key]) => key));
      }
    }),
  );
});

test('a cursor is read back for its own wallet and status only', () => {
  const wallet = '0xAbCdEf0123456789aBcDeF0123456789AbCdEf01';
  const text = encodeCursor({ wallet, status: null, before: 12, issuedMs: null });
  expect(text).toMatch(/^[\w-]+$/);
  expect(decodeCursor(text, { wallet, status: null })?.before).toBe(12);
  expect(decodeCursor(text, { wallet: wallet.toLowerCase(), status: null })?.before).toBe(12);
  expect(decodeCursor(text, { wallet: 'other', status: null })).toBeNull();
  expect(decodeCursor(text, { wallet, status: 'pending' })).toBeNull();
});
