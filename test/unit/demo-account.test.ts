import { describe, expect, test } from 'vitest';
import { type Account, account } from '../../demo/account.ts';
import type { Showing } from '../../sandbox/control/answer-log.ts';
import { contentOf } from '../../sandbox/world/record.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';

const SUBJECT = 'intent:0x1';

type ShownAnswer = { status: string; updatedAt?: number | null; more?: JsonObject; page?: true };
type Reported = ShownAnswer & {
  from: string | null;
  regression?: true;
  changes?: string[];
  sequence?: number;
};

const recordOf = ({ status, more }: ShownAnswer): JsonObject => ({ id: SUBJECT, status, ...more });

/** Answers two seconds apart, or all at the same time. */
function showings(answers: readonly ShownAnswer[], apartMs = 2_000): Showing[] {
  return answers.map((one, index) => {
    const at = 1_000_000 + index * apartMs;
    const { status, updatedAt = null, page } = one;
    const content = status === 'unknown' ? '' : contentOf(recordOf(one));
    const records = [{ id: SUBJECT, status, updatedAt, content, steps: { failed: 0, refunded: 0 } }];
    return { requestedAt: at, at, doneAt: at + 10, isPage: page ?? false, records };
  });
}

function events(reported: readonly Reported[]): RenderedEvent[] {
  return reported.map((one, index) => ({
    id: `evt_${index}`,
    type: `intent.${one.status}`,
    timestamp: '2026-11-20T11:31:00.123Z',
    data: {
      subject: { kind: 'intent', id: SUBJECT },
      sequence: one.sequence ?? index + 1,
      epoch: 1,
      status: one.status,
      previousStatus: one.from,
      changes: one.changes ?? ['status'],
      record: recordOf(one),
      ...(one.regression ? { regression: true } : {}),
      upstreamUpdatedAt: one.updatedAt ?? null,
      detectionDelaySeconds: null,
      wallets: [],
      subscriptions: [],
      metadata: {},
    },
  }));
}

function sums(run: {
  answers: readonly ShownAnswer[];
  reported: readonly Reported[];
  apartMs?: number;
  rules?: Parameters<typeof account>[0]['rules'];
  slackMsOf?: (subject: string) => number;
}): Account {
  return account({
    transitions: [],
    showings: showings(run.answers, run.apartMs),
    events: events(run.reported),
    isWatched: () => true,
    ...(run.rules ? { rules: run.rules } : {}),
    ...(run.slackMsOf ? { slackMsOf: run.slackMsOf } : {}),
  });
}

const PENDING: ShownAnswer = { status: 'pending', updatedAt: 10 };
const FILLED: ShownAnswer = { status: 'filled', updatedAt: 20 };
const SETTLED: ShownAnswer = { status: 'settled', updatedAt: 30 };
const UNKNOWN: ShownAnswer = { status: 'unknown' };
const REPORTED_PENDING: Reported = { ...PENDING, from: null };
const REPORTED_FILLED: Reported = { ...FILLED, from: 'pending' };
const REPORTED_SETTLED: Reported = { ...SETTLED, from: 'filled' };

