import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { type Burn, burnOf, localIntent } from '../../src/domain/proof/burn.ts';
import {
  burnMessagesOf,
  EVM_RECEIPT,
  fulfilledBy,
  readFulfilmentEvent,
} from '../../src/domain/proof/moves.ts';
import { type Found, PROOF, type TxState } from '../../src/domain/proof/proof.ts';
import type { Statement } from '../../src/domain/proof/statement.ts';
import { judge } from '../../src/domain/proof/verdict.ts';
import {
  type BurnLog,
  fulfilledLog,
  receivedLog,
  receivedLog2,
  sentLog,
  sentLog2,
} from '../support/burn-logs.ts';
import {
  ALICE,
  absent,
  BOB,
  failed,
  found,
  INTENT,
  logOwner,
  move,
  rules,
  SOLVER,
  statement,
} from '../support/proof.ts';

const SOURCE = '10';
const FULFILLED_BY = { chainId: SOURCE, txHash: `0x${'f1'.repeat(32)}` };
const OTHER_INTENT = `0x${'22'.repeat(32)}`;
const NOBODY = `0x${'0'.repeat(40)}`;
const HOUR_MS = 3_600_000;

const MESSAGE = { key: '2:4711', recipient: ALICE, amount: '1000' };
const MINT = move({ from: NOBODY });
const SENT: Burn = { state: 'sent', message: MESSAGE, ...FULFILLED_BY, isSingle: false };

const received = (more: Partial<Found> = {}): TxState[] =>
  ['own', 'other'].map((name) =>
    found(name, { moves: [MINT], burns: { sent: [], received: [MESSAGE] }, ...more }),
  );

function verdictOf(burn: Burn, txStates: readonly TxState[], stated: Partial<Statement> = {}): string {
  const verdict = judge(statement(stated), txStates, rules({ burn }));
  if ('because' in verdict) return `${verdict.outcome} ${verdict.because}`;
  const { reason, singleSource } = verdict.proof;
  return [verdict.outcome, reason, singleSource === true ? 'by one' : undefined].filter(Boolean).join(' ');
}

describe('a payment is the delivery of a local intent', () => {
  const hash = INTENT;
  const fulfilled = { fulfilled: FULFILLED_BY };
  const at = (chainId: number) => ({ chainId, txHash: `0x${'51'.repeat(32)}` });
  const step = (more: JsonObject = {}) => ({
    type: 'bridge',
    intentHash: hash,
    transactions: fulfilled,
    ...more,
  });
  const all = { fulfilledBy: FULFILLED_BY };
  test.each<[string, JsonObject | null, { local?: true } | null, object | null]>([
    ['whose quote calls it local', { steps: [step()] }, { local: true }, all],
    ['whose quote calls it local, before any record', null, { local: true }, { fulfilledBy: null }],
    ['whose step calls it local', { steps: [step({ role: 'LOCAL' })] }, null, all],
    [
      'whose step names it as local among its intents',
      { steps: [step({ intents: [{ role: 'local', intentHash: hash.toUpperCase().replace('0X', '0x') }] })] },
      null,
      all,
    ],
    ['that is fulfilled where it was funded', { sourceTx: at(10), steps: [step()] }, null, all],
    [
      'that is fulfilled where its step created it',
      { steps: [step({ transactions: { created: at(10), ...fulfilled } })] },
      null,
      all,
    ],
    ['that is fulfilled where its step begins', { steps: [step({ from: { chainId: '10' } })] }, null, all],
    ['not without a sign', { steps: [step()] }, null, null],
    ['not with empty intents', { sourceTx: at(1), steps: [step({ intents: [] })] }, null, null],
    [
      'not where it is fulfilled on another chain than its source',
      { sourceTx: at(1), steps: [step()] },
      null,
      null,
    ],
    [
      'not where a swap on its source chain comes first',
      { sourceTx: at(10), steps: [step(), step({ intentHash: OTHER_INTENT })] },
      null,
      null,
    ],
    [
      'not where another intent of its step is local',
      { steps: [step({ intents: [{ role: 'local', intentHash: OTHER_INTENT }] })] },
      null,
      null,
    ],
    [
      'not where it is paid and fulfilled on one chain',
      { sourceTx: at(8453), steps: [step({ transactions: { fulfilled: at(8453) } })] },
      null,
      null,
    ],
    ['not with steps of another shape', { steps: [null, 'a step', { transactions: 7 }] }, null, null],
  ])('%s', (_, record, promised, expected) => {
    expect(localIntent(statement(), { promised, record })).toEqual(expected);
  });

  test('not where it is a funding, or has no hash', () => {
    const facts = { promised: { local: true as const }, record: null };
    expect(localIntent(statement({ payment: 'source' }), facts)).toBeNull();
    expect(localIntent(statement({ intentHash: null }), facts)).toBeNull();
  });
});

