import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Funding } from '../../src/domain/proof/log-owner.ts';
import type { Move, TxState } from '../../src/domain/proof/proof.ts';
import type { Statement } from '../../src/domain/proof/statement.ts';
import { judge } from '../../src/domain/proof/verdict.ts';
import { intentId, type SubjectId } from '../../src/domain/subjects/subject.ts';
import {
  ALICE,
  BOB,
  block,
  INTENT,
  logOwner,
  move,
  rules,
  SOLVER,
  STATED_AT,
  statement,
  TOKEN,
} from '../support/proof.ts';

const RUNS = { numRuns: 3_000 };
const OTHER_INTENT = `0x${'33'.repeat(32)}`;
const OTHER: SubjectId = intentId(OTHER_INTENT);

const amount = fc.integer({ min: 0, max: 2_000 }).map(String);
const party = fc.constantFrom(ALICE, BOB, SOLVER);
const anyMove: fc.Arbitrary<Move> = fc.record({
  token: fc.constantFrom(TOKEN, BOB),
  from: fc.option(party),
  to: party,
  amount,
  index: fc.integer({ min: 0, max: 9 }),
});
const moves = fc.uniqueArray(anyMove, { maxLength: 4, selector: ({ index }) => index });
const anyBlock = fc.integer({ min: 98, max: 103 }).map((number) => block(number));
const mostly = fc.constantFrom(true, true, true, true, false);
const hash = fc.constantFrom(INTENT, OTHER_INTENT);

/** Endpoints 0 and 1 are on one host. */
function txStates(): fc.Arbitrary<TxState[]> {
  const outcome = fc.oneof(
    fc.record({
      outcome: fc.constant('found' as const),
      block: anyBlock,
      head: anyBlock,
      isFinal: mostly,
      succeeded: mostly,
      moves,
      fulfilled: fc.option(fc.array(hash, { maxLength: 2 })),
    }),
    fc.record({
      outcome: fc.constant('absent' as const),
      isSynced: fc.boolean(),
      head: fc.option(fc.integer({ min: 0, max: 8_000 }).map((number) => block(number))),
    }),
    fc.record({ outcome: fc.constant('failed' as const), reason: fc.constant('no connection') }),
  );
  // Mostly equal observations: otherwise there would be hardly a verdict.
  const alike = fc
    .tuple(outcome, fc.integer({ min: 1, max: 4 }))
    .map(([responses, times]) => Array(times).fill(responses));
  return fc.oneof(alike, fc.array(outcome, { maxLength: 4 })).map((responses) =>
    responses.map((one, index) => ({
      endpoint: `endpoint-${index}`,
      host: `host-${Math.max(1, index)}`,
      ...one,
    })),
  );
}

const anyStatement: fc.Arbitrary<Statement> = fc
  .record({
    payment: fc.constantFrom('destination' as const, 'source' as const, 'refund' as const),
    amount: fc.option(amount),
    recipients: fc.subarray([ALICE, BOB]),
  })
  .map(({ amount, ...fields }) =>
    statement(
      fields.payment === 'refund' ? { ...fields, amount: null, sent: amount } : { ...fields, amount },
    ),
  );

const anyFunding: fc.Arbitrary<Funding> = fc.oneof(
  fc.constant(null),
  fc.constant({ state: 'open' as const }),
  fc.record({
    state: fc.constant('proved' as const),
    atMs: fc.integer({ min: STATED_AT - 8_000, max: STATED_AT }).map((seconds) => seconds * 1_000),
    payer: fc.option(party),
  }),
);

const anyRules = fc
  .record({
    claimedIndexes: fc.subarray([0, 1, 2, 3, 4]),
    held: fc.option(amount),
    weight: fc.integer({ min: 0, max: 7 }),
    isOpen: fc.boolean(),
    funding: anyFunding,
    secondsLater: fc.integer({ min: 0, max: 8_000 }),
  })
  .map(({ claimedIndexes, held, weight, isOpen, funding, secondsLater }) =>
    rules({
      ownerOf: (index) =>
        claimedIndexes.includes(index) ? logOwner({ subject: OTHER, amount: held, weight, isOpen }) : null,
      funding,
      nowMs: (STATED_AT + secondsLater) * 1_000,
    }),
  );

function finalHosts(all: readonly TxState[]): Set<string> {
  return new Set(all.flatMap((one) => (one.outcome === 'found' && one.isFinal ? [one.host] : [])));
}