describe('the account finds', () => {
  const LIES: [name: string, answers: ShownAnswer[], reported: Reported[], problem: RegExp][] = [
    ['a first sight that was not reported', [PENDING], [], /no event reports/],
    ['a change that was not reported', [PENDING, FILLED], [REPORTED_PENDING], /filled@20.*no event reports/],
    [
      'a change in the middle that was not reported',
      [PENDING, FILLED, SETTLED],
      [REPORTED_PENDING, { ...SETTLED, from: 'pending' }],
      /filled@20.*no event reports/,
    ],
    [
      'a status that nobody showed',
      [PENDING],
      [REPORTED_PENDING, REPORTED_FILLED],
      /filled after pending@20.*no answer explains/,
    ],
    [
      'a time that nobody showed',
      [PENDING],
      [{ ...REPORTED_PENDING, updatedAt: 11 }],
      /pending@10.*no event reports/,
    ],
    [
      'a change reported twice',
      [PENDING, FILLED],
      [REPORTED_PENDING, REPORTED_FILLED, REPORTED_FILLED],
      /no answer explains/,
    ],
    [
      'an update of which nothing was new',
      [PENDING, PENDING],
      [REPORTED_PENDING, { ...PENDING, from: 'pending' }],
      /no answer explains/,
    ],
    [
      'a record that nobody showed',
      [PENDING],
      [{ ...REPORTED_PENDING, more: { txHash: '0x2' } }],
      /no event reports/,
    ],
    [
      'a stale answer that was reported',
      [FILLED, PENDING],
      [
        { ...FILLED, from: null },
        { ...PENDING, from: 'filled', regression: true },
      ],
      /pending after filled@10.*no answer explains/,
    ],
    [
      'an unknown that was reported',
      [PENDING, UNKNOWN],
      [REPORTED_PENDING, { ...UNKNOWN, from: 'pending' }],
      /unknown after pending@null.*no answer explains/,
    ],
    [
      'a step back at a newer time that is not marked',
      [FILLED, { ...PENDING, updatedAt: 21 }],
      [
        { ...FILLED, from: null },
        { ...PENDING, updatedAt: 21, from: 'filled' },
      ],
      /pending@21.*no event reports/,
    ],
    [
      'sequences with a gap',
      [PENDING, FILLED],
      [REPORTED_PENDING, { ...REPORTED_FILLED, sequence: 3 }],
      /sequences 1, 3, expected 1 to 2/,
    ],
    ['a subject that nobody showed', [], [REPORTED_PENDING], /which no answer showed/],
  ];
  test.each(LIES)('%s', (_name, answers, reported, problem) => {
    expect(sums({ answers, reported }).problems).toEqual([expect.stringMatching(problem)]);
  });

  test('a stale answer that was reported as confirmed too early', () => {
    const answers = [FILLED, ...Array<ShownAnswer>(4).fill(PENDING)];
    const reported: Reported[] = [
      { ...FILLED, from: null },
      { ...PENDING, from: 'filled', regression: true },
    ];
    expect(sums({ answers, reported, rules: { confirmAfterMs: 20_000 } }).problems).toHaveLength(1);
    expect(sums({ answers, reported, rules: { confirmAfterMs: 5_000 } })).toMatchObject({
      problems: [],
      tolerated: { confirmed: 1 },
    });
  });

  test('a change that was not reported, however many answers were lost before it', () => {
    const rules = { outages: [{ fromMs: 0, untilMs: 1_000_500 }] };
    expect(sums({ answers: [PENDING, FILLED], reported: [], rules }).problems).toHaveLength(1);
    expect(sums({ answers: [PENDING, FILLED], reported: [{ ...FILLED, from: null }], rules })).toMatchObject({
      problems: [],
      tolerated: { lost: 1 },
    });
  });

  test('the final state unknown to the watcher', () => {
    const transitions = [{ subject: SUBJECT, from: 'pending', to: 'settled', at: 1 }];
    const showing = showings([PENDING]);
    const input = {
      transitions,
      showings: showing,
      events: events([REPORTED_PENDING]),
      isWatched: () => true,
    };
    expect(account(input)).toMatchObject({
      made: 1,
      merged: 1,
      problems: [],
      unsettled: [`${SUBJECT} ended as settled, but pending is known of it`],
    });
  });
});

