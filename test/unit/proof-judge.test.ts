import { describe, expect, test } from 'vitest';
import { PROOF } from '../../src/domain/proof/proof.ts';
import type { Found, Reading } from '../../src/domain/proof/reading.ts';
import type { Statement } from '../../src/domain/proof/statement.ts';
import { type JudgeRules, judge } from '../../src/domain/proof/verdict.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';
import {
  ALICE,
  absent,
  BOB,
  block,
  failed,
  found,
  INTENT,
  move,
  rules,
  SOLVER,
  STATED_AT,
  statement,
  TOKEN,
} from '../support/proof.ts';

const HOUR = 3_600;
const LATER = { nowMs: (STATED_AT + HOUR) * 1_000 };
const OTHER = intentId(`0x${'22'.repeat(32)}`);

/** Both endpoints found the same. */
function both(parts: Partial<Found> = {}): Reading[] {
  return [found('own', parts), found('other', parts)];
}

/** A verdict in a word or two. */
function verdictOf(
  readings: readonly Reading[],
  { stated = {}, known = {} }: { stated?: Partial<Statement>; known?: Partial<JudgeRules> } = {},
): string {
  const verdict = judge(statement(stated), readings, rules(known));
  switch (verdict.outcome) {
    case 'waiting':
    case 'unchecked':
      return `${verdict.outcome} ${verdict.because}`;
    case 'disputed':
      return `disputed ${verdict.proof.reason}`;
    case 'verified':
      return verdict.proof.singleSource === true ? 'verified by one' : 'verified';
    case 'unproven':
      return 'unproven';
  }
}

test('a payment as stated, told by two hosts, is verified with all that was checked', () => {
  const verdict = judge(statement(), both({ fulfilled: [INTENT] }), rules());
  expect(verdict).toEqual({
    outcome: 'verified',
    proof: {
      payment: 'destination',
      chainId: '8453',
      txHash: statement().txHash,
      token: TOKEN,
      stated: '1000',
      checked: ['chain', 'success', 'token', 'amount', 'recipient', 'intent', 'exclusive', 'final'],
      block: block(100),
      moved: [move()],
      endpoints: ['other', 'own'],
    },
  });
  if (verdict.outcome === 'verified') expect(PROOF.parse(verdict.proof)).toEqual(verdict.proof);
});

describe('what the endpoints say', () => {
  const short = { moves: [move({ amount: '999' })] };
  const elsewhere = { block: block(101) };
  test.each<[string, Reading[], string]>([
    ['nobody was asked yet', [], 'waiting unreachable'],
    ['all fail', [failed('own'), failed('other')], 'waiting unreachable'],
    ['one does not have it and one fails', [absent('own'), failed('other')], 'waiting not-found'],
    ['two do not have it yet', [absent('own', HOUR - 1), absent('other', HOUR)], 'waiting not-found'],
    ['two do not have it an hour past', [absent('own', HOUR), absent('other', HOUR)], 'unproven'],
    ['one of them is not synced', [absent('own', HOUR), absent('other', HOUR, false)], 'waiting not-found'],
    ['one alone does not have it an hour past', [absent('own', HOUR)], 'waiting not-found'],
    ['it is not final', both({ isFinal: false }), 'waiting not-final'],
    ['it is not final, and not so', both({ isFinal: false, ...short }), 'waiting not-final'],
    [
      'two do not have it an hour past, and one does, not final',
      [absent('a', HOUR), absent('b', HOUR), found('c', { isFinal: false })],
      'waiting not-final',
    ],
    ['two agree that it is not so', both(short), 'disputed short'],
    ['one says that it is not so', [found('own', short)], 'waiting one-endpoint'],
    ['one says that it is not so, one fails', [found('own', short), failed('other')], 'waiting one-endpoint'],
    ['they say different amounts', [found('own', short), found('other')], 'waiting disagreement'],
    ['they say different blocks', [found('own'), found('other', elsewhere)], 'waiting disagreement'],
    [
      'they say different blocks, and that it is not so',
      [found('own', short), found('other', { ...short, ...elsewhere })],
      'waiting disagreement',
    ],
    ['a third contradicts', [...both(short), found('third')], 'waiting disagreement'],
    [
      'one has a later final head and not the transaction',
      [found('own'), absent('other', 5)],
      'waiting disagreement',
    ],
    ['one is behind', [found('own'), absent('other', -5)], 'waiting one-endpoint'],
    ['only one fails', [...both(), failed('third')], 'verified'],
    ['there is only one', [found('own')], 'verified by one'],
    [
      'one has it, the other not as final',
      [found('own'), found('other', { isFinal: false })],
      'waiting one-endpoint',
    ],
  ])('%s', (_, readings, expected) => {
    expect(verdictOf(readings)).toBe(expected);
  });

  test('two endpoints of one host are one', () => {
    const [own, other] = both(short);
    if (own === undefined || other === undefined) throw new Error('expected two');
    const readings = [own, { ...other, host: 'own' }];
    expect(verdictOf(readings)).toBe('waiting one-endpoint');
    const good = both().map((reading) => ({ ...reading, host: 'own' }));
    expect(verdictOf(good)).toBe('verified by one');
    const none = [absent('own', HOUR), { ...absent('other', HOUR), host: 'own' }];
    expect(verdictOf(none)).toBe('waiting not-found');
  });

  test('one host alone is believed after an hour, but never where it is not so', () => {
    expect(verdictOf([found('own'), failed('other')])).toBe('waiting one-endpoint');
    expect(verdictOf([found('own'), failed('other')], { known: LATER })).toBe('verified by one');
    expect(verdictOf([found('own', short), failed('other')], { known: LATER })).toBe('waiting one-endpoint');
  });
});