describe('the burn of a local intent', () => {
  const fields = { fulfilled: [INTENT], burns: { sent: [MESSAGE], received: [] } };
  const both = (more: Partial<Found> = {}) => [
    found('own', { ...fields, ...more }),
    found('other', { ...fields, ...more }),
  ];
  const burn = (txStates: readonly TxState[], ageMs = 0) =>
    burnOf(txStates, { intentHash: INTENT, fulfilledBy: FULFILLED_BY, ageMs });
  const one = found('own', fields);
  const behind = found('other', { ...fields, isFinal: false });

  test.each<[string, TxState[], Burn]>([
    ['is sent', both(), SENT],
    ['is sent by one host that is alone', [one], { ...SENT, isSingle: true }],
    ['is open while one host alone is final', [one, behind], { state: 'open' }],
    ['is open while one fails', [one, failed('other')], { state: 'open' }],
    ['is open while it is not final', both({ isFinal: false }), { state: 'open' }],
    ['is open while no endpoint answers', [failed('own'), failed('other')], { state: 'open' }],
    [
      'is open while they contradict each other',
      [one, found('other', { fulfilled: [INTENT] })],
      { state: 'open' },
    ],
    ['is open while another should have it', [one, absent('other', 5)], { state: 'open' }],
    ['is none where it failed', both({ succeeded: false }), { state: 'none' }],
    ['is none where no contract is pinned', both({ fulfilled: null }), { state: 'none' }],
    ['is none where it fulfils another intent', both({ fulfilled: [OTHER_INTENT] }), { state: 'none' }],
    [
      'is none where it fulfils a second intent',
      both({ fulfilled: [INTENT, OTHER_INTENT] }),
      { state: 'none' },
    ],
    ['is none without a message', [found('own', { fulfilled: [INTENT] })], { state: 'none' }],
    [
      'is none with two messages',
      both({ burns: { sent: [MESSAGE, { ...MESSAGE, key: '2:4712' }], received: [] } }),
      { state: 'none' },
    ],
  ])('%s', (_, txStates, expected) => {
    expect(burn(txStates)).toEqual(expected);
  });

  test('is not waited for longer than an hour where it is not stated, or no endpoint has it', () => {
    const nowhere = [absent('own', 5), failed('other')];
    expect(burn(nowhere, HOUR_MS - 1)).toEqual({ state: 'open' });
    expect(burn(nowhere, HOUR_MS)).toEqual({ state: 'none' });
    expect(burnOf([], { intentHash: INTENT, fulfilledBy: null, ageMs: HOUR_MS })).toEqual({ state: 'none' });
  });

  test('is waited for while endpoints fail, contradict each other or have it in a block that is not final', () => {
    expect(burn([failed('own'), failed('other')], HOUR_MS)).toEqual({ state: 'open' });
    expect(burn(both({ isFinal: false }), HOUR_MS)).toEqual({ state: 'open' });
    expect(burn([one, found('other', { fulfilled: [INTENT] })], HOUR_MS)).toEqual({ state: 'open' });
    expect(burn([one, failed('other')], HOUR_MS)).toEqual({ ...SENT, isSingle: true });
    expect(burnOf([], { intentHash: INTENT, fulfilledBy: null, ageMs: 0 })).toEqual({ state: 'open' });
  });
});

