import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { gaslessId, gatewayJobId } from '../../src/domain/subjects/subject.ts';
import { type Answer, Followed } from '../support/followed.ts';

const JOB = gatewayJobId('job-1');

const hash = fc.integer({ min: 0, max: 8 }).map((n) => `0xabcde${n}`);
const subStatus = fc.record(
  {
    chainId: fc.constantFrom(1, 10),
    quoteIds: fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 }),
    txHash: fc.option(hash),
    state: fc.constantFrom('pending', 'submitted', 'failed'),
  },
  { requiredKeys: ['chainId'] },
);
const step = fc.record(
  { type: fc.constantFrom('SWAP', 'BRIDGE'), intentHash: hash, status: fc.constantFrom('OPEN', 'FULFILLED') },
  { requiredKeys: ['type'] },
);
const likely: fc.Arbitrary<JsonObject> = fc.record(
  {
    transferTxHash: hash,
    amount: fc.constantFrom('1', 2, null, ''),
    sourceTx: fc.record({ chainId: fc.constantFrom(1, 10), amount: fc.constantFrom('1', '2') }),
    intentHashes: fc.array(hash, { maxLength: 4 }),
    subStatuses: fc.array(subStatus, { maxLength: 4 }),
    steps: fc.array(step, { maxLength: 3 }),
  },
  { requiredKeys: [] },
);

const member = fc.constantFrom(
  'mood',
  'steps',
  'type',
  'intentHash',
  'intentHashes',
  'subStatuses',
  'quoteIds',
);
const anything = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<JsonValue[]>(null, '', '0xab', '0xAB', 'x', 1, true),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(member, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;
const odd: fc.Arbitrary<JsonObject> = fc.dictionary(member, anything, { maxKeys: 4, noNullPrototype: true });

const word = fc.constantFrom('PENDING', 'pending', 'COMPLETED', 'BROADCASTING', 'SWEEPING');

describe('two replicas that alternate', () => {
  const times = fc.constantFrom<[number | null, number | null][]>([null, null], [5, 5], [5, null], [null, 5]);
  const polls = fc.array(fc.record({ second: fc.boolean(), exact: fc.boolean() }), { maxLength: 12 });

  // Found by seed 268222759: elements with the same quotes in another order are matched two ways.
  test('report each state once at most where two elements match the same one', () => {
    const [first, second]: Answer[] = [
      [{ chainId: 1, quoteIds: ['a', 'c', 'b'], txHash: '0xabcde1', state: 'failed' }],
      [
        { chainId: 1, quoteIds: ['b', 'a', 'c'], state: 'pending' },
        { chainId: 1, quoteIds: ['c', 'b', 'a'], txHash: '0xabcde0', state: 'failed' },
      ],
    ].map((subStatuses) => ({ status: 'BROADCASTING', updatedAt: null, more: { subStatuses } }));
    const followed = new Followed(JOB);
    for (const answer of [first, second, first]) if (answer) followed.poll(answer, { exact: false });
    expect(followed.reported.length).toBeLessThanOrEqual(2);
  });

  test('report each state once at most, for any two records, at an equal or missing time', () => {
    let changed = 0;
    fc.assert(
      fc.property(
        fc.oneof(likely, odd),
        fc.oneof(likely, odd),
        word,
        word,
        times,
        polls,
        (one, other, a, b, [t, u], order) => {
          const first = { status: a, updatedAt: t, more: one };
          const second = { status: b, updatedAt: u, more: other };
          const followed = new Followed(JOB);
          for (const answer of [first, second]) followed.poll(answer);
          for (const { second: isSecond, exact } of order)
            followed.poll(isSecond ? second : first, { exact });
          if (followed.reported.length === 2) changed += 1;
          expect(followed.reported.length).toBeLessThanOrEqual(2);
        },
      ),
      { numRuns: 4_000 },
    );
    expect(changed).toBeGreaterThan(1_000);
  });
});

describe('replicas that show three states', () => {
  const subOfJob = fc.record({
    chainId: fc.constantFrom(1, 1, 10),
    quoteIds: fc.uniqueArray(fc.constantFrom('quote:a', 'quote:b', 'quote:c'), { maxLength: 2 }),
    txHash: fc.option(fc.integer({ min: 0, max: 3 }).map((n) => `0xabcde${n}`)),
    state: fc.constantFrom('pending', 'submitted', 'published', 'failed'),
  });
  const state = fc.record({
    status: fc.constantFrom('pending', 'submitted'),
    more: fc.record({ subStatuses: fc.array(subOfJob, { minLength: 1, maxLength: 3 }) }),
  });

  test('report each at most once, in any order', () => {
    let changed = 0;
    fc.assert(
      fc.property(
        fc.array(state, { minLength: 3, maxLength: 3 }),
        fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 10 }),
        (states, order) => {
          const followed = new Followed(gaslessId('a'));
          for (const at of [0, 1, 2, ...order])
            followed.poll({ status: '', ...states[at], updatedAt: 5 }, { exact: false });
          if (followed.reported.length === 3) changed += 1;
          expect(followed.reported.length).toBeLessThanOrEqual(3);
        },
      ),
      { numRuns: 4_000 },
    );
    expect(changed).toBeGreaterThan(1_000);
  });
});

