import { describe, expect, test } from 'vitest';
import {
  gaslessId,
  gatewayJobId,
  intentId,
  type SubjectId,
  vaultId,
} from '../../src/domain/subjects/subject.ts';
import { type Answer, Followed } from '../support/followed.ts';

const JOB = gatewayJobId('job-1');
const VAULT = vaultId({ chainId: 8453, address: '0xbb' });
const INTENT = intentId('0xaa');
const GASLESS = gaslessId('a');

const sub = (state: string, quote: string) => ({ chainId: 1, quoteIds: [quote], state });

/** States of a subject in their order, and their number of events. */
const STATES: [name: string, subject: SubjectId, states: Answer[]][] = [
  ['a job that comes to a status of no table', JOB, [{ status: 'PENDING' }, { status: 'BROADCASTING' }]],
  ['a vault that comes to a state of no table', VAULT, [{ status: 'PENDING' }, { status: 'SWEEPING' }]],
  [
    'three statuses of no table',
    JOB,
    [{ status: 'QUEUED' }, { status: 'BROADCASTING' }, { status: 'CONFIRMING' }],
  ],
  ['statuses off the usual path', VAULT, [{ status: 'EXPIRED_UNFUNDED' }, { status: 'FUNDING_DETECTED' }]],
  [
    'a transaction that is replaced',
    JOB,
    [
      { status: 'PENDING', more: { transferTxHash: '0xa' } },
      { status: 'PENDING', more: { transferTxHash: '0xb' } },
    ],
  ],
  [
    'a value within a member',
    INTENT,
    [
      { status: 'pending', updatedAt: 100, more: { sourceTx: { chainId: 1, amount: '5' } } },
      { status: 'pending', updatedAt: 100, more: { sourceTx: { chainId: 1, amount: '6' } } },
      { status: 'pending', updatedAt: 100, more: { sourceTx: { chainId: 1, amount: '7' } } },
    ],
  ],
  [
    'the status of a step',
    INTENT,
    [
      { status: 'pending', more: { steps: [{ type: 'BRIDGE', intentHash: '0x1', status: 'OPEN' }] } },
      { status: 'pending', more: { steps: [{ type: 'BRIDGE', intentHash: '0x1', status: 'FULFILLED' }] } },
    ],
  ],
  [
    'one of two alike sub-statuses',
    GASLESS,
    [
      { status: 'pending', updatedAt: 5, more: { subStatuses: [sub('pending', 'a'), sub('pending', 'b')] } },
      { status: 'pending', updatedAt: 5, more: { subStatuses: [sub('pending', 'a'), sub('failed', 'b')] } },
    ],
  ],
  [
    'a status and all else with it',
    JOB,
    [
      { status: 'PENDING', more: { amount: '5', note: 'x' } },
      { status: 'BROADCASTING', more: { amount: '6', note: 'y', transferTxHash: '0xa' } },
    ],
  ],
];