test('nothing is disputed before two hosts have the same final block', () => {
  let disputed = 0;
  fc.assert(
    fc.property(anyStatement, txStates(), anyRules, (stated, responses, rules) => {
      if (judge(stated, responses, rules).outcome !== 'disputed') return;
      disputed += 1;
      expect(finalHosts(responses).size).toBeGreaterThanOrEqual(2);
      const blocks = responses.flatMap((one) =>
        one.outcome === 'found' && one.isFinal ? [one.block.hash] : [],
      );
      expect(new Set(blocks).size).toBe(1);
    }),
    RUNS,
  );
  expect(disputed).toBeGreaterThan(20);
});

test('nothing is verified that no endpoint has as final', () => {
  let verified = 0;
  fc.assert(
    fc.property(anyStatement, txStates(), anyRules, (stated, responses, rules) => {
      const verdict = judge(stated, responses, rules);
      if (verdict.outcome !== 'verified') return;
      verified += 1;
      expect(verdict.proof.singleSource ?? false).toBe(finalHosts(responses).size === 1);
      const [only, ...others] = verdict.proof.moved ?? [];
      expect(others).toEqual([]);
      const holder = rules.ownerOf(only?.index ?? -1);
      expect(holder === null ? [] : [holder.check]).toEqual(verdict.from);
      const moved = BigInt(only?.amount ?? '0');
      expect(moved).toBeGreaterThanOrEqual(BigInt(stated.amount ?? '1'));
      expect(moved <= BigInt(stated.sent ?? moved)).toBe(true);
    }),
    RUNS,
  );
  expect(verified).toBeGreaterThan(20);
});

test('the order of observations does not matter', () => {
  const shuffled = txStates().chain((responses) =>
    fc.tuple(fc.constant(responses), fc.shuffledSubarray(responses, { minLength: responses.length })),
  );
  fc.assert(
    fc.property(anyStatement, shuffled, anyRules, (stated, [responses, mixed], rules) => {
      expect(judge(stated, mixed, rules)).toEqual(judge(stated, responses, rules));
    }),
    RUNS,
  );
});

test('endpoints that fail make no dispute, and remove none', () => {
  const broken = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 3 });
  fc.assert(
    fc.property(anyStatement, txStates(), anyRules, broken, (stated, responses, rules, indexes) => {
      const before = judge(stated, responses, rules);
      const fewer = responses.map(
        (one, index): TxState =>
          indexes.includes(index)
            ? { endpoint: one.endpoint, host: one.host, outcome: 'failed', reason: 'timeout' }
            : one,
      );
      const after = judge(stated, fewer, rules);
      // Fewer answers can remove a contradiction, and so show the agreement of the others, but only one that was already there.
      if (after.outcome === 'disputed') expect(finalHosts(responses).size).toBeGreaterThanOrEqual(2);
      if (before.outcome !== 'disputed' && before.outcome !== 'waiting')
        expect(after.outcome).not.toBe('disputed');
      const more: TxState[] = [
        ...responses,
        { endpoint: 'another', host: 'another', outcome: 'failed', reason: 'timeout' },
      ];
      const beside = judge(stated, more, rules);
      if (before.outcome === 'disputed' || beside.outcome === 'disputed') expect(beside).toEqual(before);
    }),
    RUNS,
  );
});

test('a truth is never disputed, for any other moves and any answering endpoints', () => {
  const truth = fc.record({
    stated: anyStatement,
    beside: moves,
    index: fc.integer({ min: 10, max: 20 }),
    more: fc.integer({ min: 0, max: 50 }),
    others: fc.subarray([OTHER_INTENT]),
    states: fc.array(fc.constantFrom('final', 'not-final', 'behind', 'failed', 'elsewhere'), {
      minLength: 1,
      maxLength: 4,
    }),
  });
  let verified = 0;
  fc.assert(
    fc.property(truth, anyRules, ({ stated, beside, index, more, others, states }, rules) => {
      const paid = move({
        index,
        to: stated.recipients[0] ?? BOB,
        amount: String(Number(stated.amount ?? '1') + more),
      });
      const found = {
        head: block(110),
        succeeded: true,
        moves: [...beside, paid],
        fulfilled: [INTENT, ...others],
      };
      const responses = states.map((state, at): TxState => {
        const who = { endpoint: `endpoint-${at}`, host: `host-${at}` };
        switch (state) {
          case 'failed':
            return { ...who, outcome: 'failed', reason: 'timeout' };
          case 'behind':
            return { ...who, outcome: 'absent', isSynced: true, head: block(50) };
          case 'elsewhere':
            return { ...who, outcome: 'found', block: block(99), isFinal: false, ...found };
          default:
            return { ...who, outcome: 'found', block: block(100), isFinal: state === 'final', ...found };
        }
      });
      const verdict = judge(stated, responses, rules);
      expect(['disputed', 'unproven']).not.toContain(verdict.outcome);
      verified += verdict.outcome === 'verified' ? 1 : 0;
    }),
    RUNS,
  );
  expect(verified).toBeGreaterThan(20);
});