describe('the account explains', () => {
  test('plain changes without any tolerance', () => {
    const { problems, tolerated } = sums({
      answers: [UNKNOWN, PENDING, PENDING, FILLED, SETTLED, SETTLED],
      reported: [REPORTED_PENDING, REPORTED_FILLED, REPORTED_SETTLED],
    });
    expect(problems).toEqual([]);
    expect(Object.values(tolerated).every((count) => count === 0)).toBe(true);
  });

  test('a status that only an overtaken answer showed, and only then', () => {
    const run = {
      answers: [PENDING, FILLED, SETTLED],
      reported: [REPORTED_PENDING, { ...SETTLED, from: 'pending' }],
    };
    expect(sums({ ...run, apartMs: 100 })).toMatchObject({ problems: [], tolerated: { overtaken: 1 } });
    expect(sums({ ...run, apartMs: 5_000 }).problems).toHaveLength(1);
  });

  test('an answer that was overtaken after long, of a subject that the watcher reports as slow', () => {
    const reported = [REPORTED_PENDING, { ...SETTLED, from: 'pending' }];
    const run = { answers: [PENDING, FILLED, SETTLED], reported, apartMs: 5_000 };
    const slackMsOf = (slow: string) => (subject: string) => (subject === slow ? 60_000 : 250);
    expect(sums({ ...run, slackMsOf: slackMsOf(SUBJECT) })).toMatchObject({
      problems: [],
      tolerated: { overtaken: 1 },
    });
    expect(sums({ ...run, slackMsOf: slackMsOf('intent:0x2') }).problems).toHaveLength(1);
  });

  test('an event without a previous status, for that was history', () => {
    const run = { answers: [PENDING, FILLED], reported: [{ ...REPORTED_FILLED }] };
    expect(sums({ ...run, rules: { historyBefore: 11 } })).toMatchObject({
      problems: [],
      tolerated: { history: 1 },
    });
    expect(sums({ ...run, rules: { historyBefore: 10 } }).problems).toHaveLength(1);
  });

  test('stale answers without an event, and events of the clock', () => {
    const reported: Reported[] = [
      { ...FILLED, from: null },
      { ...FILLED, from: 'filled', changes: [] },
    ];
    expect(sums({ answers: [FILLED, PENDING, UNKNOWN, FILLED], reported })).toMatchObject({
      problems: [],
      tolerated: { stale: 2, clock: 1 },
    });
  });

  test('an event of the clock about a state that the upstream has not shown yet', () => {
    const ranOut: Reported = { ...UNKNOWN, from: 'unknown', changes: [] };
    const answers = [UNKNOWN, FILLED, UNKNOWN, FILLED];
    expect(sums({ answers, reported: [ranOut, { ...FILLED, from: 'unknown' }] })).toMatchObject({
      problems: [],
      tolerated: { clock: 1 },
    });
    // The event of the clock has another status than the shown one.
    expect(sums({ answers, reported: [{ ...FILLED, from: null }, ranOut] }).problems).toHaveLength(1);
    expect(
      sums({ answers, reported: [{ ...ranOut, status: 'pending', from: 'pending' }] }).problems,
    ).toHaveLength(1);
    expect(sums({ answers, reported: [ranOut, { ...FILLED, from: null }] }).problems).toHaveLength(1);
  });

  test('a return to a former state at another time', () => {
    const review: ShownAnswer = { status: 'awaiting_review', updatedAt: 30 };
    const answers = [SETTLED, review, { ...review, updatedAt: 31 }, { ...SETTLED, updatedAt: 31 }];
    const reported: Reported[] = [
      { ...SETTLED, from: null },
      { ...review, from: 'settled' },
      { ...SETTLED, updatedAt: 31, from: 'awaiting_review' },
    ];
    expect(sums({ answers, reported }).problems).toEqual([]);
    const atOneTime = {
      answers: [SETTLED, review, review, SETTLED],
      reported: reported.with(2, { ...SETTLED, from: review.status }),
    };
    expect(sums(atOneTime).problems).toHaveLength(1);
  });

  test('a return, without a time, to a status of an earlier time, once polls have confirmed it', () => {
    const review: ShownAnswer = { status: 'awaiting_review', updatedAt: 20 };
    const back: ShownAnswer = { status: review.status };
    const rules = { confirmAfterMs: 2_000 };
    const reported: Reported[] = [
      { ...review, from: null },
      { ...SETTLED, from: review.status },
      { ...back, from: 'settled', regression: true },
    ];
    const answers = [review, SETTLED, back, back];
    expect(sums({ answers, reported, rules })).toMatchObject({ problems: [], tolerated: { confirmed: 1 } });
    expect(sums({ answers: answers.slice(0, 3), reported, rules }).problems).toHaveLength(1);
    const unseen: Reported[] = [{ ...SETTLED, from: null }, ...reported.slice(2)];
    expect(sums({ answers: [SETTLED, back, back], reported: unseen, rules }).problems).toHaveLength(1);
  });

  test('a value that has gone back beside one that stays, once polls have confirmed it', () => {
    const of = (step: number, score: number): ShownAnswer => ({ ...FILLED, more: { step, score } });
    const [first, second, third] = [of(1, 1), of(2, 2), of(1, 2)];
    const reported: Reported[] = [
      { ...first, from: null },
      { ...second, from: 'filled', changes: ['step', 'score'] },
      { ...third, from: 'filled', changes: ['step'], regression: true },
    ];
    const rules = { confirmAfterMs: 2_000 };
    expect(sums({ answers: [first, second, third, third], reported, rules })).toMatchObject({
      problems: [],
      tolerated: { confirmed: 1 },
    });
    expect(sums({ answers: [first, second, third], reported, rules }).problems).toHaveLength(1);
    expect(sums({ answers: [first, second, second], reported, rules }).problems).toHaveLength(1);
  });

  test('an update that showed more', () => {
    const more = { destinationTx: '0x3' };
    const run = {
      answers: [FILLED, { ...FILLED, more }],
      reported: [
        { ...FILLED, from: null },
        { ...FILLED, more, from: 'filled' },
      ],
    };
    expect(sums(run)).toMatchObject({ problems: [], updates: 1 });
  });
});
