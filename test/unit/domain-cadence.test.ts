import { describe, expect, test } from 'vitest';
import { logNormal, randomStream } from '../../sandbox/world/random.ts';
import {
  arrivalsPerSecond,
  LARGEST_WEIGHT,
  weightAt,
  withArrivals,
} from '../../src/domain/cadence/arrivals.ts';
import { AGE_BINS, expectedHazard, lowerEdge, quantileSeconds } from '../../src/domain/cadence/hazard.ts';
import { emptyTally, increments, learnedHazard } from '../../src/domain/cadence/learning.ts';
import {
  chooseListings,
  LONGEST_WAIT_SECONDS,
  limitsAt,
  tightest,
  type UnderWay,
  virtualSeconds,
  waitSeconds,
} from '../../src/domain/cadence/wait.ts';
import { arrivalRule, watchRules } from '../../src/domain/cadence/watch-rules.ts';
import { withIncrements } from '../support/tally.ts';

const TRUTH = { medianSeconds: 25, sigma: 0.5, neverShare: 0.03 };
const LIFETIME_SECONDS = 3_600;

/** Polls transfers that follow the truth, at an interval, from a prior that does not know it. */
function learn(factor: number, options: { transfers: number; everySeconds: number }) {
  const prior = { medianSeconds: factor * TRUTH.medianSeconds, sigma: 0.8, neverShare: 0.01 };
  const random = randomStream('learn', factor);
  let curve = expectedHazard(prior);
  let tally = emptyTally();
  for (let count = 0; count < options.transfers; count++) {
    const end =
      random() < TRUTH.neverShare ? LIFETIME_SECONDS : logNormal(random, { median: 25, sigma: 0.5 });
    let age = 0;
    while (age < end) {
      const toSeconds = Math.min(LIFETIME_SECONDS, age + options.everySeconds);
      const ended = toSeconds >= end && end < LIFETIME_SECONDS;
      tally = withIncrements(tally, increments(curve, { fromSeconds: age, toSeconds, ended }), 1);
      age = toSeconds;
    }
    if (count % 20 === 0) curve = learnedHazard(prior, tally, 1);
  }
  return learnedHazard(prior, tally, 1);
}

describe('learning', () => {
  test.each([
    0.5, 1, 2,
  ])('finds the truth from a median off by a factor of %d, though it only sees intervals', (factor) => {
    const curve = learn(factor, { transfers: 1_000, everySeconds: 10 });
    expect(quantileSeconds(curve, 0.5) / TRUTH.medianSeconds).toBeGreaterThan(0.9);
    expect(quantileSeconds(curve, 0.5) / TRUTH.medianSeconds).toBeLessThan(1.1);
    const p90 = quantileSeconds(expectedHazard(TRUTH), 0.9);
    expect(quantileSeconds(curve, 0.9) / p90).toBeGreaterThan(0.8);
    expect(quantileSeconds(curve, 0.9) / p90).toBeLessThan(1.25);
  });

  test('an end that fell between two polls is counted at the ages where it is likely', () => {
    const curve = expectedHazard({ medianSeconds: 25, sigma: 0.1, neverShare: 0.01 });
    const added = increments(curve, { fromSeconds: 0, toSeconds: 1_000, ended: true });
    const near = added.filter(({ bin }) => lowerEdge(bin) > 15 && lowerEdge(bin) < 35);
    expect(near.reduce((sum, { ended }) => sum + ended, 0)).toBeGreaterThan(0.95);
    expect(added.reduce((sum, { watchedSeconds }) => sum + watchedSeconds, 0)).toBeLessThan(40);
  });

  test('a few observations move the expectation a little', () => {
    const expected = quantileSeconds(expectedHazard({ ...TRUTH, medianSeconds: 50, sigma: 0.8 }), 0.5);
    const few = quantileSeconds(learn(2, { transfers: 3, everySeconds: 10 }), 0.5);
    expect(few / expected).toBeGreaterThan(0.75);
    expect(few / expected).toBeLessThan(1.05);
  });

  test('an old observation counts for less than a new one', () => {
    const clock = { landmarkMs: 0, halfLifeMs: 1_000 };
    const expectation = { medianSeconds: 100, sigma: 0.8, neverShare: 0.01 };
    const curve = expectedHazard(expectation);
    const soon = increments(curve, { fromSeconds: 9, toSeconds: 10, ended: true });
    let tally = emptyTally();
    for (let count = 0; count < 50; count++) tally = withIncrements(tally, soon, weightAt(0, clock));
    const median = (atMs: number): number =>
      quantileSeconds(learnedHazard(expectation, tally, weightAt(atMs, clock)), 0.5);
    expect(median(0)).toBeLessThan(15);
    expect(median(1_000)).toBeGreaterThan(median(0));
    expect(median(20_000)).toBeGreaterThan(90);
  });

  test('a sum is brought to a new landmark long before its weight runs out of numbers', () => {
    const clock = { landmarkMs: 0, halfLifeMs: 1_000 };
    expect(weightAt(63_000, clock)).toBeLessThan(LARGEST_WEIGHT);
    expect(weightAt(64_000, clock)).toBeGreaterThanOrEqual(LARGEST_WEIGHT);
    expect(weightAt(1e12, clock)).toBeGreaterThanOrEqual(LARGEST_WEIGHT);
  });

  test('a wallet with a transfer a minute is expected to have the next within about one', () => {
    const day = withArrivals(
      { seen: 0, watchedSeconds: 0, atMs: 0 },
      { seen: 1_440, watchedSeconds: 86_400, nowMs: 5_000 },
    );
    expect(1 / arrivalsPerSecond(day, { usualPerSecond: 1e-4, nowMs: 5_000 })).toBeGreaterThan(59);
    expect(1 / arrivalsPerSecond(day, { usualPerSecond: 1e-4, nowMs: 5_000 })).toBeLessThan(70);
  });

  test('a wallet that has fallen silent is expected to stay so, the more the longer', () => {
    const busy = withArrivals(
      { seen: 0, watchedSeconds: 0, atMs: 0 },
      { seen: 1_440, watchedSeconds: 86_400, nowMs: 0 },
    );
    const silent = withArrivals(busy, { seen: 0, watchedSeconds: 86_400, nowMs: 86_400_000 });
    expect(1 / arrivalsPerSecond(silent, { usualPerSecond: 1e-4, nowMs: 86_400_000 })).toBeGreaterThan(170);
    const busyAt = (nowMs: number) => arrivalsPerSecond(busy, { usualPerSecond: 1e-4, nowMs });
    expect(busyAt(20 * 86_400_000)).toBeLessThan(busyAt(0));
  });
});