describe('the delivery of a local intent', () => {
  test('is verified by the message of its burn', () => {
    const verdict = judge(statement(), received(), rules({ burn: SENT }));
    expect(verdict).toMatchObject({
      outcome: 'verified',
      proof: {
        checked: ['chain', 'success', 'token', 'amount', 'recipient', 'intent', 'exclusive', 'final'],
        burn: { ...FULFILLED_BY, message: '2:4711' },
        moved: [MINT],
      },
    });
    if (verdict.outcome === 'verified') expect(PROOF.parse(verdict.proof)).toEqual(verdict.proof);
  });

  const bob = { ...MESSAGE, recipient: BOB };
  const less = { ...MESSAGE, amount: '999' };
  const single: Burn = { ...SENT, isSingle: true };
  const minted = (message: typeof MESSAGE): Partial<Found> => ({
    moves: [move({ from: NOBODY, to: message.recipient, amount: message.amount })],
    burns: { sent: [], received: [message] },
  });
  test.each<[string, Burn, TxState[], string]>([
    ['waits for its burn', { state: 'open' }, received(), 'waiting burn'],
    ['waits for finality first', { state: 'none' }, received({ isFinal: false }), 'waiting not-final'],
    ['is unproven without its burn', { state: 'none' }, received(), 'unproven not-tied'],
    [
      'is unproven where the message has another number',
      SENT,
      received({ burns: { sent: [], received: [{ ...MESSAGE, key: '2:4712' }] } }),
      'unproven not-tied',
    ],
    [
      'is unproven where the message is of another domain',
      SENT,
      received({ burns: { sent: [], received: [{ ...MESSAGE, key: '6:4711' }] } }),
      'unproven not-tied',
    ],
    ['is unproven without a message', SENT, [found('own'), found('other')], 'unproven not-tied'],
    [
      'is unproven where the message was changed',
      SENT,
      received({ burns: { sent: [], received: [bob] } }),
      'unproven not-tied',
    ],
    ['is unproven where nothing was minted', SENT, received({ moves: [move()] }), 'unproven not-tied'],
    ['is unproven where it failed', SENT, received({ succeeded: false }), 'unproven not-tied'],
    [
      'is verified where the transaction fulfils another intent',
      SENT,
      received({ fulfilled: [OTHER_INTENT] }),
      'verified',
    ],
    [
      'is verified beside other moves',
      SENT,
      received({ moves: [MINT, move({ index: 4, to: BOB })] }),
      'verified',
    ],
    ['is verified by one host of its burn', single, received(), 'verified by one'],
    [
      'is disputed where its burn was for another',
      { ...SENT, message: bob },
      received(minted(bob)),
      'disputed other-recipient',
    ],
    [
      'is disputed where less was burnt',
      { ...SENT, message: less },
      received(minted(less)),
      'disputed short',
    ],
    [
      'is unproven where one host alone denies it',
      { ...single, message: bob },
      received(minted(bob)),
      'unproven not-tied',
    ],
    [
      'waits while one host of the target is final',
      SENT,
      received().slice(0, 1).concat(failed('other')),
      'waiting one-endpoint',
    ],
    [
      'waits while the endpoints state different messages',
      SENT,
      [...received().slice(0, 1), found('other', { moves: [MINT] })],
      'waiting disagreement',
    ],
  ])('%s', (_, burn, txStates, expected) => {
    expect(verdictOf(burn, txStates)).toBe(expected);
  });

  test('takes its log from a payment that is tied to it less, but not by one host of its burn', () => {
    const owner = logOwner({ weight: 3 });
    const own = { ownerOf: () => owner };
    expect(judge(statement(), received(), rules({ burn: SENT, ...own }))).toMatchObject({
      outcome: 'verified',
      from: [owner.check],
    });
    expect(judge(statement(), received(), rules({ burn: single, ...own }))).toMatchObject({
      outcome: 'unproven',
      proof: { reason: 'not-tied' },
    });
  });

  test('is never disputed, and never verified, without the message of its burn', () => {
    const address = fc.constantFrom(ALICE, BOB, SOLVER, NOBODY);
    const message = fc.record({
      key: fc.constantFrom('2:4712', '6:4711', '0:0'),
      recipient: address,
      amount: fc.constantFrom('999', '1000', '2000'),
    });
    const moved = fc.record({
      from: fc.option(address),
      to: address,
      amount: fc.constantFrom('1', '999', '1000', '2000'),
      index: fc.nat(5),
    });
    const answer = fc.record({
      succeeded: fc.boolean(),
      moves: fc.array(
        moved.map((one) => move(one)),
        { maxLength: 4 },
      ),
      fulfilled: fc.constantFrom<string[] | null>(null, [], [INTENT], [OTHER_INTENT]),
      burns: fc.record({
        sent: fc.array(message, { maxLength: 2 }),
        received: fc.array(message, { maxLength: 2 }),
      }),
    });
    const burns = fc.constantFrom<Burn>({ state: 'open' }, { state: 'none' }, SENT, single);
    const stated = fc.record({
      amount: fc.constantFrom('0', '1000', null),
      recipients: fc.constantFrom<string[]>([], [ALICE], [BOB]),
    });
    const property = fc.property(answer, burns, stated, fc.boolean(), (one, burn, more, isOne) => {
      const txStates = isOne ? [found('own', one)] : [found('own', one), found('other', one)];
      const { outcome } = judge(statement(more), txStates, rules({ burn }));
      expect(['unproven', 'waiting']).toContain(outcome);
    });
    fc.assert(property, { numRuns: 2_000 });
  });
});

