import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { statementsOf } from '../../src/domain/proof/statement.ts';
import { judge } from '../../src/domain/proof/verdict.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { ALICE, BOB, found, INTENT, move, rules, TOKEN, TX } from '../support/proof.ts';

/** The verdict on a refund by this transaction, where the token moved once: when the transfer was funded. */
function refundBy(txHash: string): object {
  const record = {
    type: 'intent',
    status: 'refunded',
    sourceTx: { chainId: 8453, txHash: TX, token: TOKEN, amount: '1000' },
    steps: [{ type: 'BRIDGE', transactions: { refunded: { chainId: 8453, txHash } } }],
  };
  const [refund] = statementsOf({ subject: intentId(INTENT), record }).filter(
    ({ payment }) => payment === 'refund',
  );
  if (refund === undefined) throw new Error('expected the statement of a refund');
  const moves = [move({ from: BOB })];
  return judge(refund, [found('own', { moves }), found('other', { moves })], rules());
}

test('the funding of a transfer does not prove its refund', () => {
  expect(refundBy(TX)).toMatchObject({ outcome: 'unchecked', because: 'not-stated' });
  expect(refundBy(TX.toUpperCase().replace('0X', '0x'))).toMatchObject({
    outcome: 'unchecked',
    because: 'not-stated',
  });
  expect(refundBy(`0x${'7f'.repeat(32)}`)).toMatchObject({ outcome: 'verified' });
});

/** Recipients of the refund of a transfer whose record and quote state these. */
function refundRecipients(
  recordStates: JsonObject,
  promised: NonNullable<Parameters<typeof statementsOf>[1]>['promised'] = null,
): string[] {
  const record = {
    type: 'intent',
    status: 'refunded',
    sourceTx: { chainId: 8453, txHash: TX, token: TOKEN, amount: '1000' },
    steps: [
      { type: 'bridge', transactions: { refunded: { chainId: 8453, txHash: `0x${'7f'.repeat(32)}` } } },
    ],
    ...recordStates,
  };
  const statements = statementsOf({ subject: intentId(INTENT), record }, { recipients: [BOB], promised });
  return statements.find(({ payment }) => payment === 'refund')?.recipients ?? ['no refund'];
}

test.each<[string, string[], ...Parameters<typeof refundRecipients>]>([
  ['is not known where nothing states it', [], {}],
  ['is that of the quote', [ALICE], {}, { refundRecipient: ALICE.toUpperCase().replace('0X', '0x') }],
  ['is not that of the record, which is under check', [], { refundRecipient: BOB }],
  [
    'is not that of a quote for another source chain',
    [],
    {},
    { source: { chainId: '10' }, refundRecipient: ALICE },
  ],
  [
    'is of the kind of the chain',
    [],
    {},
    { refundRecipient: '7EYnhQoR9YM3N7UoaKRoA44Uy8JeaZV3qyouov87awMs' },
  ],
  ['is not the empty address', [], {}, { refundRecipient: `0x${'0'.repeat(40)}` }],
])('the recipient of a refund %s', (_, expected, ...stated) => {
  expect(refundRecipients(...stated)).toEqual(expected);
});