/** A state that lasts a while, and its polls: their times, and the age of the shown state, as parts of the longest. */
const chapter = fc.record({
  status: fc.constantFrom('PENDING', 'BROADCASTING', 'CONFIRMING', 'COMPLETED'),
  amount: fc.constantFrom('1', '2', '3'),
  polls: fc.array(
    fc.record({
      wait: fc.double({ min: 0.1, max: 1, noNaN: true }),
      lag: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
    {
      minLength: 5,
      maxLength: 10,
    },
  ),
});

describe('replicas that lag', () => {
  // A state lasts for more than the longest lag, the confirmation (45 s, 600 s) and two waits: less can hide a return.
  test.each([
    { name: 'without a time', updatedAt: null, holdSeconds: 120, waitSeconds: 15, lagSeconds: 30 },
    { name: 'at one time', updatedAt: 7, holdSeconds: 1_600, waitSeconds: 200, lagSeconds: 550 },
  ])('by less than the confirmation time of a return report every change once, also returns, $name', (given) => {
    const { updatedAt, holdSeconds, waitSeconds, lagSeconds } = given;
    let returns = 0;
    fc.assert(
      fc.property(fc.array(chapter, { minLength: 1, maxLength: 8 }), fc.boolean(), (chapters, isWhole) => {
        const states = chapters.map(
          ({ status, amount }, index): Answer => ({
            status,
            updatedAt,
            more: { amount, ...(isWhole ? { serial: `${index}`, sourceTx: { amount } } : {}) },
          }),
        );
        const at = (seconds: number): Answer =>
          states[Math.max(0, Math.floor(seconds / holdSeconds))] ?? { status: '' };
        const followed = new Followed(JOB);
        const startMs = followed.nowMs;
        const polls = chapters.flatMap(({ polls: of }) => of);
        const untilMs = startMs + states.length * holdSeconds * 1_000;
        for (let index = 0; ; index += 1) {
          const { wait, lag } = polls[index % polls.length] ?? { wait: 1, lag: 0 };
          const afterSeconds = wait * waitSeconds;
          const seconds = (followed.nowMs - startMs) / 1_000 + afterSeconds;
          if (startMs + seconds * 1_000 >= untilMs) break;
          followed.poll(at(seconds - lag * lagSeconds), { afterSeconds });
        }
        const facts = ({ status, more = {} }: Answer): string => JSON.stringify([status, more]);
        const genuine = states.filter((state, index) => {
          const before = states[index - 1];
          return before === undefined || facts(before) !== facts(state);
        });
        returns += genuine.length - new Set(genuine.map(facts)).size;
        expect(followed.reported.map(({ status }) => status)).toEqual(genuine.map(({ status }) => status));
        expect(followed.snapshot?.record).toMatchObject(genuine.at(-1)?.more ?? {});
      }),
      { numRuns: 400 },
    );
    expect(returns).toBeGreaterThan(20);
  });

  test('and never repeat a value report every state once, for any lag', () => {
    const answers = fc.array(fc.record({ moves: fc.boolean(), lag: fc.nat(4), exact: fc.boolean() }), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(answers, (shown) => {
        const followed = new Followed(JOB);
        const state = (n: number): Answer => ({
          status: `WORD${n}`,
          more: { amount: `${n}`, half: `${n >> 1}` },
        });
        let current = 0;
        followed.poll(state(0));
        for (const { moves, lag, exact } of shown) {
          if (moves) {
            current += 1;
            followed.poll(state(current), { exact });
          }
          followed.poll(state(Math.max(0, current - lag)), { exact, afterSeconds: 15 });
          followed.poll(state(current), { exact, afterSeconds: 15 });
        }
        expect(followed.reported.map(({ status }) => status)).toEqual(
          Array.from({ length: current + 1 }, (_, n) => `WORD${n}`),
        );
      }),
      { numRuns: 300 },
    );
  });
});