const PENDING = { leastSeconds: 1, mostSeconds: 30, agedSeconds: 600 };

describe('the wait of a pending transfer', () => {
  function wait(ageSeconds: number, price: number): number {
    return waitSeconds({
      terms: [{ curve: expectedHazard(TRUTH), ageSeconds, weight: 1 }],
      constant: 0,
      price,
    });
  }

  test('is long at birth, short when a fill is likely, long again when it has not come', () => {
    expect(wait(0, 0.1)).toBeGreaterThan(8);
    expect(wait(25, 0.1)).toBeLessThan(3);
    expect(wait(300, 0.1)).toBeGreaterThan(30);
  });

  test('begins with its stage, where that has not begun at the last poll', () => {
    expect(wait(-100, 0.1)).toBeCloseTo(100 + wait(0, 0.1), 6);
  });

  test('ends where nothing is planned further ahead', () => {
    expect(waitSeconds({ terms: [], constant: 0, price: 1 })).toBe(LONGEST_WAIT_SECONDS);
    expect(wait(100_000, 1e9)).toBe(LONGEST_WAIT_SECONDS);
  });

  test('is half as long where a second of delay is worth four times as much', () => {
    const at = (weight: number): number =>
      waitSeconds({
        terms: [{ curve: AGE_BINS.map(() => 0.01), ageSeconds: 5, weight }],
        constant: 0,
        price: 1,
      });
    expect(at(1) / at(4)).toBeCloseTo(2, 9);
  });

  test('in virtual time equals the wait at a price of 1, where the hazard does not change', () => {
    for (const price of [0.01, 1, 9]) {
      expect(virtualSeconds({ terms: [], constant: 0.02, price })).toBeCloseTo(10, 9);
      expect(waitSeconds({ terms: [], constant: 0.02, price })).toBeCloseTo(10 * Math.sqrt(price), 9);
    }
  });

  test('in virtual time reflects the near future at a low price, and the far one at a high price', () => {
    // A fill is likely in 20 s. While requests are cheap that is a long time, and no earlier poll is worth one.
    const virtual = (price: number): number =>
      virtualSeconds({
        terms: [{ curve: expectedHazard(TRUTH), ageSeconds: 5, weight: 1 }],
        constant: 0,
        price,
      });
    expect(virtual(0.001)).toBeGreaterThan(3 * virtual(10));
  });
});