describe('replicas of which one lags', () => {
  test.each(STATES)('report each state once, for any number of alternations: %s', (_, subject, states) => {
    for (const exact of [true, false]) {
      const followed = new Followed(subject);
      for (const [index, state] of states.entries()) {
        for (let round = 0; round < 10; round += 1) {
          for (const shown of [state, ...states.slice(0, index), state]) {
            followed.poll(shown, { exact, afterSeconds: 20 });
          }
        }
      }
      expect(followed.reported.map(({ status }) => status)).toEqual(states.map(({ status }) => status));
      expect(followed.reported.some(({ regression }) => regression)).toBe(false);
      expect(followed.snapshot?.unconfirmed).toBe(null);
    }
  });

  test.each(STATES)('leave nothing of the old state in the record: %s', (_, subject, states) => {
    const followed = new Followed(subject);
    for (const state of states) followed.poll(state);
    const { record } = followed.snapshot ?? { record: {} };
    for (const state of states.slice(0, -1)) {
      expect(followed.poll({ ...state, more: { ...state.more, intruder: 1 } })).toMatchObject({
        outcome: 'stale',
      });
    }
    expect(followed.snapshot?.record).toEqual(record);
  });

  test('are seen through in another letter case of the status, and of hex', () => {
    const followed = new Followed(JOB);
    followed.poll({ status: 'Queued', more: { transferTxHash: '0xAb' } });
    followed.poll({ status: 'CONFIRMING', more: { transferTxHash: '0xcd' } });
    expect(followed.poll({ status: 'QUEUED' })).toMatchObject({ outcome: 'stale', reason: 'returned' });
    expect(followed.poll({ status: 'confirming', more: { transferTxHash: '0xaB' } })).toMatchObject({
      outcome: 'stale',
      reason: 'returned',
    });
  });

  test('are seen through with one value of the old state among new ones', () => {
    const followed = new Followed(JOB);
    followed.poll({ status: 'PENDING', more: { amount: '5' } });
    followed.poll({ status: 'CONFIRMING', more: { amount: '6' } });
    // The state between the two, which no answer has shown yet.
    expect(followed.poll({ status: 'BROADCASTING', more: { amount: '5' } })).toMatchObject({
      outcome: 'stale',
      reason: 'returned',
    });
  });

  test('are seen through where their values were history', () => {
    const followed = new Followed(JOB);
    followed.poll({ status: 'QUEUED' }, { history: true });
    followed.poll({ status: 'BROADCASTING' }, { history: true });
    expect(followed.poll({ status: 'QUEUED' })).toMatchObject({ outcome: 'stale', reason: 'returned' });
    expect(followed.types).toEqual(['gasless.broadcasting']);
  });

  test('are seen through after the upstream lacked the subject for a while', () => {
    const followed = new Followed(JOB);
    followed.poll({ status: 'QUEUED' });
    followed.poll({ status: 'BROADCASTING' });
    for (let minute = 0; minute <= 10; minute += 1)
      followed.poll({ status: 'unknown' }, { afterSeconds: 60 });
    followed.poll({ status: 'BROADCASTING' });
    expect(followed.types.slice(2)).toEqual(['gasless.unknown', 'gasless.broadcasting']);
    expect(followed.poll({ status: 'QUEUED' })).toMatchObject({ outcome: 'stale', reason: 'returned' });
  });

  test('are seen through after polls have confirmed a state at an earlier time', () => {
    const followed = new Followed(GASLESS);
    for (const updatedAt of [174, 194]) followed.poll({ status: 'published', updatedAt });
    for (let minute = 0; minute <= 10; minute += 1)
      followed.poll({ status: 'submitted', updatedAt: 174 }, { afterSeconds: 60 });
    expect(followed.types).toEqual(['gasless.published', 'gasless.submitted']);
    expect(followed.poll({ status: 'published', updatedAt: 174 })).toMatchObject({
      outcome: 'stale',
      reason: 'returned',
    });
    expect(followed.poll({ status: 'published', updatedAt: 195 })).toMatchObject({ outcome: 'changed' });
  });
});

describe('a replica that lags and gives no time that can be read', () => {
  test.each<[string, Answer, Answer]>([
    ['a value', { status: 'pending', more: { amount: '5' } }, { status: 'pending', more: { amount: '6' } }],
    ['a status beside the way', { status: 'failed' }, { status: 'settled' }],
    ['a status of no table', { status: 'routing' }, { status: 'filled' }],
  ])('invents no event of an earlier time: %s', (_, former, present) => {
    const followed = new Followed(INTENT);
    followed.poll({ ...former, updatedAt: 100 });
    followed.poll({ ...present, updatedAt: 200 });
    const untimed = { ...former, updatedAt: null, unreadable: ['updatedAt'] };
    expect(followed.poll(untimed)).toMatchObject({ outcome: 'stale', reason: 'returned' });
    expect(followed.poll({ ...former, updatedAt: 200 }).outcome).not.toBe('unchanged');
  });
});

