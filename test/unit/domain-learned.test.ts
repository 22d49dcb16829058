import { describe, expect, test } from 'vitest';
import { AGE_BINS, binOf, expectedHazard } from '../../src/domain/cadence/hazard.ts';
import { knowledgeOf, LEARNED_HALF_LIFE_MS, type StoredTally } from '../../src/domain/cadence/knowledge.ts';
import { observed } from '../../src/domain/cadence/learning.ts';
import { ARRIVAL_RULE, WATCH_RULES } from '../../src/domain/cadence/watch-rules.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Snapshot } from '../../src/domain/subjects/record.ts';
import { intentId, quoteId } from '../../src/domain/subjects/subject.ts';
import { routeName } from '../../src/domain/transfers/transfer.ts';

const NOW_MS = 1_763_638_260_000;
const LEG = { chainId: 8453, amount: '1' };

const SNAPSHOT: Snapshot = {
  version: 1,
  sequence: 1,
  commit: 1,
  status: 'pending',
  updatedAt: NOW_MS / 1_000 - 60,
  record: { sourceTx: LEG, destinationTx: { ...LEG, chainId: 10 } },
  observedAtMs: NOW_MS - 50_000,
  changedAtMs: NOW_MS - 50_000,
  pendingSince: null,
  flags: [],
  unconfirmed: null,
  ahead: null,
  former: [],
  emitted: [],
  epoch: 1,
  reported: true,
};

describe('the route of a record', () => {
  test.for<[JsonObject, string]>([
    [{ sourceTx: LEG, destinationTx: { chainId: '10', amount: '1' } }, '8453:10'],
    [{ steps: [{ from: LEG, to: { chainId: 1, amount: '1' } }] }, '8453:1'],
    [{ sourceTx: LEG }, '8453:*'],
    [{ sourceChainId: 8453, amount: '1' }, '8453:*'],
    [{ destinationTx: LEG }, '*'],
    [{ sourceTx: { ...LEG, chainId: 'a:b' } }, '*'],
    [{}, '*'],
  ])('%j is %s', ([record, route]) => {
    expect(routeName(record)).toBe(route);
  });
});

describe('the observation of a poll', () => {
  const poll = {
    subject: intentId('0xaa'),
    before: SNAPSHOT,
    seenAtMs: NOW_MS - 5_000,
    status: 'pending',
    nowMs: NOW_MS,
  };

  test('is the time that a stage has been open since the poll before', () => {
    const route = '8453:10';
    // The upstream's second began 60 s ago: the change was half a second later, on average.
    const open = { fromSeconds: 54.5, toSeconds: 59.5, ended: false };
    expect(observed(poll)).toEqual({ route, watch: 'pending', interval: open, failed: false });
    expect(observed({ ...poll, seenAtMs: null })?.interval.fromSeconds).toBe(9.5);
    expect(observed({ ...poll, seenAtMs: NOW_MS - 55_000 })?.interval.fromSeconds).toBe(9.5);
  });

  test.for([
    ['filled', true],
    ['FILLED', true],
    ['settled', true],
    ['expired', false],
    ['refundable', false],
    ['failed', false],
  ] as const)('includes the end, if the expected status came: %s is %s', ([status, ended]) => {
    expect(observed({ ...poll, status })).toMatchObject({ interval: { ended }, failed: !ended });
  });

  test('is nothing where the stage has no model, is unconfirmed, went back, or was seen now', () => {
    expect(observed({ ...poll, subject: quoteId('q'), before: { ...SNAPSHOT, status: 'active' } })).toBe(
      null,
    );
    const unconfirmed = { key: 'x', sinceMs: NOW_MS };
    expect(observed({ ...poll, before: { ...SNAPSHOT, unconfirmed } })).toBe(null);
    expect(observed({ ...poll, before: { ...SNAPSHOT, status: 'filled' } })).toBe(null);
    expect(observed({ ...poll, seenAtMs: NOW_MS })).toBe(null);
  });
});