describe('the limits of a wait', () => {
  test('grow to a tenth of the age, up to those of old subjects', () => {
    expect(limitsAt(PENDING, 0)).toEqual({ leastSeconds: 1, mostSeconds: 30 });
    expect(limitsAt(PENDING, 300)).toEqual({ leastSeconds: 1, mostSeconds: 30 });
    expect(limitsAt(PENDING, 600)).toEqual({ leastSeconds: 1, mostSeconds: 60 });
    expect(limitsAt(PENDING, 1e6)).toEqual({ leastSeconds: 1, mostSeconds: 600 });
  });

  test('of several together are those of the most pressing', () => {
    const settling = { leastSeconds: 5, mostSeconds: 600 };
    expect(tightest([settling, limitsAt(PENDING, 0)])).toEqual({ leastSeconds: 1, mostSeconds: 30 });
    expect(tightest([settling])).toEqual(settling);
  });

  test('of every stage follow from the two of the config', () => {
    const rules = watchRules({ shortestSeconds: 2, longestSeconds: 60 });
    expect(rules.pending.limits).toEqual({ leastSeconds: 2, mostSeconds: 60, agedSeconds: 600 });
    expect(rules.gasless.limits).toEqual(rules.pending.limits);
    expect(rules.vault.limits).toEqual(rules.pending.limits);
    expect(rules.filled.limits).toEqual({ leastSeconds: 10, mostSeconds: 600, agedSeconds: 3_600 });
    expect(arrivalRule({ shortestSeconds: 2, longestSeconds: 60 }).limits).toEqual({
      leastSeconds: 2,
      mostSeconds: 60,
    });
  });

  test('can be stored also where the shortest wait is an hour: nothing is overdue before it is allowed', () => {
    const { filled } = watchRules({ shortestSeconds: 3_600, longestSeconds: 3_600 });
    expect(limitsAt(filled.limits, 0)).toEqual({ leastSeconds: 7_200, mostSeconds: 7_200 });
  });
});

describe('the choice of listings', () => {
  const pending: UnderWay = {
    status: 'pending',
    hazard: 0.03,
    weight: 1,
    limits: { leastSeconds: 0.5, mostSeconds: 30 },
    onHead: true,
  };
  const setting = { price: 1, arrivals: [], narrows: true };
  const deep = (count: number): UnderWay[] =>
    Array.from({ length: count }, () => ({ ...pending, onHead: false, hazard: 0.001 }));

  test('watches transfers on the head by the head', () => {
    const members = [{ ...pending }, { ...pending }, { ...pending }];
    expect(chooseListings(members, setting)).toEqual({
      listings: [{ listing: 'head', members }],
      single: [],
    });
  });

  test('watches many that the head does not show by the listing of their status', () => {
    const members = deep(20);
    expect(chooseListings(members, setting)).toEqual({
      listings: [{ listing: 'pending', members }],
      single: [],
    });
  });

  test('polls each by itself where the upstream does not narrow, or no page would show more', () => {
    const members = deep(20);
    expect(chooseListings(members, { ...setting, narrows: false })).toEqual({
      listings: [],
      single: members,
    });
    expect(chooseListings(deep(1), setting)).toEqual({ listings: [], single: deep(1) });
  });

  test('does not narrow where the polls of departing transfers would cost more than the page saves', () => {
    const members = Array.from({ length: 2 }, () => ({ ...pending, onHead: false, hazard: 0.1 }));
    const cheap = chooseListings(members, { ...setting, price: 0.01 });
    const dear = chooseListings(members, { ...setting, price: 10 });
    expect(cheap.single).toHaveLength(0);
    expect(dear.single).toEqual(members);
  });

  test('retains the head for transfers that are still to come', () => {
    const arrivals = [
      { listing: 'head' as const, rate: 0.01, fillRate: 0, limits: { leastSeconds: 1, mostSeconds: 60 } },
    ];
    expect(chooseListings([], { ...setting, arrivals })).toEqual({
      listings: [{ listing: 'head', members: [] }],
      single: [],
    });
  });

  test('watches a single one by the listing in which new transfers are awaited anyway', () => {
    const limits = { leastSeconds: 1, mostSeconds: 30 };
    const arrivals = [{ listing: 'pending' as const, rate: 0.01, fillRate: 0, limits }];
    const members = deep(1);
    expect(chooseListings(members, { ...setting, arrivals })).toEqual({
      listings: [{ listing: 'pending', members }],
      single: [],
    });
  });

  test('watches more than a page shows by the pages of their status, if the head shows the newest ones too', () => {
    const members = [...deep(60), ...deep(50).map((member) => ({ ...member, onHead: true }))];
    expect(chooseListings(members, setting)).toEqual({
      listings: [{ listing: 'pending', members }],
      single: [],
    });
  });

  test('polls the oldest of few by themselves where a further page would cost more', () => {
    const members = [...deep(1), ...deep(50).map((member) => ({ ...member, onHead: true }))];
    const { listings, single } = chooseListings(members, setting);
    expect(listings.map(({ listing }) => listing)).toEqual(['head']);
    expect(single).toEqual(members.slice(0, 1));
  });
});
