import { expect, test } from 'vitest';
import { statementsOf } from '../../src/domain/proof/statement.ts';
import { judge } from '../../src/domain/proof/verdict.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';
import { BOB, found, INTENT, move, rules, TOKEN, TX } from '../support/proof.ts';

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