describe('the logs of a receipt', () => {
  const TRANSMITTER = `0x${'77'.repeat(20)}` as const;
  const PORTAL = `0x${'99'.repeat(20)}` as const;
  const burnt = {
    domain: 2,
    nonce: '18446744073709551615',
    recipient: `0x${'a1'.repeat(20)}`,
    amount: '1000',
  } as const;
  const read = (logs: readonly BurnLog[]) => {
    const at = { transactionHash: `0x${'7e'.repeat(32)}`, blockHash: `0x${'b1'.repeat(32)}` };
    const placed = logs.map((log, index) => ({ ...at, ...log, logIndex: `0x${index}`, removed: false }));
    return EVM_RECEIPT.parse({ ...at, blockNumber: '0x1', status: '0x1', logs: placed }).logs;
  };
  const message = { key: '2:18446744073709551615', recipient: ALICE, amount: '1000' };

  test('show the burn messages of the pinned transmitter, with every digit of their nonces', () => {
    const logs = read([sentLog(TRANSMITTER, burnt), receivedLog(TRANSMITTER, burnt)]);
    expect(burnMessagesOf(logs, TRANSMITTER)).toEqual({ sent: [message], received: [message] });
  });

  test.each<[string, BurnLog]>([
    ['another contract', receivedLog(PORTAL, burnt)],
    ['version 2, whose nonce is assigned off the chain', sentLog2(TRANSMITTER, burnt)],
    ['version 2 where it mints', receivedLog2(TRANSMITTER, burnt)],
    [
      'a message of another content',
      {
        ...sentLog(TRANSMITTER, burnt),
        data: `0x${'0'.repeat(63)}20${'0'.repeat(64)}`.slice(0, 130) as `0x${string}`,
      },
    ],
    ['no arguments', { ...sentLog(TRANSMITTER, burnt), data: '0x' }],
  ])('show no burn message of %s', (_, log) => {
    expect(burnMessagesOf(read([log]), TRANSMITTER)).toBeNull();
  });

  test('name the intent by the event of a deployment, and not by that of other types', () => {
    const logs = read([fulfilledLog(PORTAL, `0x${'1e'.repeat(32)}`)]);
    const named = (event: string) => {
      const abi = readFulfilmentEvent({ event, hash: 'intentHash' });
      if ('fault' in abi) throw new Error(abi.fault);
      return fulfilledBy(logs, { address: PORTAL, abi, hash: 'intentHash' });
    };
    expect(named('event IntentFulfilled(bytes32 indexed intentHash, bytes32 indexed claimant)')).toEqual([
      INTENT,
    ]);
    expect(named('event IntentFulfilled(bytes32 indexed intentHash, address indexed solver)')).toEqual([]);
  });
});
