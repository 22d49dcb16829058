import { describe, expect, test } from 'vitest';
import { lowerEdge } from '../../src/domain/cadence/ages.ts';
import { arrivalsPerSecond, withArrivals } from '../../src/domain/cadence/arrivals.ts';
import { clampAt } from '../../src/domain/cadence/clamp.ts';
import { isHeavy, weightAt } from '../../src/domain/cadence/decay.ts';
import { expectedHazard, quantileSeconds } from '../../src/domain/cadence/hazard.ts';
import { emptyTally, increments, learnedHazard, withIncrements } from '../../src/domain/cadence/learning.ts';
import { chooseListings, type UnderWay } from '../../src/domain/cadence/listing-choice.ts';
import { firstPrice, type Measured, type PriceState, steer } from '../../src/domain/cadence/price.ts';
import { waitSeconds } from '../../src/domain/cadence/wait.ts';
import { logNormal, randomStream } from '../../src/sandbox/random.ts';

const TRUTH = { medianSeconds: 25, sigma: 0.5, neverShare: 0.03 };
const LIFETIME_SECONDS = 3_600;

/** Watches transfers that go by the truth, at an interval, from a prior that does not know it. */
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

  test('an end that fell between two looks is counted at the ages where it is likely', () => {
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

  test('what was seen long ago counts for less than what is seen now', () => {
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
    expect(isHeavy(weightAt(63_000, clock))).toBe(false);
    expect(isHeavy(weightAt(64_000, clock))).toBe(true);
    expect(isHeavy(weightAt(1e12, clock))).toBe(true);
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

describe('the wait of a pending transfer', () => {
  const limits = { leastSeconds: 0.5, mostSeconds: 30, agedSeconds: 600 };

  function wait(ageSeconds: number, price: number, medianSeconds = 25): number {
    const curve = expectedHazard({ ...TRUTH, medianSeconds });
    const clamp = clampAt(limits, { ageSeconds, price });
    return waitSeconds({
      terms: [{ curve, ageSeconds, weight: 1, deadlineSeconds: LIFETIME_SECONDS }],
      arrivals: 0,
      price,
      clamp,
    });
  }

  test('is long at birth, short when a fill is likely, long again when it has not come', () => {
    expect(wait(0, 0.1)).toBeGreaterThan(8);
    expect(wait(25, 0.1)).toBeLessThan(3);
    expect(wait(300, 0.1)).toBe(30);
  });

  test('is never beyond 30 s while young, however wrong the estimate', () => {
    expect(wait(0, 1, 100_000)).toBe(30);
    expect(wait(200, 1, 100_000)).toBe(30);
    expect(wait(600, 1, 100_000)).toBe(60);
  });

  test('ends with a look just after the deadline', () => {
    expect(wait(LIFETIME_SECONDS - 20, 1)).toBe(20.5);
  });

  test('is half as long where a second of delay is worth four times as much', () => {
    const curve = expectedHazard(TRUTH).map(() => 0.01);
    const at = (weight: number): number =>
      waitSeconds({
        terms: [{ curve, ageSeconds: 5, weight, deadlineSeconds: null }],
        arrivals: 0,
        price: 1,
        clamp: { leastSeconds: 0.1, mostSeconds: 600 },
      });
    expect(at(1) / at(4)).toBeCloseTo(2, 9);
  });
});

describe('the price', () => {
  const BUDGET_PER_SECOND = 5;

  /** Steers once a second, while everybody asks as the price has it, as far as the budget goes. */
  function steered(from: PriceState, options: { seconds: number } & Partial<Measured>): PriceState {
    const { seconds, ...change } = options;
    const demand = change.demand ?? 2;
    let state = from;
    for (let second = 0; second < seconds; second++) {
      state = steer(state, {
        nowMs: state.atMs + 1_000,
        budgetPerSecond: BUDGET_PER_SECOND,
        demand,
        planned: 50,
        served: Math.min(BUDGET_PER_SECOND, demand / Math.sqrt(state.price)),
        unplanned: 0,
        behindSeconds: 0.5,
        pushedBack: false,
        ...change,
      });
    }
    return state;
  }

  test('has settled 30 s after demand rose tenfold', () => {
    const before = steered(firstPrice(0), { seconds: 60 });
    const soon = steered(before, { seconds: 30, demand: 20 });
    expect(soon.price / before.price).toBeGreaterThan(80);
    expect(soon.price / before.price).toBeLessThan(125);
  });

  test('rises for a while after the upstream asked to slow down, more for each time, and comes back', () => {
    const before = steered(firstPrice(0), { seconds: 60 });
    const once = steered(before, { seconds: 1, pushedBack: true, served: 0 });
    const twice = steered(once, { seconds: 1, pushedBack: true, served: 0 });
    expect(once.price / before.price).toBeGreaterThan(3);
    expect(twice.price / once.price).toBeGreaterThan(3);
    expect(steered(twice, { seconds: 400 }).price / before.price).toBeCloseTo(1, 1);
  });

  test('rises while a queue stays behind, until it does not', () => {
    const before = steered(firstPrice(0), { seconds: 60 });
    const behind = steered(before, { seconds: 60, behindSeconds: 20 });
    expect(behind.price).toBeGreaterThan(before.price * 1.1);
  });

  test('is not steered twice for one moment', () => {
    const state = steered(firstPrice(0), { seconds: 5 });
    const again = {
      budgetPerSecond: BUDGET_PER_SECOND,
      demand: 9,
      planned: 9,
      served: 9,
      unplanned: 9,
      behindSeconds: 9,
    };
    expect(steer(state, { ...again, pushedBack: true, nowMs: state.atMs })).toEqual(state);
  });
});

describe('the choice of listings', () => {
  const pending: UnderWay = {
    status: 'pending',
    hazard: 0.03,
    weight: 1,
    clamp: { leastSeconds: 0.5, mostSeconds: 30 },
    onHead: true,
  };
  const setting = { price: 1, arrivals: [], narrows: true };
  const deep = (count: number): UnderWay[] =>
    Array.from({ length: count }, () => ({ ...pending, onHead: false, hazard: 0.001 }));

  test('watches what the head shows by the head', () => {
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

  test('looks each up by itself where the upstream does not narrow, or no page would show more', () => {
    const members = deep(20);
    expect(chooseListings(members, { ...setting, narrows: false })).toEqual({
      listings: [],
      single: members,
    });
    expect(chooseListings(deep(1), setting)).toEqual({ listings: [], single: deep(1) });
  });

  test('does not narrow where the look-ups of what leaves would cost more than the page saves', () => {
    const members = Array.from({ length: 2 }, () => ({ ...pending, onHead: false, hazard: 0.1 }));
    const cheap = chooseListings(members, { ...setting, price: 0.01 });
    const dear = chooseListings(members, { ...setting, price: 10 });
    expect(cheap.single).toHaveLength(0);
    expect(dear.single).toEqual(members);
  });

  test('keeps the head for transfers that are still to come', () => {
    const arrivals = [
      { listing: 'head' as const, rate: 0.01, fillRate: 0, clamp: { leastSeconds: 1, mostSeconds: 60 } },
    ];
    expect(chooseListings([], { ...setting, arrivals })).toEqual({
      listings: [{ listing: 'head', members: [] }],
      single: [],
    });
  });

  test('watches a single one by the listing in which new transfers are awaited anyway', () => {
    const clamp = { leastSeconds: 1, mostSeconds: 30 };
    const arrivals = [{ listing: 'pending' as const, rate: 0.01, fillRate: 0, clamp }];
    const members = deep(1);
    expect(chooseListings(members, { ...setting, arrivals })).toEqual({
      listings: [{ listing: 'pending', members }],
      single: [],
    });
  });

  test('does not let a page show more than it can', () => {
    const members = deep(60);
    const { listings, single } = chooseListings(members, setting);
    expect(listings[0]?.members).toHaveLength(50);
    expect(single).toEqual(members.slice(0, 10));
  });
});
