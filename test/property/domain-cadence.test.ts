import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AGE_BINS, binOf, lowerEdge, upperEdge } from '../../src/domain/cadence/ages.ts';
import { arrivalsPerSecond, withArrivals } from '../../src/domain/cadence/arrivals.ts';
import { clampAt } from '../../src/domain/cadence/clamp.ts';
import {
  type Expectation,
  expectedHazard,
  quantileSeconds,
  rateAt,
  stillOpen,
} from '../../src/domain/cadence/hazard.ts';
import {
  emptyTally,
  increments,
  learnedHazard,
  type Tally,
  withIncrements,
} from '../../src/domain/cadence/learning.ts';
import { LISTINGS, type Listing } from '../../src/domain/cadence/listing.ts';
import { chooseListings, type UnderWay } from '../../src/domain/cadence/listing-choice.ts';
import { firstPrice, plannedDemand, steer } from '../../src/domain/cadence/price.ts';
import { type Look, type Term, waitSeconds } from '../../src/domain/cadence/wait.ts';

const seconds = fc.double({ min: 0, max: 1e7, noNaN: true });
const expectations: fc.Arbitrary<Expectation> = fc.record({
  medianSeconds: fc.double({ min: 1e-3, max: 1e6, noNaN: true }),
  sigma: fc.double({ min: 0.05, max: 5, noNaN: true }),
  neverShare: fc.double({ min: 0, max: 1, noNaN: true }),
});
const prices = fc.double({ min: 1e-3, max: 1e6, noNaN: true });
const terms: fc.Arbitrary<Term> = fc.record({
  curve: expectations.map(expectedHazard),
  ageSeconds: fc.double({ min: -1e3, max: 1e6, noNaN: true }),
  weight: fc.double({ min: 0, max: 10, noNaN: true }),
  deadlineSeconds: fc.option(seconds),
});
const looks: fc.Arbitrary<Look> = fc.record({
  terms: fc.array(terms, { maxLength: 8 }),
  arrivals: fc.double({ min: 0, max: 1, noNaN: true }),
  price: prices,
  clamp: fc.constant({ leastSeconds: 0.5, mostSeconds: 60 }),
});

/** `∫ sqrt(Σ w·h / 2c)` from the last look on, by many small steps instead of by bins. */
function looked(look: Look, waited: number): number {
  const steps = 20_000;
  let sum = 0;
  for (let index = 0; index < steps; index++) {
    const at = ((index + 0.5) * waited) / steps;
    const hazard = look.terms.reduce(
      (all, { curve, ageSeconds, weight }) => all + weight * rateAt(curve, ageSeconds + at),
      look.arrivals,
    );
    sum += (Math.sqrt(hazard / (2 * look.price)) * waited) / steps;
  }
  return sum;
}