describe('several states at one time', () => {
  const sub = (more: object) => ({ chainId: 1, ...more });
  const whole: Answer[] = [
    {
      status: 'pending',
      more: { subStatuses: [sub({ quoteIds: ['b', 'a', 'c'], txHash: '0xabcde5', state: 'submitted' })] },
    },
    { status: 'SWEEPING', more: { subStatuses: [sub({ txHash: '0xabcde5', state: 'submitted' })] } },
    {
      status: 'SWEEPING',
      more: {
        subStatuses: [
          sub({ txHash: '0xabcde0', state: 'submitted' }),
          sub({ quoteIds: ['b', 'a', 'c'], state: 'pending' }),
        ],
      },
    },
  ];

  test.each([
    null,
    5,
  ])('are each reported once where the record has more than an answer, at %s', (updatedAt) => {
    const followed = new Followed(GASLESS);
    for (const at of [0, 1, 2, 1, 2, 1, 2, 0, 1, 2])
      followed.poll({ status: '', ...whole[at], updatedAt }, { exact: false });
    expect(followed.reported.length).toBeLessThanOrEqual(3);
  });

  test('are no news where polls have shown one before and another was reported since', () => {
    const [filled, pending, routing] = ['filled', 'pending', 'routing'].map((status) => ({
      status,
      updatedAt: 100,
    }));
    const followed = new Followed(INTENT);
    for (const answer of [filled, pending, pending, routing])
      if (answer) followed.poll(answer, { afterSeconds: 15 });
    expect(followed.types).toEqual(['intent.filled', 'intent.routing']);
    expect(pending && followed.poll(pending)).toMatchObject({ outcome: 'stale', reason: 'returned' });
  });
});

describe('a genuine return', () => {
  const queued = { status: 'QUEUED', more: { amount: '5' } };
  const sent = { status: 'BROADCASTING', more: { amount: '6' } };

  /** Polls every 15 s until the return is reported; returns the seconds from the first of them. */
  function secondsUntilReported(followed: Followed, answer: Answer): number {
    const reported = followed.reported.length;
    followed.poll(answer);
    const since = followed.nowMs;
    while (followed.reported.length === reported) followed.poll(answer, { afterSeconds: 15 });
    return (followed.nowMs - since) / 1_000;
  }

  test('is reported within a minute where no answer has a time', () => {
    for (const answer of [queued, { ...sent, more: { amount: '5' } }, { ...queued, status: 'queued' }]) {
      const followed = new Followed(JOB);
      followed.poll(queued);
      followed.poll(sent);
      expect(secondsUntilReported(followed, answer)).toBe(45);
      expect(followed.reported.at(-1)).toMatchObject({ status: answer.status, regression: true });
    }
  });

  test('is reported within a minute as well where the tables have the statuses', () => {
    const followed = new Followed(VAULT);
    followed.poll({ status: 'FUNDING_DETECTED' });
    expect(secondsUntilReported(followed, { status: 'PENDING' })).toBe(45);
  });

  test.each([
    ['equal', 100, 100],
    ['missing from the answer', 100, null],
    ['missing from what is known', null, 100],
  ])('is reported after `confirmAfter` where the time is %s', (_, before, updatedAt) => {
    const followed = new Followed(JOB);
    followed.poll({ ...queued, updatedAt: before });
    followed.poll({ ...sent, updatedAt: before });
    expect(secondsUntilReported(followed, { ...queued, updatedAt })).toBe(600);
    expect(followed.reported.at(-1)).toMatchObject({ type: 'gasless.queued', regression: true });
  });

  test('is reported at once at a newer time, and what was before that time is no return at it', () => {
    const followed = new Followed(JOB);
    followed.poll({ ...queued, updatedAt: 100 });
    followed.poll({ ...sent, updatedAt: 100 });
    expect(followed.poll({ ...queued, updatedAt: 101 }).outcome).toBe('changed');
    expect(followed.poll({ ...sent, updatedAt: 101 }).outcome).toBe('changed');
  });

  test('is not reported while a poll between shows the known state', () => {
    const followed = new Followed(JOB);
    followed.poll(queued);
    followed.poll(sent);
    for (let minute = 0; minute < 60; minute += 1) {
      followed.poll(queued, { afterSeconds: 30 });
      followed.poll(sent, { afterSeconds: 30 });
    }
    expect(followed.reported).toHaveLength(2);
  });

  test('stays unconfirmed by the returned value, also while other members go on', () => {
    const followed = new Followed(JOB);
    followed.poll(queued);
    followed.poll(sent);
    for (let index = 0; index < 3; index += 1) {
      const answer = { ...queued, more: { amount: '5', attempts: index } };
      expect(followed.poll(answer, { afterSeconds: 15 }).outcome).toBe('stale');
    }
    const answer = { status: 'RETRYING', more: { amount: '5', attempts: 3 } };
    expect(followed.poll(answer, { afterSeconds: 15 }).outcome).toBe('stale');
    const again = { ...queued, more: { amount: '5', attempts: 4 } };
    for (let index = 0; index < 4; index += 1) followed.poll(again, { afterSeconds: 15 });
    expect(followed.reported.at(-1)).toMatchObject({ type: 'gasless.queued', regression: true });
    expect(followed.snapshot?.record).toMatchObject({ amount: '5', attempts: 4 });
  });

  test('that came and went is doubted in both directions', () => {
    const followed = new Followed(JOB);
    followed.poll(queued);
    followed.poll(sent);
    secondsUntilReported(followed, queued);
    expect(followed.poll(sent)).toMatchObject({ outcome: 'stale', reason: 'returned' });
    expect(followed.poll(queued).outcome).toBe('unchanged');
    expect(secondsUntilReported(followed, sent)).toBe(45);
    expect(followed.types).toEqual([
      'gasless.queued',
      'gasless.broadcasting',
      'gasless.queued',
      'gasless.broadcasting',
    ]);
  });

  test('restores the values that the state had omitted, and a repeat of the return is doubted', () => {
    const followed = new Followed(JOB);
    const done = { status: 'BROADCASTING', more: { transferTxHash: '0xa', intentHashes: ['0x1', '0x2'] } };
    followed.poll({ status: 'QUEUED', more: { intentHashes: ['0x1'] } });
    followed.poll(done);
    secondsUntilReported(followed, { status: 'QUEUED', more: { intentHashes: ['0x1'] } });
    expect(followed.snapshot?.record).not.toHaveProperty('transferTxHash');
    for (const more of [{ transferTxHash: '0xa' }, { intentHashes: ['0x1', '0x2'] }]) {
      expect(followed.poll({ status: 'QUEUED', more })).toMatchObject({
        outcome: 'stale',
        reason: 'returned',
      });
    }
  });
});

