import { describe, expect, onTestFinished, test } from 'vitest';
import { type Completeness, diffRecords } from '../../src/domain/changes/diff.ts';
import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { countedReads } from '../support/counted-reads.ts';

const BOTH: Completeness[] = ['grows', 'replaces'];

function changes(
  stored: JsonObject,
  received: JsonObject,
  completeness: Completeness,
  unreadable: string[] = [],
): string[] {
  return diffRecords(stored, received, { completeness, unreadable }).changes;
}

function merged(stored: JsonObject, received: JsonObject, completeness: Completeness): JsonObject {
  return diffRecords(stored, received, { completeness, unreadable: [] }).merged;
}

const step = (intentHash: string, more: JsonObject = {}): JsonObject => ({
  type: 'BRIDGE',
  intentHash,
  status: 'OPEN',
  transactions: {},
  ...more,
});
const sub = (chainId: number, more: JsonObject = {}): JsonObject => ({
  chainId,
  quoteIds: ['quote:a', 'quote:b'],
  txHash: null,
  intentHashes: [],
  state: 'pending',
  ...more,
});

describe('values that mean the same', () => {
  test.each<[string, JsonObject, JsonObject]>([
    ['amounts as text and as a number', { amount: '1000000' }, { amount: 1000000 }],
    ['hex in another case', { txHash: '0xABcd' }, { txHash: '0xabCD' }],
    ['a time', { updatedAt: 1 }, { updatedAt: 2 }],
    ['a set in another order', { intentHashes: ['0x1', '0x2'] }, { intentHashes: ['0x2', '0x1'] }],
    ['a set with an element twice, in two cases', { wallets: ['0xab'] }, { wallets: ['0xAB', '0xab'] }],
    ['sub-statuses in another order', { subStatuses: [sub(1), sub(2)] }, { subStatuses: [sub(2), sub(1)] }],
    [
      'sets within sub-statuses in another order',
      { subStatuses: [sub(1, { intentHashes: ['0x1', '0x2'] })] },
      { subStatuses: [sub(1, { quoteIds: ['quote:b', 'quote:a'], intentHashes: ['0x2', '0x1'] })] },
    ],
    ['nothing and null', {}, { txHash: null }],
    ['nothing and an empty list', {}, { steps: [] }],
    ['null and an empty text', { error: null }, { error: '' }],
    ['a member that only the stored record has', { mood: 'good' }, {}],
    [
      'a member within a member that only the stored one has',
      { sourceTx: { a: 1, b: 2 } },
      { sourceTx: { a: 1 } },
    ],
  ])('are no difference: %s', (_, stored, received) => {
    for (const completeness of BOTH) expect(changes(stored, received, completeness)).toEqual([]);
  });
});

describe('values that differ', () => {
  test.each<[string, JsonObject, JsonObject, string[]]>([
    ['base58 in another case', { to: 'TXyz' }, { to: 'TXYZ' }, ['to']],
    ['0x that is no hex, in another case', { to: '0xzz' }, { to: '0xZZ' }, ['to']],
    ['amounts with leading zeros', { amount: '01' }, { amount: '1' }, ['amount']],
    [
      'a number that text carries to the last digit',
      { n: '9007199254740993' },
      { n: '9007199254740992' },
      ['n'],
    ],
    ['a new member', {}, { mood: 'good' }, ['mood']],
    ['a new member within a member', { sourceTx: { a: 1 } }, { sourceTx: { b: 2 } }, ['sourceTx.b']],
    [
      'an element more in a set',
      { intentHashes: ['0x1'] },
      { intentHashes: ['0x1', '0x2'] },
      ['intentHashes'],
    ],
    ['a list that is no set, in another order', { fees: [1, 2] }, { fees: [2, 1] }, ['fees[0]', 'fees[1]']],
    [
      'a step',
      { steps: [step('0x1'), step('0x2')] },
      {
        steps: [
          step('0x1'),
          step('0x2', { status: 'FULFILLED', transactions: { fulfilled: { chainId: 1 } } }),
        ],
      },
      ['steps[1].status', 'steps[1].transactions.fulfilled'],
    ],
    ['a step more', { steps: [step('0x1')] }, { steps: [step('0x1'), step('0x2')] }, ['steps']],
    [
      'the state of a sub-status',
      { subStatuses: [sub(1)] },
      { subStatuses: [sub(1, { state: 'failed' })] },
      ['subStatuses'],
    ],
    ['another kind of value', { mood: 'good' }, { mood: { now: 'good' } }, ['mood']],
    ['false where true was', { open: true }, { open: false }, ['open']],
    ['zero where one was', { left: 1 }, { left: 0 }, ['left']],
  ])('are a difference: %s', (_, stored, received, paths) => {
    for (const completeness of BOTH) expect(changes(stored, received, completeness)).toEqual(paths);
  });
});