describe('what moved', () => {
  const worthless = { token: `0x${'ba'.repeat(20)}` };
  test.each<[string, Partial<Found>, string, Partial<Statement>?]>([
    ['the transaction failed', { succeeded: false, moves: [] }, 'disputed reverted'],
    ['nothing moved', { moves: [] }, 'disputed no-transfer'],
    ['another token moved', { moves: [move(worthless)] }, 'disputed no-transfer'],
    ['less moved', { moves: [move({ amount: '999' })] }, 'disputed short'],
    ['more moved', { moves: [move({ amount: '1001' })] }, 'verified'],
    ['somebody else was paid', { moves: [move({ to: BOB })] }, 'disputed other-recipient'],
    [
      'somebody else was paid, and who is right is not known',
      { moves: [move({ to: BOB })] },
      'verified',
      { recipients: [] },
    ],
    ['the recipient paid himself', { moves: [move({ from: ALICE })] }, 'disputed no-transfer'],
    ['twice the amount, in two logs', { moves: [move(), move({ index: 4 })] }, 'unchecked ambiguous'],
    [
      'in two parts',
      { moves: [move({ amount: '400' }), move({ index: 4, amount: '600' })] },
      'unchecked ambiguous',
    ],
    [
      'in two parts that are too little',
      { moves: [move({ amount: '400' }), move({ index: 4, amount: '599' })] },
      'disputed short',
    ],
    [
      'less, through another contract, and who is right is not known',
      { moves: [move({ to: BOB, amount: '999' }), move({ from: BOB, index: 4, amount: '999' })] },
      'disputed short',
      { recipients: [] },
    ],
    [
      'in parts to several, and who is right is not known',
      { moves: [move({ to: BOB, amount: '400' }), move({ index: 4, amount: '600' })] },
      'unchecked ambiguous',
      { recipients: [] },
    ],
    ['more moves than were kept', { isPartial: true }, 'unchecked ambiguous'],
    ['it fulfils another intent', { fulfilled: [`0x${'99'.repeat(32)}`] }, 'disputed other-intent'],
    ['it fulfils none', { fulfilled: [] }, 'disputed other-intent'],
    ['it fulfils several', { fulfilled: [`0x${'99'.repeat(32)}`, INTENT] }, 'verified'],
    ['what funds fulfils none', { fulfilled: [] }, 'verified', { payment: 'source', recipients: [] }],
    [
      'the token may have kept a fee',
      { moves: [move({ amount: '999', mayHaveFee: true })] },
      'unchecked token-not-checkable',
    ],
    ['the token may have kept a fee, and it is enough', { moves: [move({ mayHaveFee: true })] }, 'verified'],
    [
      'the recipient is named by his token account',
      { moves: [move({ from: null, to: BOB, account: ALICE })] },
      'verified',
    ],
    ['no amount is stated', {}, 'verified', { payment: 'refund', amount: null, recipients: [] }],
    [
      'no amount is stated and nothing moved',
      { moves: [] },
      'unchecked not-stated',
      { payment: 'refund', amount: null, recipients: [] },
    ],
    [
      'no amount is stated, and it failed',
      { succeeded: false, moves: [] },
      'disputed reverted',
      { payment: 'refund', amount: null, recipients: [] },
    ],
  ])('%s', (_, parts, expected, stated = {}) => {
    expect(verdictOf(both(parts), { stated })).toBe(expected);
  });

  test('the moves of a dispute are listed, at most twenty', () => {
    const moves = Array.from({ length: 30 }, (_, index) => move({ to: BOB, index }));
    const verdict = judge(statement(), both({ moves: moves.toReversed() }), rules());
    expect(verdict).toMatchObject({ outcome: 'disputed', proof: { moved: moves.slice(0, 20) } });
  });
});

describe('one log proves one transfer', () => {
  const taken = (index: number) => (index === 3 ? OTHER : null);
  test.each<[string, Partial<Found>, string, Partial<Statement>?]>([
    ['it is taken', {}, 'disputed other-intent'],
    ['another is free', { moves: [move(), move({ index: 4 })] }, 'verified'],
    [
      'it funded another: one funding may be of several',
      {},
      'unchecked ambiguous',
      { payment: 'source', recipients: [] },
    ],
    [
      'what an account gained may be the sum of several payments',
      { moves: [move({ from: null, amount: '2000' })] },
      'unchecked ambiguous',
    ],
    [
      'what an account gained is this payment alone',
      { moves: [move({ from: null })] },
      'disputed other-intent',
    ],
  ])('%s', (_, parts, expected, stated = {}) => {
    expect(verdictOf(both(parts), { stated, known: { taken } })).toBe(expected);
  });

  test('that it is taken is no dispute while one host alone says what there is', () => {
    expect(verdictOf([found('own')], { known: { taken } })).toBe('waiting one-endpoint');
  });
});

describe('what no answer could tell is not asked', () => {
  test.each<[string, Partial<Statement>, Partial<JudgeRules>, string]>([
    ['a chain that is not checked', { chainId: '728126428' }, {}, 'chain-not-checkable'],
    ['no token', { token: null }, {}, 'not-stated'],
    ["the chain's own money", { token: `0x${'0'.repeat(40)}` }, {}, 'native-token'],
    ["the chain's own money, as some write it", { token: `0x${'e'.repeat(40)}` }, {}, 'native-token'],
    ['a token of no list', { token: SOLVER }, {}, 'token-unlisted'],
    ['a token that rebases', {}, { isCheckable: () => false }, 'token-not-checkable'],
  ])('%s', (_, stated, known, because) => {
    expect(verdictOf([], { stated, known })).toBe(`unchecked ${because}`);
    expect(verdictOf(both({ succeeded: false }), { stated, known })).toBe(`unchecked ${because}`);
  });
});
