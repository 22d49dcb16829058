import { expect, test } from 'vitest';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import {
  partKeys,
  planKeys,
  planSuspensions,
  type StoredKey,
  type SubscribedSubject,
  type SuspendedState,
} from '../../src/domain/subjects/suspended-keys.ts';

const W = asSubjectId('wallet:0x52908400098527886e0f7030069857d2e4169ee7');
const OUT: SuspendedState = { state: 'out', isMade: true };
const BACK: SuspendedState = { state: 'back', isMade: true };

const storedKey = (name: string, atMs: number, ...receivers: string[]): StoredKey => ({
  key: `${name}|${W}`,
  atMs,
  receivers,
});

const named = (subscription: string, ...receivers: string[]): SubscribedSubject => ({
  subscription,
  receivers,
  subject: W,
});

type Case = {
  what: string;
  stored: StoredKey[];
  named: SubscribedSubject[];
  suspended?: Record<string, SuspendedState>;
  isGraced?: boolean;
  /** True for receivers that are not in the config. */
  away?: boolean;
  plan: { narrowed?: string[]; out?: string[]; back?: string[]; ended?: string[] };
};

test.each<Case>([
  {
    what: 'one removed from the config is suspended',
    stored: [storedKey('a', 5, 'r')],
    named: [],
    plan: { out: ['a'] },
  },
  {
    what: 'one that names no receiver is suspended too',
    stored: [storedKey('a', 5)],
    named: [],
    plan: { out: ['a'] },
  },
  {
    what: 'without a grace span it ends',
    stored: [storedKey('a', 5, 'r')],
    named: [],
    isGraced: false,
    plan: { ended: ['a'] },
  },
  {
    what: 'under a new name it goes on, and is not suspended',
    stored: [storedKey('a', 5, 'r')],
    named: [named('b', 'r')],
    plan: { ended: ['a'] },
  },
  {
    what: 'one that only the log reads goes on under a new name',
    stored: [storedKey('a', 5)],
    named: [named('b')],
    plan: { ended: ['a'] },
  },
  {
    what: 'the younger of two with one receiver ends without a rest',
    stored: [storedKey('a', 5, 'r'), storedKey('b', 7, 'r')],
    named: [named('a', 'r')],
    plan: { ended: ['b'] },
  },
  {
    what: 'one that moves for one receiver is suspended for the other',
    stored: [storedKey('a', 5, 'q', 'r')],
    named: [named('b', 'r')],
    plan: { narrowed: ['a>q'], ended: ['a'] },
  },
  {
    what: 'one for a single receiver is suspended, also where it goes on for readers of the log',
    stored: [storedKey('a>q', 5, 'q'), storedKey('a>r', 5, 'r')],
    named: [named('b', 'r', 's')],
    plan: { out: ['a>q'], ended: ['a>r'] },
  },
  {
    what: 'another receiver of the wallet changes nothing for the removed one',
    stored: [storedKey('a', 5, 'r'), storedKey('b', 7, 'q')],
    named: [named('b', 'q')],
    plan: { narrowed: ['a>r'], ended: ['a'] },
  },
  {
    what: 'one for a receiver that its subscription gives up ends',
    stored: [storedKey('a', 7, 'r'), storedKey('a>q', 5, 'q')],
    named: [named('a', 'r')],
    plan: { ended: ['a>q'] },
  },
  {
    what: 'one for a receiver removed from the config is suspended',
    stored: [storedKey('a', 7, 'r'), storedKey('a>q', 5, 'q')],
    named: [named('a', 'r')],
    away: true,
    plan: { out: ['a>q'] },
  },
  {
    what: 'a suspended one stays suspended',
    stored: [storedKey('a', 5, 'r')],
    named: [],
    suspended: { a: OUT },
    plan: {},
  },
  {
    what: 'it comes back',
    stored: [storedKey('a', 5, 'r')],
    named: [named('a', 'r')],
    suspended: { a: OUT },
    plan: { back: ['a'] },
  },
  {
    what: 'one on its way back stays on it',
    stored: [storedKey('a', 5, 'r')],
    named: [named('a', 'r')],
    suspended: { a: BACK },
    plan: {},
  },
  {
    what: 'it is removed again before it was back',
    stored: [storedKey('a', 5, 'r')],
    named: [],
    suspended: { a: BACK },
    plan: { out: ['a'] },
  },
  {
    what: 'it comes back under another name',
    stored: [storedKey('a', 5, 'r')],
    named: [named('b', 'r')],
    suspended: { a: OUT },
    plan: { back: ['a', 'b'], ended: ['a'] },
  },
  {
    what: 'it comes back for one receiver',
    stored: [storedKey('a', 5, 'q', 'r')],
    named: [named('b', 'r')],
    suspended: { a: OUT },
    plan: { narrowed: ['a>q'], back: ['a', 'b'], ended: ['a'] },
  },
  {
    what: 'a suspended one without a grace span goes to its end',
    stored: [storedKey('a', 5, 'r')],
    named: [],
    suspended: { a: OUT },
    isGraced: false,
    plan: {},
  },
  {
    what: 'a sync that was cut off is made good',
    stored: [storedKey('b', 5, 'r'), storedKey('c', 5, 'r')],
    named: [named('b', 'r')],
    suspended: {
      a: { state: 'back', isMade: false },
      b: { state: 'back', isMade: false },
      c: { state: 'out', isMade: false },
    },
    plan: { back: ['b', 'c', 'a'], ended: ['c'] },
  },
])('the suspension of $what', ({ stored, named, suspended = {}, isGraced = true, away = false, plan }) => {
  const { continued, stays } = planKeys(stored, named);
  const states = new Map(Object.entries(suspended).map(([name, state]) => [`${name}|${W}`, state]));
  const present = new Set(away ? named.flatMap(({ receivers }) => receivers) : ['q', 'r', 's']);
  const reload = { stored, named, continued, stays, suspended: states, present };
  const planned = planSuspensions(reload, { isGraced });
  const claimKeys = (names: string[] = []) => names.map((name) => `${name}|${W}`);
  expect({ ...planned, narrowed: planned.narrowed.map((one) => one.key) }).toEqual({
    narrowed: claimKeys(plan.narrowed),
    out: claimKeys(plan.out),
    back: claimKeys(plan.back),
    ended: claimKeys(plan.ended),
  });
});