describe('the learned model of a route', () => {
  const rules = WATCH_RULES;
  const tally = (route: string, ends: number, landmarkMs = NOW_MS): StoredTally => {
    const zeros = AGE_BINS.map(() => 0);
    const bin = binOf(10);
    return {
      route,
      statistic: 'pending',
      landmarkMs,
      tally: { ended: zeros.with(bin, ends), watchedSeconds: zeros.with(bin, ends * 2) },
    };
  };
  const rate = (stored: StoredTally[], route: string, nowMs = NOW_MS) =>
    knowledgeOf(stored, { rules, arrivals: ARRIVAL_RULE, nowMs }).curve(route, 'pending')[binOf(10)] ?? 0;
  const expected = expectedHazard(rules.pending.expectation)[binOf(10)] ?? 0;

  test('is the expectation where nothing was seen anywhere', () => {
    expect(rate([], '1:2')).toBe(expected);
  });

  test('is that of all routes, until 20 ends were seen on this one', () => {
    const all = tally('*', 1_000);
    expect(rate([all, tally('1:2', 0)], '3:4')).toBeGreaterThan(5 * expected);
    expect(rate([all, tally('1:2', 19)], '1:2')).toBe(rate([all], '3:4'));
    expect(rate([all, tally('1:2', 21)], '1:2')).toBeLessThan(rate([all], '3:4'));
  });

  test('fades: an observation a day ago counts half', () => {
    const stored = [tally('1:2', 100)];
    const later = knowledgeOf(stored, {
      rules,
      arrivals: ARRIVAL_RULE,
      nowMs: NOW_MS + LEARNED_HALF_LIFE_MS,
    });
    expect(later.stages[0]?.observations).toBeCloseTo(50);
    expect(rate(stored, '1:2', NOW_MS + LEARNED_HALF_LIFE_MS)).toBeLessThan(rate(stored, '1:2'));
  });

  test('states the rate of new transfers at a usual wallet, the more surely the more were seen', () => {
    const zeros = AGE_BINS.map(() => 0);
    const usual = (seen: number, watchedSeconds: number) =>
      knowledgeOf(
        [
          {
            route: '*',
            statistic: 'arrivals',
            landmarkMs: NOW_MS,
            tally: { ended: zeros.with(0, seen), watchedSeconds: zeros.with(0, watchedSeconds) },
          },
        ],
        { rules, arrivals: ARRIVAL_RULE, nowMs: NOW_MS },
      ).arrivals.usualPerSecond;
    expect(usual(0, 0)).toBeCloseTo(1 / ARRIVAL_RULE.everySeconds);
    expect(1 / usual(1_000, 100_000)).toBeGreaterThan(95);
    expect(1 / usual(1_000, 100_000)).toBeLessThan(110);
    expect(usual(0, 1e6)).toBeLessThan(1 / ARRIVAL_RULE.everySeconds);
  });

  test('is reported as times once 20 ends were seen anywhere: of a route as of all, until more was seen of it', () => {
    const rateOf = (stored: StoredTally[], route: string): number | undefined =>
      knowledgeOf(stored, { rules, arrivals: ARRIVAL_RULE, nowMs: NOW_MS }).ends(route, 'pending')?.usual[
        binOf(10)
      ];
    expect(rateOf([tally('*', 19)], '1:2')).toBe(undefined);
    const all = tally('*', 1_000);
    const usual = rateOf([all], '*') ?? 0;
    expect(rateOf([all], '1:2')).toBeCloseTo(usual, 9);
    const quick = (ends: number): StoredTally => {
      const { tally: seen, ...same } = tally('1:2', ends);
      return { ...same, tally: { ...seen, watchedSeconds: seen.watchedSeconds.map((one) => one / 2) } };
    };
    const [few = 0, many = 0] = [5, 500].map((ends) => rateOf([all, quick(ends)], '1:2'));
    expect(few).toBeGreaterThan(usual);
    expect(many).toBeGreaterThan(few);
    expect(many / usual).toBeGreaterThan(1.8);
  });

  test('has a 99th percentile once 50 ends were seen', () => {
    const p99 = (ends: number) =>
      knowledgeOf([tally('1:2', ends)], { rules, arrivals: ARRIVAL_RULE, nowMs: NOW_MS }).p99Seconds;
    expect(p99(49)('1:2', 'pending')).toBe(null);
    expect(p99(51)('1:2', 'pending')).toBeGreaterThan(10);
    expect(p99(51)('1:2', 'filled')).toBe(null);
  });
});
