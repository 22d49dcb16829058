import { describe, expect, test } from 'vitest';
import { type Funding, type LogOwner, REMOVED_WEIGHT } from '../../src/domain/proof/log-owner.ts';
import { type Found, PROOF, type TxState } from '../../src/domain/proof/proof.ts';
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
  logOwner,
  move,
  rules,
  SOLVER,
  STATED_AT,
  statement,
  TOKEN,
} from '../support/proof.ts';

const HOUR = 3_600;
const LATER = { nowMs: (STATED_AT + HOUR) * 1_000 };

function both(fields: Partial<Found> = {}): TxState[] {
  return [found('own', fields), found('other', fields)];
}

function verdictOf(
  txStates: readonly TxState[],
  { stated = {}, given = {} }: { stated?: Partial<Statement>; given?: Partial<JudgeRules> } = {},
): string {
  const verdict = judge(statement(stated), txStates, rules(given));
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

test('a payment as stated, reported by two hosts, is verified with all that was checked', () => {
  const verdict = judge(statement(), both({ fulfilled: [INTENT] }), rules());
  expect(verdict).toEqual({
    outcome: 'verified',
    from: [],
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

describe('the answers of the endpoints', () => {
  const short = { moves: [move({ amount: '999' })] };
  const elsewhere = { block: block(101) };
  const at = (account: string) => ({ moves: [move({ from: null, account })] });
  test.each<[string, TxState[], string]>([
    ['no endpoint was requested yet', [], 'waiting unreachable'],
    ['all fail', [failed('own'), failed('other')], 'waiting unreachable'],
    ['one does not have it and one fails', [absent('own'), failed('other')], 'waiting not-found'],
    ['two do not have it yet', [absent('own', HOUR - 1), absent('other', HOUR)], 'waiting not-found'],
    ['two do not have it an hour past', [absent('own', HOUR), absent('other', HOUR)], 'unproven'],
    [
      'two do not have it an hour past, and a third does not answer',
      [absent('own', HOUR), absent('other', HOUR), failed('third')],
      'unproven',
    ],
    [
      'two do not have it an hour past, and a third is behind',
      [absent('own', HOUR), absent('other', HOUR), absent('third', 0)],
      'unproven',
    ],
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
    ['one denies it', [found('own', short)], 'waiting one-endpoint'],
    ['one denies it, one fails', [found('own', short), failed('other')], 'waiting one-endpoint'],
    ['they state different amounts', [found('own', short), found('other')], 'waiting disagreement'],
    [
      'they state different accounts of the recipient',
      [found('own', at('of-alice')), found('other', at('of-bob'))],
      'waiting disagreement',
    ],
    [
      'only one states that a fee may have been charged',
      [found('own', short), found('other', { moves: [move({ amount: '999', mayHaveFee: true })] })],
      'waiting disagreement',
    ],
    [
      'only one states that a gain may be hidden',
      [found('own', short), found('other', { moves: [move({ amount: '999', isNetted: true })] })],
      'waiting disagreement',
    ],
    ['they state different blocks', [found('own'), found('other', elsewhere)], 'waiting disagreement'],
    [
      'they state different blocks, and deny it',
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
  ])('%s', (_, txStates, expected) => {
    expect(verdictOf(txStates)).toBe(expected);
  });

  test('two endpoints of one host are one', () => {
    const [own, other] = both(short);
    if (own === undefined || other === undefined) throw new Error('expected two');
    const txStates = [own, { ...other, host: 'own' }];
    expect(verdictOf(txStates)).toBe('waiting one-endpoint');
    const good = both().map((txState) => ({ ...txState, host: 'own' }));
    expect(verdictOf(good)).toBe('verified by one');
    const none = [absent('own', HOUR), { ...absent('other', HOUR), host: 'own' }];
    expect(verdictOf(none)).toBe('waiting not-found');
  });

  test('one host alone is believed after an hour, but never where it is not so', () => {
    expect(verdictOf([found('own'), failed('other')])).toBe('waiting one-endpoint');
    expect(verdictOf([found('own'), failed('other')], { given: LATER })).toBe('verified by one');
    expect(verdictOf([found('own', short), failed('other')], { given: LATER })).toBe('waiting one-endpoint');
  });
});

describe('the moves', () => {
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
    ['more moves than were stored', { isPartial: true }, 'unchecked ambiguous'],
    ['it fulfils another intent', { fulfilled: [`0x${'99'.repeat(32)}`] }, 'disputed other-intent'],
    ['it fulfils none, and moved as stated', { fulfilled: [] }, 'unchecked no-fulfilment'],
    ['it fulfils none, and nothing moved', { fulfilled: [], moves: [] }, 'disputed no-transfer'],
    ['it fulfils several', { fulfilled: [`0x${'99'.repeat(32)}`, INTENT] }, 'verified'],
    ['a funding fulfils none', { fulfilled: [] }, 'verified', { payment: 'source', recipients: [] }],
    [
      'the token may have charged a fee',
      { moves: [move({ amount: '999', mayHaveFee: true })] },
      'unchecked token-not-checkable',
    ],
    [
      'the token may have charged a fee, and it is enough',
      { moves: [move({ mayHaveFee: true })] },
      'verified',
    ],
    [
      'the recipient is named by his token account',
      { moves: [move({ from: null, to: BOB, account: ALICE })] },
      'verified',
    ],
    [
      'the recipient is named by one of several accounts of his that gained',
      { moves: [move({ from: null, to: BOB })] },
      'unchecked ambiguous',
    ],
    [
      'the recipient gained less than was stated, and gave away by another account',
      { moves: [move({ from: null, amount: '600', account: BOB, isNetted: true })] },
      'unchecked ambiguous',
    ],
    [
      'somebody else moved between his own accounts, and the recipient gained less',
      {
        moves: [
          move({ from: null, amount: '600', account: BOB }),
          move({ from: null, to: SOLVER, amount: '0', account: SOLVER, index: 4, isNetted: true }),
        ],
      },
      'disputed short',
    ],
    ['no amount is stated', {}, 'verified', { amount: null }],
    ['nothing is stated as its amount', {}, 'unchecked not-stated', { amount: '0' }],
    [
      'nothing is stated as its amount, and it failed',
      { succeeded: false, moves: [] },
      'disputed reverted',
      { amount: '0' },
    ],
    ['no amount is stated and nothing moved', { moves: [] }, 'unchecked not-stated', { amount: null }],
  ])('%s', (_, fields, expected, stated = {}) => {
    expect(verdictOf(both(fields), { stated })).toBe(expected);
  });

  test('the moves of a dispute are listed, at most twenty', () => {
    const moves = Array.from({ length: 30 }, (_, index) => move({ to: BOB, index }));
    const verdict = judge(statement(), both({ moves: moves.toReversed() }), rules());
    expect(verdict).toMatchObject({ outcome: 'disputed', proof: { moved: moves.slice(0, 20) } });
  });
});

describe('one log proves one transfer', () => {
  const onThird =
    (fields: Partial<LogOwner> = {}) =>
    (index: number) =>
      index === 3 ? logOwner(fields) : null;

  // The statement is 1,000 to Alice, who is known: a weight of 2, and 3 where exactly that amount moved.
  test.each<[string, Partial<Found>, string, Partial<Statement>?, Partial<LogOwner>?]>([
    [
      'it is claimed, and nothing on the chain ties it to this one any more than to the other',
      {},
      'disputed other-intent',
    ],
    ['another is free', { moves: [move(), move({ index: 4 })] }, 'verified'],
    ['the other is being checked anew', {}, 'waiting claimed', {}, { isOpen: true }],
    ['the contract names this one', { fulfilled: [INTENT] }, 'verified', {}, { weight: 3 }],
    [
      'the contract names both, and one is paid',
      { fulfilled: [INTENT] },
      'disputed other-intent',
      {},
      { weight: 7 },
    ],
    [
      'the contract names another',
      { fulfilled: [`0x${'99'.repeat(32)}`] },
      'disputed other-intent',
      {},
      { weight: 0 },
    ],
    ['the recipient of the other was not known', {}, 'verified', {}, { weight: 1 }],
    ['less than moved was stated of the other', {}, 'verified', {}, { amount: '500', weight: 2 }],
    [
      'the recipient is known of the other alone',
      {},
      'disputed other-intent',
      { recipients: [] },
      { weight: 2 },
    ],
    [
      'the recipient is known of neither: nothing on the chain decides',
      {},
      'unchecked ambiguous',
      { recipients: [] },
      { weight: 1 },
    ],
    ['it is enough for both', { moves: [move({ amount: '2000' })] }, 'unchecked ambiguous'],
    ['it is not enough for both', { moves: [move({ amount: '1999' })] }, 'disputed other-intent'],
    [
      'it is removed what the other was',
      {},
      'disputed other-intent',
      {},
      { amount: null, weight: REMOVED_WEIGHT },
    ],
    [
      'it delivered the transfer that it is to refund',
      {},
      'unchecked ambiguous',
      { payment: 'refund', amount: null, sent: '1000', recipients: [] },
      { subject: intentId(INTENT) },
    ],
    [
      'it delivered another transfer, and is to refund this one',
      {},
      'disputed other-intent',
      { payment: 'refund', amount: null, sent: '1000', recipients: [] },
    ],
    [
      'it funded another: one funding may be of several',
      {},
      'unchecked ambiguous',
      { payment: 'source', recipients: [] },
    ],
    [
      'the gain of an account may be the sum of several payments',
      { moves: [move({ from: null, amount: '2000' })] },
      'unchecked ambiguous',
    ],
    [
      'the gain of an account is this payment alone',
      { moves: [move({ from: null })] },
      'disputed other-intent',
    ],
  ])('%s', (_, fields, expected, stated = {}, held = {}) => {
    expect(verdictOf(both(fields), { stated, given: { ownerOf: onThird(held) } })).toBe(expected);
  });

  test('a winner of a log names the loser', () => {
    const verdict = judge(statement(), both(), rules({ ownerOf: onThird({ weight: 1 }) }));
    expect(verdict).toMatchObject({ outcome: 'verified', from: [logOwner().check] });
  });

  test('one host alone decides nothing between two', () => {
    for (const weight of [1, 3]) {
      const given = { ...LATER, ownerOf: onThird({ weight }) };
      expect(verdictOf([found('own')], { given })).toBe('waiting one-endpoint');
    }
  });
});

describe('how old a payment may be', () => {
  const DAY = 86_400;
  const old = { block: block(100 - DAY) };
  const at = (secondsBefore: number) => (STATED_AT - secondsBefore) * 1_000;
  const proved = (secondsBefore: number): Funding => ({
    state: 'proved',
    atMs: at(secondsBefore),
    payer: null,
  });
  test.each<[string, Partial<Found>, Funding, string, Partial<Statement>?]>([
    ['it is an hour older than its statement', { block: block(100 - HOUR) }, { state: 'open' }, 'verified'],
    ['it is old, and so is what funded it', old, proved(DAY - HOUR), 'verified'],
    [
      'it is more than an hour older than what funded it',
      old,
      proved(DAY - HOUR - 1),
      'disputed other-intent',
    ],
    ['it is old, and what funded it is not checked yet', old, { state: 'open' }, 'waiting funding'],
    [
      'it is more than an hour older than the upstream called it under way',
      old,
      { state: 'reported', atMs: at(DAY - HOUR - 1) },
      'unchecked too-old',
    ],
    ['it is old, and nothing is known of its funding', old, null, 'verified'],
    ['a funding may have any age', old, null, 'verified', { payment: 'source' }],
    [
      'a refund is older than what funded it',
      old,
      proved(0),
      'disputed other-intent',
      { payment: 'refund', amount: null, sent: '1000', recipients: [] },
    ],
  ])('%s', (_, fields, funding, expected, stated = {}) => {
    expect(verdictOf(both(fields), { stated, given: { funding } })).toBe(expected);
  });

  test.each<[string, Partial<Found>, Partial<JudgeRules>, boolean]>([
    ['it is young', {}, {}, true],
    ['it is old, and so is what funded it', old, { funding: proved(DAY) }, true],
    ['it is old, and nothing is known of its funding', old, {}, false],
    ['it may have proved another that is removed', {}, { rememberedMs: 60_000 }, false],
  ])('the claim that it proves no other is made or not: %s', (_, fields, judgeRules, isReported) => {
    const verdict = judge(statement(), both(fields), rules(judgeRules));
    const checked = verdict.outcome === 'verified' ? verdict.proof.checked : null;
    expect(checked?.includes('exclusive')).toBe(isReported);
  });
});

describe('a refund', () => {
  const refund: Partial<Statement> = { payment: 'refund', amount: null, sent: '1000', recipients: [] };
  const paidBy = (payer: string | null): Funding => ({ state: 'proved', atMs: STATED_AT * 1_000, payer });
  test.each<[string, Partial<Found>, Funding, string]>([
    [
      'goes back to whoever paid, less a fee',
      { moves: [move({ amount: '990' })] },
      paidBy(ALICE),
      'verified',
    ],
    ['is exactly what was sent', {}, null, 'verified'],
    ['is exactly what was sent, and goes to another', {}, paidBy(BOB), 'verified'],
    ['is more than was sent', { moves: [move({ amount: '1001' })] }, paidBy(ALICE), 'unchecked not-stated'],
    [
      'is less, and goes to another',
      { moves: [move({ amount: '990' })] },
      paidBy(BOB),
      'unchecked not-stated',
    ],
    [
      'is less, and who paid is not known',
      { moves: [move({ amount: '990' })] },
      null,
      'unchecked not-stated',
    ],
    [
      'is less, and who paid may become known',
      { moves: [move({ amount: '990' })] },
      { state: 'open' },
      'waiting funding',
    ],
    [
      'may be one of several',
      { moves: [move({ amount: '990' }), move({ index: 4, amount: '10' })] },
      paidBy(ALICE),
      'unchecked ambiguous',
    ],
    [
      'goes back beside other moves',
      { moves: [move(), move({ index: 4, to: BOB })] },
      paidBy(ALICE),
      'verified',
    ],
    ['failed', { succeeded: false, moves: [] }, null, 'disputed reverted'],
    ['moved nothing', { moves: [] }, paidBy(ALICE), 'unchecked not-stated'],
  ])('%s', (_, fields, funding, expected) => {
    expect(verdictOf(both(fields), { stated: refund, given: { funding } })).toBe(expected);
  });

  test('is not disputed for a move that went back to the payer for another, where something else moved too', () => {
    const rules: Partial<JudgeRules> = {
      funding: paidBy(ALICE),
      ownerOf: (index) =>
        index === 3 ? logOwner({ subject: intentId(`0x${'44'.repeat(32)}`), weight: 7 }) : null,
    };
    const back = move({ amount: '990', index: 3 });
    const beside = move({ amount: '980', index: 4, to: BOB });
    expect(verdictOf(both({ moves: [back] }), { stated: refund, given: rules })).toBe(
      'disputed other-intent',
    );
    expect(verdictOf(both({ moves: [back, beside] }), { stated: refund, given: rules })).toBe(
      'unchecked ambiguous',
    );
  });

  test('is reported with its recipient only where the payer got it, and never with an amount', () => {
    const checkedWith = (payer: string) => {
      const verdict = judge(statement(refund), both(), rules({ funding: paidBy(payer) }));
      return verdict.outcome === 'verified' ? verdict.proof.checked : [];
    };
    expect(checkedWith(ALICE)).toEqual(['chain', 'success', 'token', 'recipient', 'exclusive', 'final']);
    expect(checkedWith(BOB)).toEqual(['chain', 'success', 'token', 'exclusive', 'final']);
  });
});

describe('a refund with a stated recipient', () => {
  const refund: Partial<Statement> = { payment: 'refund', amount: null, sent: '1000', recipients: [ALICE] };
  const paidByBob: Funding = { state: 'proved', atMs: STATED_AT * 1_000, payer: BOB };
  test.each<[string, Partial<Found>, Funding, string]>([
    ['goes to it, less a fee', { moves: [move({ amount: '990' })] }, paidByBob, 'verified'],
    ['goes to it, and who paid may become known', {}, { state: 'open' }, 'verified'],
    ['goes to the payer instead', { moves: [move({ to: BOB })] }, paidByBob, 'disputed other-recipient'],
    ['goes to another', { moves: [move({ to: SOLVER, from: BOB })] }, null, 'disputed other-recipient'],
    ['goes to it beside others', { moves: [move(), move({ index: 4, to: BOB })] }, paidByBob, 'verified'],
    [
      'goes to it in two moves',
      { moves: [move({ amount: '990' }), move({ index: 4, amount: '10' })] },
      null,
      'unchecked ambiguous',
    ],
    ['gives it more than was sent', { moves: [move({ amount: '1001' })] }, null, 'unchecked not-stated'],
    [
      'gives others more than was sent',
      { moves: [move({ amount: '1001', to: BOB })] },
      null,
      'unchecked not-stated',
    ],
    ['moved nothing', { moves: [] }, paidByBob, 'unchecked not-stated'],
    [
      'goes to one of several accounts',
      { moves: [move({ from: null, to: BOB })] },
      paidByBob,
      'unchecked ambiguous',
    ],
    [
      'goes to its account',
      { moves: [move({ from: null, to: BOB, account: ALICE })] },
      paidByBob,
      'verified',
    ],
    [
      'is hidden by what its owner gave away',
      { moves: [move({ from: null, amount: '0', account: ALICE, isNetted: true })] },
      null,
      'unchecked ambiguous',
    ],
  ])('%s', (_, fields, funding, expected) => {
    expect(verdictOf(both(fields), { stated: refund, given: { funding } })).toBe(expected);
  });
});

describe('a payment that no answer could prove is not requested', () => {
  test.each<[string, Partial<Statement>, Partial<JudgeRules>, string]>([
    ['a chain that is not checked', { chainId: '728126428' }, {}, 'chain-not-checkable'],
    ['no token', { token: null }, {}, 'not-stated'],
    ["the chain's own money", { token: `0x${'0'.repeat(40)}` }, {}, 'native-token'],
    ["the chain's own money, as some write it", { token: `0x${'e'.repeat(40)}` }, {}, 'native-token'],
    ['a token of no list', { token: SOLVER }, {}, 'token-unlisted'],
    ['a token that rebases', {}, { isCheckable: () => false }, 'token-not-checkable'],
  ])('%s', (_, stated, rules, because) => {
    expect(verdictOf([], { stated, given: rules })).toBe(`unchecked ${because}`);
    expect(verdictOf(both({ succeeded: false }), { stated, given: rules })).toBe(`unchecked ${because}`);
  });
});