test.each<{ what: string; stored: StoredKey; now: string[]; parts: string[] }>([
  { what: 'retains its receivers', stored: storedKey('a', 5, 'q', 'r'), now: ['q', 'r'], parts: [] },
  { what: 'gives one up', stored: storedKey('a', 5, 'q', 'r'), now: ['r'], parts: ['a>r', 'a>q'] },
  { what: 'gives all up', stored: storedKey('a', 5, 'q', 'r'), now: [], parts: ['a>q,r'] },
  { what: 'gets another', stored: storedKey('a', 5, 'q'), now: ['q', 'r'], parts: ['a>q'] },
  { what: 'changes one for another', stored: storedKey('a', 5, 'q'), now: ['r'], parts: ['a>q'] },
  { what: 'gets its first', stored: storedKey('a', 5), now: ['r'], parts: ['a>'] },
  { what: 'gets another, as it was parted', stored: storedKey('a>q', 5, 'q'), now: ['q', 'r'], parts: [] },
])('the suspension of a subscription that $what', ({ stored, now, parts }) => {
  const receivers = new Map([['a', now]]);
  for (const suspended of [new Map(), new Map([[stored.key, OUT]])]) {
    const found = partKeys({ stored: [stored], named: [], suspended, receivers }, { isGraced: true });
    expect(found.map((one) => one.key)).toEqual(parts.map((name) => `${name}|${W}`));
  }
});

test('one part of two subscription keys has the earlier start, in any order', () => {
  const stored = [storedKey('a', 7, 'p', 'q', 'r'), storedKey('a>q,r', 5, 'q', 'r')];
  const receivers = new Map([['a', ['r']]]);
  for (const some of [stored, stored.toReversed()]) {
    const found = partKeys({ stored: some, named: [], suspended: new Map(), receivers }, { isGraced: true });
    expect(new Map(found.map((one) => [one.key, one.atMs]))).toEqual(
      new Map([
        [`a>r|${W}`, 5],
        [`a>q|${W}`, 5],
        [`a>p,q|${W}`, 7],
      ]),
    );
    expect(found).toHaveLength(3);
    expect(found.find((one) => one.key === `a>r|${W}`)?.from).toEqual([`a>q,r|${W}`, `a|${W}`]);
  }
});
