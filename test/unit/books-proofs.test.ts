import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BookState, nextState } from '../../src/domain/books/book-state.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Payment, Proof } from '../../src/domain/proof/proof.ts';
import {
  PROOF_OUTCOMES,
  type ProofOutcome,
  proofOf,
  withoutRestated,
  withProofFlag,
} from '../../src/domain/proof/proof-flags.ts';
import { statementsOf } from '../../src/domain/proof/statement.ts';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { reportedEvent } from '../support/books-stage.ts';

const SUBSCRIBERS = { wallets: [], subscriptions: [], metadata: {} };

/** An event of the one transfer, with changes of its record. */
function event(sequence: number, changes: JsonObject, more: { type?: string; proof?: Proof } = {}) {
  const { type, proof } = more;
  const reported = reportedEvent({
    transfer: 1,
    sequence,
    status: 'filled',
    atMs: sequence * 1_000,
    seenMs: sequence * 1_000,
    amount: 1_000n,
    ...(type === undefined ? {} : { type }),
    ...(proof === undefined ? {} : { more: { proof } }),
  });
  return { ...reported, data: { ...reported.data, record: { ...reported.data.record, ...changes } } };
}

const stateAfter = (state: BookState | null, one: ReturnType<typeof event>): BookState =>
  nextState(state, { event: one, facts: null, subscribers: SUBSCRIBERS });

const STATED = event(1, {}).data;
const SUBJECT = asSubjectId(STATED.subject.id);

function word(payment: Payment, outcome: ProofOutcome, changes: JsonObject = {}) {
  const record = { ...STATED.record, ...changes };
  const statement = statementsOf({ subject: SUBJECT, record }).find((one) => one.payment === payment);
  if (statement === undefined) throw new Error(`the record states no ${payment}`);
  const { chainId, txHash, token, amount } = statement;
  const proof: Proof = {
    payment,
    chainId,
    txHash,
    ...(token === null ? {} : { token }),
    ...(amount === null ? {} : { stated: amount }),
    checked: [],
    endpoints: [],
    ...(outcome === 'disputed' ? { reason: 'short' } : {}),
  };
  return { statement, event: event(2, changes, { type: `intent.${outcome}`, proof }) };
}

const shown = ({ proofs }: BookState) => proofs.map(({ payment, outcome }) => `${payment} ${outcome}`);

const destination = STATED.record.destinationTx;
const restated = (more: JsonObject): JsonObject => ({
  destinationTx: { ...(typeof destination === 'object' ? destination : {}), ...more },
});

describe('the proof of a payment in the books', () => {
  const verified = stateAfter(null, word('destination', 'verified').event);
  const both = stateAfter(verified, word('source', 'disputed').event);

  test('is beside that of another payment, and is replaced by a newer one of its own', () => {
    expect(shown(both)).toEqual(['destination verified', 'source disputed']);
    expect(both.proofs[1]?.reason).toBe('short');
    expect(shown(stateAfter(both, word('destination', 'unproven').event))).toEqual([
      'source disputed',
      'destination unproven',
    ]);
  });

  test.each<[string, JsonObject]>([
    ['another transaction', { txHash: `0x${'c'.repeat(64)}` }],
    ['another amount', { amount: '7' }],
    ['another token', { token: `0x${'d'.repeat(40)}` }],
    ['another chain', { chainId: 10 }],
  ])('is gone once %s is stated, and only it', (_, more) => {
    expect(shown(stateAfter(both, event(3, restated(more))))).toEqual(['source disputed']);
  });

  test('about a refund is gone once another amount is stated to have been sent, as it is in lists', () => {
    const { sourceTx } = STATED.record;
    const sent = (amount: string): JsonObject => ({
      sourceTx: { ...(typeof sourceTx === 'object' ? sourceTx : {}), amount },
      steps: [{ transactions: { refunded: { chainId: 8453, txHash: `0x${'e'.repeat(64)}` } } }],
    });
    const { event: one, statement } = word('refund', 'verified', sent('1000'));
    const state = stateAfter(null, one);
    expect(shown(stateAfter(state, event(3, sent('1000'))))).toEqual(['refund verified']);
    expect(shown(stateAfter(state, event(3, sent('1001'))))).toEqual([]);
    const flags = withProofFlag([], statement, 'verified');
    const record = { ...STATED.record, ...sent('1001') };
    expect(withoutRestated(flags, { subject: SUBJECT, record })).toEqual([]);
  });

  test.each<[string, JsonObject]>([
    ['the same again', {}],
    ['the same in other letters', restated({ txHash: `0x${'B'.repeat(64)}` })],
    ['nothing of it', { destinationTx: null }],
  ])('stays where a later answer has %s', (_, changes) => {
    expect(shown(stateAfter(both, event(3, changes)))).toEqual(['destination verified', 'source disputed']);
  });

  test('of books without the stated payment stays until a newer one', () => {
    const old = { ...verified, proofs: verified.proofs.map((one) => ({ ...one, stated: null })) };
    expect(shown(stateAfter(old, event(3, restated({ amount: '7' }))))).toEqual(['destination verified']);
    expect(shown(stateAfter(old, word('destination', 'disputed').event))).toEqual(['destination disputed']);
  });
});

const STEP = fc.oneof(
  fc.record({
    amount: fc.constantFrom('990', '991'),
    outcome: fc.constant(null),
    payment: fc.constant(null),
  }),
  fc.record({
    amount: fc.constant(null),
    outcome: fc.constantFrom(...PROOF_OUTCOMES),
    payment: fc.constantFrom<Payment>('destination', 'source'),
  }),
);

test('the books and the lists state the same of a transfer, for any order of statements and reports', () => {
  let reported = 0;
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 12 }), (steps) => {
      let changes: JsonObject = {};
      let state = stateAfter(null, event(1, changes));
      let flags: string[] = [];
      for (const { amount, outcome, payment } of steps) {
        if (outcome === null) {
          changes = restated({ amount });
          state = stateAfter(state, event(3, changes));
          flags = withoutRestated(flags, { subject: SUBJECT, record: { ...STATED.record, ...changes } });
        } else {
          const { statement, event: one } = word(payment, outcome, changes);
          state = stateAfter(state, one);
          flags = withProofFlag(flags, statement, outcome);
        }
      }
      const worst = (['disputed', 'unproven', 'verified'] as const).find((outcome) =>
        state.proofs.some((one) => one.outcome === outcome),
      );
      const record = { ...STATED.record, ...changes };
      expect(worst ?? null).toBe(proofOf({ subject: SUBJECT, record, flags }));
      reported += worst === undefined ? 0 : 1;
    }),
  );
  expect(reported).toBeGreaterThan(20);
});