describe('the wait', () => {
  test('is where the integral of the rate reaches 1, unless clamped', () => {
    fc.assert(
      fc.property(looks, (look) => {
        const wait = waitSeconds({
          ...look,
          terms: look.terms.map((term) => ({ ...term, deadlineSeconds: null })),
        });
        const sum = looked(look, wait);
        if (wait === look.clamp.mostSeconds) expect(sum).toBeLessThanOrEqual(1.001);
        else if (wait === look.clamp.leastSeconds) expect(sum).toBeGreaterThanOrEqual(0.999);
        else expect(sum).toBeCloseTo(1, 2);
      }),
      { numRuns: 60 },
    );
  });

  test('is a number within its clamp, whatever it is asked', () => {
    fc.assert(
      fc.property(looks, (look) => {
        const wait = waitSeconds(look);
        expect(wait).toBeGreaterThanOrEqual(look.clamp.leastSeconds);
        expect(wait).toBeLessThanOrEqual(look.clamp.mostSeconds);
      }),
      { numRuns: 500 },
    );
  });

  test('never shortens as the price rises, and never grows with one more thing to see', () => {
    fc.assert(
      fc.property(looks, terms, prices, (look, term, price) => {
        const wait = waitSeconds(look);
        const dearer = waitSeconds({ ...look, price: look.price + price });
        const more = waitSeconds({ ...look, terms: [...look.terms, term] });
        expect(dearer).toBeGreaterThanOrEqual(wait - 1e-6);
        expect(more).toBeLessThanOrEqual(wait + 1e-6);
      }),
      { numRuns: 500 },
    );
  });

  test('does not run past a deadline, beyond the moment it takes to show', () => {
    fc.assert(
      fc.property(looks, (look) => {
        const wait = waitSeconds(look);
        for (const { ageSeconds, deadlineSeconds } of look.terms) {
          if (deadlineSeconds === null || deadlineSeconds <= ageSeconds) continue;
          const until = Math.max(look.clamp.leastSeconds, deadlineSeconds - ageSeconds + 0.5);
          expect(wait).toBeLessThanOrEqual(until);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('is capped as its stage says, then by a tenth of the age up to ten minutes, at any price that fits the budget', () => {
    fc.assert(
      fc.property(seconds, fc.double({ min: 1e-3, max: 2, noNaN: true }), (ageSeconds, price) => {
        const limits = { leastSeconds: 0.5, mostSeconds: 30, agedSeconds: 600 };
        const { mostSeconds } = clampAt(limits, { ageSeconds, price });
        expect(mostSeconds / Math.max(30, Math.min(600, ageSeconds / 10))).toBeCloseTo(1, 9);
      }),
    );
  });
});

describe('hazard and learning', () => {
  test('an age lies within the edges of its bin', () => {
    fc.assert(
      fc.property(fc.oneof(seconds, fc.constantFrom(...AGE_BINS)), (age) => {
        const bin = binOf(age);
        expect(lowerEdge(bin)).toBeLessThanOrEqual(age);
        expect(upperEdge(bin)).toBeGreaterThan(age);
      }),
    );
  });

  test('a curve keeps to the shares of its log-normal at every edge, and is finite everywhere', () => {
    fc.assert(
      fc.property(
        fc.record({
          medianSeconds: fc.double({ min: 1, max: 5_000, noNaN: true }),
          sigma: fc.double({ min: 0.3, max: 2, noNaN: true }),
          neverShare: fc.double({ min: 0.001, max: 0.5, noNaN: true }),
        }),
        (expectation) => {
          const curve = expectedHazard(expectation);
          let sum = 0;
          for (let bin = 0; bin < AGE_BINS.length - 1; bin++) {
            sum += (curve[bin] ?? 0) * (upperEdge(bin) - lowerEdge(bin));
            const open = stillOpen(expectation, upperEdge(bin));
            expect(Math.exp(-sum)).toBeCloseTo(open, 1);
          }
        },
      ),
    );
    fc.assert(
      fc.property(expectations, (expectation) => {
        for (const rate of expectedHazard(expectation)) {
          expect(rate).toBeGreaterThan(0);
          expect(rate).toBeLessThan(Number.POSITIVE_INFINITY);
        }
      }),
    );
  });

  const intervals = fc
    .tuple(fc.double({ min: 0, max: 1e5, noNaN: true }), fc.double({ min: 1e-3, max: 1e5, noNaN: true }))
    .chain(([fromSeconds, length]) =>
      fc.boolean().map((ended) => ({ fromSeconds, toSeconds: fromSeconds + length, ended })),
    );

  test('an interval adds one end or none, and no more time than it has', () => {
    fc.assert(
      fc.property(expectations, intervals, (expectation, interval) => {
        const added = increments(expectedHazard(expectation), interval);
        const ended = added.reduce((sum, increment) => sum + increment.ended, 0);
        const watched = added.reduce((sum, increment) => sum + increment.watchedSeconds, 0);
        expect(ended).toBeCloseTo(interval.ended ? 1 : 0, 6);
        const length = interval.toSeconds - interval.fromSeconds;
        if (interval.ended) expect(watched).toBeLessThanOrEqual(length * (1 + 1e-6));
        else expect(watched / length).toBeCloseTo(1, 6);
        for (const increment of added) expect(increment.watchedSeconds).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 500 },
    );
  });

  test('several processes add in any order, and each part adds what the whole does', () => {
    fc.assert(
      fc.property(
        expectations,
        fc.array(fc.tuple(intervals, fc.double({ min: 1, max: 8, noNaN: true })), { maxLength: 12 }),
        (expectation, seen) => {
          const curve = expectedHazard(expectation);
          const add = (tally: Tally, [interval, weight]: (typeof seen)[number]): Tally =>
            withIncrements(tally, increments(curve, interval), weight);
          const forward = learnedHazard(expectation, seen.reduce(add, emptyTally()), 8);
          const backward = learnedHazard(expectation, seen.toReversed().reduce(add, emptyTally()), 8);
          forward.forEach((rate, bin) => {
            expect(Number.isFinite(rate)).toBe(true);
            expect((backward[bin] ?? 0) / rate).toBeCloseTo(1, 9);
          });
        },
      ),
    );
  });

  test('watching in two goes is watching in one', () => {
    fc.assert(
      fc.property(
        expectations,
        intervals,
        fc.double({ min: 0.01, max: 0.99, noNaN: true }),
        (expectation, interval, at) => {
          const curve = expectedHazard(expectation);
          const { fromSeconds, toSeconds } = interval;
          const middle = fromSeconds + at * (toSeconds - fromSeconds);
          const whole = increments(curve, { fromSeconds, toSeconds, ended: false });
          const first = increments(curve, { fromSeconds, toSeconds: middle, ended: false });
          const second = increments(curve, { fromSeconds: middle, toSeconds, ended: false });
          const one = withIncrements(emptyTally(), whole, 1);
          const two = withIncrements(emptyTally(), [...first, ...second], 1);
          one.watchedSeconds.forEach((value, bin) => {
            expect(two.watchedSeconds[bin]).toBeCloseTo(value, 3);
          });
        },
      ),
    );
  });

  test('a quantile rises with its share and is finite', () => {
    fc.assert(
      fc.property(expectations, fc.double({ min: 0, max: 1, noNaN: true }), (expectation, share) => {
        const curve = expectedHazard(expectation);
        const age = quantileSeconds(curve, share);
        expect(age).toBeGreaterThanOrEqual(0);
        expect(Number.isFinite(age)).toBe(true);
        expect(quantileSeconds(curve, Math.min(1, share + 0.1))).toBeGreaterThanOrEqual(age);
      }),
    );
  });

  test('the rate of arrivals is above 0 and lies between what was expected and what was seen', () => {
    fc.assert(
      fc.property(
        fc.nat(10_000),
        seconds,
        fc.double({ min: 1e-7, max: 10, noNaN: true }),
        (seen, watchedSeconds, usualPerSecond) => {
          const nothing = { seen: 0, watchedSeconds: 0, atMs: 0 };
          const expected = arrivalsPerSecond(nothing, { usualPerSecond, nowMs: 0 });
          const rate = arrivalsPerSecond(withArrivals(nothing, { seen, watchedSeconds, nowMs: 0 }), {
            usualPerSecond,
            nowMs: 0,
          });
          const observed = seen / watchedSeconds || 0;
          expect(rate).toBeGreaterThan(0);
          expect(rate).toBeLessThanOrEqual(Math.max(expected, observed) * (1 + 1e-9));
          expect(rate).toBeGreaterThanOrEqual(Math.min(expected, observed) * (1 - 1e-9));
        },
      ),
    );
  });
});

describe('the price', () => {
  const measurements = fc.record({
    nowMs: fc.integer({ min: 1, max: 10_000 }),
    budgetPerSecond: fc.double({ min: 0.01, max: 500, noNaN: true }),
    demand: fc.double({ min: 0, max: 1e6, noNaN: true }),
    planned: fc.nat(100_000),
    served: fc.nat(10_000),
    unplanned: fc.nat(10_000),
    behindSeconds: seconds,
    pushedBack: fc.boolean(),
  });

  test('is finite and above 0 after any measurements', () => {
    fc.assert(
      fc.property(fc.array(measurements, { maxLength: 20 }), (steps) => {
        let state = firstPrice(0);
        for (const step of steps) state = steer(state, { ...step, nowMs: state.atMs + step.nowMs });
        for (const value of Object.values(state)) {
          if (value !== null) expect(Number.isFinite(value)).toBe(true);
        }
        expect(state.price).toBeGreaterThan(0);
      }),
    );
  });

  test('never falls as demand, backlog or a plea to slow down is added', () => {
    fc.assert(
      fc.property(measurements, fc.double({ min: 0, max: 1e3, noNaN: true }), (step, more) => {
        const price = (change: Partial<typeof step>): number =>
          steer(firstPrice(0), { ...step, ...change }).price;
        const plain = price({ pushedBack: false });
        expect(price({ pushedBack: false, demand: step.demand + more })).toBeGreaterThanOrEqual(plain);
        expect(price({ pushedBack: false, behindSeconds: step.behindSeconds + more })).toBeGreaterThanOrEqual(
          plain,
        );
        expect(price({ pushedBack: true })).toBeGreaterThanOrEqual(plain);
      }),
    );
  });

  test('makes the plans of any number of equal subjects fit the budget at once', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5_000 }),
        fc.double({ min: 0.5, max: 50, noNaN: true }),
        (count, budget) => {
          const curve = AGE_BINS.map(() => 0.01);
          const terms = [{ curve, ageSeconds: 10, weight: 1, deadlineSeconds: null }];
          const clamp = { leastSeconds: 1e-3, mostSeconds: 1e9 };
          const wait = (price: number): number => waitSeconds({ terms, arrivals: 0, price, clamp });
          const { price } = steer(firstPrice(0), {
            nowMs: 1,
            budgetPerSecond: budget,
            demand: count * plannedDemand({ price: 1, waitSeconds: wait(1) }),
            planned: count,
            served: 0,
            unplanned: 0,
            behindSeconds: 0,
            pushedBack: false,
          });
          const asked = count / wait(price);
          // A price that would be below the least asks for less than the budget, never for more.
          expect(asked).toBeLessThan(1.01 * budget);
          if (price > 0.01) expect(asked).toBeGreaterThan(0.9 * budget);
        },
      ),
    );
  });
});

const HEAD: readonly Listing[] = ['head'];

describe('the choice of listings', () => {
  const clamps = fc.constantFrom(
    { leastSeconds: 0.5, mostSeconds: 30 },
    { leastSeconds: 1, mostSeconds: 600 },
  );
  const members: fc.Arbitrary<UnderWay> = fc.record({
    status: fc.constantFrom('pending', 'filled', 'refundable', 'expired', 'failed', 'new'),
    hazard: fc.double({ min: 0, max: 1, noNaN: true }),
    weight: fc.double({ min: 0, max: 2, noNaN: true }),
    clamp: clamps,
    onHead: fc.boolean(),
  });
  const settings = fc.record({
    price: prices,
    rates: fc.dictionary(
      fc.constantFrom('head', 'pending', 'filled'),
      fc.double({ min: 0, max: 1, noNaN: true }),
    ),
    clamp: clamps,
    narrows: fc.boolean(),
  });

  test('has every transfer in exactly one place, where it is shown', () => {
    fc.assert(
      fc.property(
        fc.array(members, { maxLength: 70 }),
        settings,
        (list, { rates, clamp, price, narrows }) => {
          const arrivals = (narrows ? LISTINGS : HEAD).flatMap((listing) => {
            const rate = rates[listing];
            return rate === undefined ? [] : [{ listing, rate, fillRate: rate / 2, clamp }];
          });
          const setting = { price, narrows, arrivals };
          const { listings, single } = chooseListings(list, setting);
          const placed = [...listings.flatMap((page) => page.members), ...single];
          expect(placed).toHaveLength(list.length);
          expect(new Set(placed)).toEqual(new Set(list));
          for (const page of listings) {
            for (const member of page.members) {
              if (page.listing === 'head') expect(member.onHead).toBe(true);
              else expect(member.status).toBe(page.listing);
            }
            if (page.listing !== 'head') {
              expect(setting.narrows).toBe(true);
              expect(page.members.length).toBeLessThanOrEqual(50);
            }
          }
          const asked = listings.map(({ listing }) => listing);
          expect(new Set(asked).size).toBe(asked.length);
          for (const { listing } of arrivals) expect(asked).toContain(listing);
        },
      ),
    );
  });
});