describe('a member that an answer removes', () => {
  test.each<[string, JsonObject, JsonObject, string[]]>([
    ['null', { txHash: '0x1' }, { txHash: null }, ['txHash']],
    ['an empty text', { error: 'x' }, { error: '' }, ['error']],
    ['an empty list', { steps: [step('0x1')] }, { steps: [] }, ['steps']],
    ['a shorter list', { steps: [step('0x1'), step('0x2')] }, { steps: [step('0x1')] }, ['steps']],
    ['an element of a set', { intentHashes: ['0x1', '0x2'] }, { intentHashes: ['0x2'] }, ['intentHashes']],
    [
      'null within a member',
      { sourceTx: { amount: '1' } },
      { sourceTx: { amount: null } },
      ['sourceTx.amount'],
    ],
    [
      'null within a sub-status',
      { subStatuses: [sub(1, { txHash: '0x1' })] },
      { subStatuses: [sub(1)] },
      ['subStatuses'],
    ],
  ])('counts as removed at a newer time and as omitted at the same time: %s', (_, stored, received, paths) => {
    expect(changes(stored, received, 'replaces')).toEqual(paths);
    expect(merged(stored, received, 'replaces')).toEqual(received);
    expect(changes(stored, received, 'grows')).toEqual([]);
    expect(merged(stored, received, 'grows')).toEqual(stored);
  });
});

describe('an unreadable member', () => {
  test('retains its stored value and is no difference', () => {
    for (const completeness of BOTH) {
      const difference = diffRecords(
        { sourceTx: { chainId: 1 }, mood: 'good' },
        { sourceTx: 'soon', mood: 'bad' },
        { completeness, unreadable: ['sourceTx'] },
      );
      expect(difference).toEqual({ changes: ['mood'], merged: { sourceTx: { chainId: 1 }, mood: 'bad' } });
    }
  });

  test('is stored where nothing was stored, and its later readable value is a difference', () => {
    const first = diffRecords({}, { sourceTx: 'soon' }, { completeness: 'grows', unreadable: ['sourceTx'] });
    expect(first).toEqual({ changes: [], merged: { sourceTx: 'soon' } });
    expect(changes(first.merged, { sourceTx: { chainId: 1 } }, 'grows')).toEqual(['sourceTx']);
  });
});

describe('sub-statuses that have one name', () => {
  const [a, b] = [sub(1, { txHash: '0xa' }), sub(1, { txHash: '0xb', state: 'failed' })];

  test.each(BOTH)('are distinguished, in any order (%s)', (completeness) => {
    expect(changes({ subStatuses: [a, b] }, { subStatuses: [a, b] }, completeness)).toEqual([]);
    expect(changes({ subStatuses: [a, b] }, { subStatuses: [b, a] }, completeness)).toEqual([]);
  });

  test('are each found again when only one of them is shown, in part', () => {
    const part = { subStatuses: [{ ...b, txHash: null }] };
    expect(diffRecords({ subStatuses: [a, b] }, part, { completeness: 'grows', unreadable: [] })).toEqual({
      changes: [],
      merged: { subStatuses: [a, b] },
    });
  });

  test('change one at a time', () => {
    const later = { ...b, state: 'published' };
    const difference = diffRecords(
      { subStatuses: [a, b] },
      { subStatuses: [later, a] },
      { completeness: 'replaces', unreadable: [] },
    );
    expect(difference).toEqual({ changes: ['subStatuses'], merged: { subStatuses: [later, a] } });
  });
});

describe('lists at one time', () => {
  test('that go on retain the known members of their beginning', () => {
    const fulfilled = step('0x1', { transactions: { fulfilled: { chainId: 1, txHash: '0xf' } } });
    const received = { steps: [step('0x1'), step('0x2')] };
    expect(merged({ steps: [fulfilled] }, received, 'grows')).toEqual({ steps: [fulfilled, step('0x2')] });
  });

  test('never mix two steps', () => {
    const fulfilled = step('0x1', { transactions: { fulfilled: { chainId: 1, txHash: '0xf' } } });
    for (const received of [[step('0x2'), fulfilled], [step('0x2')]]) {
      const difference = diffRecords(
        { steps: [fulfilled] },
        { steps: received },
        { completeness: 'grows', unreadable: [] },
      );
      expect(difference.merged).toEqual({ steps: received });
      expect(difference.changes).toHaveLength(1);
    }
  });
});

describe('members named like an inherited member of every object', () => {
  test.each([
    'constructor',
    'toString',
    'hasOwnProperty',
    'valueOf',
  ])('are members like others: %s', (name) => {
    for (const completeness of BOTH) {
      expect(merged({}, { [name]: null }, completeness)).toEqual({ [name]: null });
      expect(changes({}, { [name]: null }, completeness)).toEqual([]);
      expect(changes({}, { [name]: ['a', 'b'] }, completeness)).toEqual([name]);
      expect(changes({ [name]: ['a', 'b'] }, { [name]: ['a', 'b'] }, completeness)).toEqual([]);
      expect(changes({ [name]: ['a', 'b'] }, { [name]: ['a', 'c'] }, completeness)).toEqual([`${name}[1]`]);
    }
  });
});

