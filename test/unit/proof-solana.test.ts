import { expect, test } from 'vitest';
import { SOLANA_TRANSACTION, solanaMoves, transactionFault } from '../../src/domain/proof/moves.ts';

const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const TOKEN_2022 = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';
const KEYS = ['payer', 'account-of-solver', 'account-of-alice', 'account-of-table', 'second-of-alice'];

type Held = [accountIndex: number, owner: string, amount: string, fields?: Record<string, unknown>];

function transaction(before: Held[], after: Held[], fields: Record<string, unknown> = {}) {
  const balances = (held: Held[]) =>
    held.map(([accountIndex, owner, amount, more]) => ({
      accountIndex,
      owner,
      mint: USDC,
      uiTokenAmount: { amount, decimals: 6 },
      ...more,
    }));
  return SOLANA_TRANSACTION.parse({
    slot: 300,
    blockTime: 1_795_174_224,
    transaction: { signatures: ['signature'], message: { accountKeys: KEYS.slice(0, 3) } },
    meta: {
      err: null,
      preTokenBalances: balances(before),
      postTokenBalances: balances(after),
      loadedAddresses: { writable: [KEYS[3]], readonly: [KEYS[4]] },
      ...fields,
    },
  });
}

const gained = (...fields: Parameters<typeof transaction>) =>
  solanaMoves(transaction(...fields), USDC).map(({ to, amount, index, account }) => ({
    to,
    amount,
    index,
    account,
  }));

test('the gain of an owner is the amount moved to him; an account that is not listed before had nothing', () => {
  expect(
    gained(
      [[1, 'solver', '5000']],
      [
        [1, 'solver', '4000'],
        [2, 'alice', '1000'],
      ],
    ),
  ).toEqual([{ to: 'alice', amount: '1000', index: 2, account: 'account-of-alice' }]);
});

test('an account that was closed has nothing afterwards', () => {
  expect(
    gained(
      [
        [1, 'solver', '5000'],
        [2, 'alice', '700'],
      ],
      [[2, 'alice', '5700']],
    ),
  ).toEqual([{ to: 'alice', amount: '5000', index: 2, account: 'account-of-alice' }]);
});

test('a move between two accounts of one owner is 0, and may hide a received amount', () => {
  const [held, moved] = [
    transaction([[2, 'alice', '1000']], [[3, 'alice', '1000']]),
    transaction([[2, 'alice', '1000']], [[3, 'alice', '1600']]),
  ].map((one) => solanaMoves(one, USDC));
  const fields = { token: USDC, from: null, to: 'alice', index: 3, account: 'account-of-table' };
  expect(held).toEqual([{ ...fields, amount: '0', isNetted: true }]);
  expect(moved).toEqual([{ ...fields, amount: '600', isNetted: true }]);
});

test('a mere payer is no recipient', () => {
  expect(gained([[1, 'solver', '5000']], [[1, 'solver', '4000']])).toEqual([]);
});

test('two accounts of one owner are one gain', () => {
  expect(
    gained(
      [[2, 'alice', '1000']],
      [
        [2, 'alice', '1300'],
        [4, 'alice', '200'],
      ],
    ),
  ).toEqual([{ to: 'alice', amount: '500', index: 2, account: undefined }]);
});

test('an account from an address lookup table is named', () => {
  expect(gained([], [[3, 'alice', '9']])).toMatchObject([{ account: 'account-of-table' }]);
});

test('other tokens are omitted, and one with a possible fee is marked', () => {
  const other = { mint: 'So11111111111111111111111111111111111111112' };
  const moves = solanaMoves(
    transaction(
      [],
      [
        [2, 'alice', '10', other],
        [3, 'bob', '10', { programId: TOKEN_2022 }],
      ],
    ),
    USDC,
  );
  expect(moves).toMatchObject([{ to: 'bob', mayHaveFee: true }]);
});

test('a transaction that failed moved nothing', () => {
  const failed = transaction([], [[2, 'alice', '10']], { err: { InstructionError: [2, { Custom: 1 }] } });
  expect(solanaMoves(failed, USDC)).toEqual([]);
});

test.each([
  ['another transaction', {}, 'other', 'the answer is of another transaction'],
  [
    'no balances',
    { postTokenBalances: null },
    'signature',
    'the answer has no token balances: the endpoint does not store them',
  ],
  [
    'no status of its success',
    { err: undefined },
    'signature',
    'the answer does not state whether the transaction failed',
  ],
])('an answer with %s has no effect', (_, fields, txHash, fault) => {
  expect(transactionFault(transaction([], [], fields), txHash)).toBe(fault);
});

test('balances of unnamed owners have no effect', () => {
  const nameless = transaction([], [[2, 'alice', '10', { owner: undefined }]]);
  expect(transactionFault(nameless, 'signature')).toBe('the answer does not name the owners of its balances');
  expect(transactionFault(transaction([], [[2, 'alice', '10']]), 'signature')).toBeNull();
});