describe('the memory of former values', () => {
  test('is nothing of the first answer, and of a record that grows the whole answers alone', () => {
    const followed = new Followed(JOB);
    followed.poll({ status: 'QUEUED', more: { intentHashes: ['0x1'] } });
    expect(followed.snapshot?.former).toEqual([]);
    followed.poll({ status: 'QUEUED', more: { intentHashes: ['0x2'], transferTxHash: '0xa' } });
    expect(followed.snapshot?.former).toHaveLength(2);
  });

  test('is bounded, retains the latest, and of one change the status before all else', () => {
    const followed = new Followed(JOB);
    const wide = (round: number) =>
      Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`member${index}`, `${round}`]));
    for (let round = 0; round < 20; round += 1) followed.poll({ status: `WORD${round}`, more: wide(round) });
    expect(followed.reported).toHaveLength(20);
    expect(followed.snapshot?.former).toHaveLength(128);
    expect(followed.poll({ status: 'WORD18' })).toMatchObject({ outcome: 'stale', reason: 'returned' });
    expect(followed.poll({ status: 'WORD19', more: wide(18) })).toMatchObject({ outcome: 'stale' });
  });

  test('can follow a member that changes for ever', () => {
    const followed = new Followed(JOB);
    for (let round = 0; round < 1_000; round += 1) followed.poll({ status: 'QUEUED', more: { beat: round } });
    expect(followed.snapshot?.former).toHaveLength(128);
    expect(followed.poll({ status: 'QUEUED', more: { beat: 998 } }).outcome).toBe('stale');
  });

  test('never is a value that cannot be read', () => {
    const followed = new Followed(JOB);
    followed.poll({ status: 'QUEUED', more: { amount: '5' } });
    followed.poll({ status: 'QUEUED', more: { amount: '6' } });
    const unreadable = { status: 'QUEUED', more: { amount: { of: '5' } }, unreadable: ['amount'] };
    expect(followed.poll(unreadable).outcome).toBe('unchanged');
  });
});