test.each(BOTH)('a set (%s) has each element once, and no empty one', (completeness) => {
  const received = { intentHashes: ['0x2', '', '0x2', null, '0x1', '0x3'] };
  const { merged, changes } = diffRecords({ intentHashes: ['0x1', '0x2'] }, received, {
    completeness,
    unreadable: [],
  });
  expect(merged).toEqual({ intentHashes: ['0x2', '0x1', '0x3'] });
  expect(changes).toEqual(['intentHashes']);
});

describe('sets within sets', () => {
  test.each(['subStatuses', 'intentHashes'])('are compared in good time, at any depth (%s)', (name) => {
    const nest = (leaf: string): JsonObject => {
      let nested: JsonObject = { chainId: 1, state: leaf };
      for (let depth = 0; depth < 45; depth += 1) nested = { chainId: 1, [name]: [nested] };
      return nested;
    };
    for (const completeness of BOTH) {
      expect(changes(nest('a'), nest('a'), completeness)).toEqual([]);
      expect(changes(nest('a'), nest('b'), completeness)).toEqual([name]);
    }
  });
});

/** Counts the comparisons of two sets of leaves from now on, until the test ends. */
function countComparisons(): () => number {
  const { isSubsetOf } = Set.prototype;
  let count = 0;
  Set.prototype.isSubsetOf = function (this: Set<unknown>, other) {
    count += 1;
    return isSubsetOf.call(this, other);
  };
  onTestFinished(() => {
    Set.prototype.isSubsetOf = isSubsetOf;
  });
  return () => count;
}

describe('sets of thousands', () => {
  const COUNT = 3_000;
  /** Most reads of each element, with all its members; comparing each with each would need COUNT times as many. */
  const READS_EACH = 400;
  /** Twice the comparisons of pairing: stored elements are compared with those of the answer, and the rest with both. */
  const MOST_COMPARISONS = 1_000_000;
  const many = (element: (n: number) => JsonValue): JsonValue[] =>
    Array.from({ length: COUNT }, (_, n) => element(n));
  const hash = (n: number): string => `0x${n.toString(16).padStart(64, '0')}`;
  const full = (n: number): JsonObject => sub(1, { quoteIds: [`quote:${n}`], txHash: hash(n) });
  /** Elements that differ only in the combination of few values. */
  const mixed = (n: number): JsonObject => ({
    chainId: 1,
    ...Object.fromEntries(Array.from({ length: 12 }, (_, bit) => [`flag${bit}`, (n >> bit) % 2 === 1])),
  });

  test.each<[string, (n: number) => JsonValue, (n: number) => JsonValue, string[]]>([
    ['the same in another order', full, (n) => full(COUNT - 1 - n), []],
    ['each in part', full, (n) => ({ ...full(n), quoteIds: [] }), []],
    ['each with more', (n) => ({ ...full(n), quoteIds: null }), full, ['subStatuses']],
    ['all new', full, (n) => full(COUNT + n), ['subStatuses']],
    ['all in another state', full, (n) => ({ ...full(n), state: 'failed' }), ['subStatuses']],
    ['alike, one with more', mixed, (n) => (n === 7 ? { ...mixed(n), more: 1 } : mixed(n)), ['subStatuses']],
    ['alike, in part', mixed, (n) => ({ ...mixed(n), flag0: null, flag1: '' }), []],
    ['alike, all other', mixed, (n) => ({ ...mixed(n), flag12: true }), ['subStatuses']],
  ])('of sub-statuses are compared in bounded work: %s', (_, stored, received, expected) => {
    const before = countedReads({ subStatuses: many(stored) });
    const after = countedReads({ subStatuses: many(received) });
    const comparisons = countComparisons();
    const difference = diffRecords(before.value, after.value, { completeness: 'grows', unreadable: [] });
    expect(difference.changes).toEqual(expected);
    expect((before.reads() + after.reads()) / COUNT).toBeLessThan(READS_EACH);
    expect(comparisons()).toBeLessThanOrEqual(MOST_COMPARISONS);
    const again = diffRecords(
      difference.merged,
      { subStatuses: many(received) },
      { completeness: 'grows', unreadable: [] },
    );
    expect(again.changes).toEqual([]);
  });

  test('of hashes are compared in good time, and only grow', () => {
    const [stored, received] = [{ intentHashes: many(hash) }, { intentHashes: many((n) => hash(n + 1)) }];
    const { changes: paths, merged: after } = diffRecords(stored, received, {
      completeness: 'grows',
      unreadable: [],
    });
    expect(paths).toEqual(['intentHashes']);
    expect(after.intentHashes).toHaveLength(COUNT + 1);
  });
});
