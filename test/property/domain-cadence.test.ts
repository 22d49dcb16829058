import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { arrivalsPerSecond, withArrivals } from '../../src/domain/cadence/arrivals.ts';
import {
  AGE_BINS,
  binOf,
  type Expectation,
  endedShares,
  expectedHazard,
  lowerEdge,
  quantileSeconds,
  rateAt,
  stillOpen,
  upperEdge,
} from '../../src/domain/cadence/hazard.ts';
import { emptyTally, increments, learnedHazard, type Tally } from '../../src/domain/cadence/learning.ts';
import { nextPoll, type PlannedPoll } from '../../src/domain/cadence/next-poll.ts';
import {
  chooseListings,
  LISTINGS,
  type Listing,
  LONGEST_WAIT_SECONDS,
  limitsAt,
  type Prospect,
  type Term,
  type UnderWay,
  virtualSeconds,
  waitSeconds,
} from '../../src/domain/cadence/wait.ts';
import {
  type LastPolls,
  type OpenTransfer,
  planWallet,
  type WalletView,
} from '../../src/domain/cadence/wallet.ts';
import { arrivalRule, type PollingLimits, watchRules } from '../../src/domain/cadence/watch-rules.ts';
import type { CadenceModel } from '../../src/domain/cadence/watched.ts';
import { kindStatuses } from '../../src/domain/subjects/kinds.ts';
import type { Snapshot } from '../../src/domain/subjects/record.ts';
import {
  gaslessId,
  gatewayJobId,
  intentId,
  quoteId,
  SUBJECT_KINDS,
  vaultId,
} from '../../src/domain/subjects/subject.ts';
import { withIncrements } from '../support/tally.ts';

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
});
const prospects: fc.Arbitrary<Prospect> = fc.record({
  terms: fc.array(terms, { maxLength: 8 }),
  constant: fc.double({ min: 0, max: 1, noNaN: true }),
  price: prices,
});

/** `∫ sqrt(Σ w·h / 2c)` from the last poll on, in many small steps instead of bins. */
function worth(prospect: Prospect, waited: number): number {
  const steps = 20_000;
  let sum = 0;
  for (let index = 0; index < steps; index++) {
    const at = ((index + 0.5) * waited) / steps;
    const hazard = prospect.terms.reduce(
      (all, { curve, ageSeconds, weight }) => all + weight * rateAt(curve, ageSeconds + at),
      prospect.constant,
    );
    sum += (Math.sqrt(hazard / (2 * prospect.price)) * waited) / steps;
  }
  return sum;
}

describe('the wait', () => {
  test('is where the integral of the rate reaches 1', () => {
    // Short waits, so that steps are small compared with the bins.
    const soon = fc.record({
      terms: fc.array(terms, { maxLength: 8 }),
      constant: fc.double({ min: 1e-3, max: 1, noNaN: true }),
      price: fc.double({ min: 1e-3, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(soon, (prospect) => {
        expect(worth(prospect, waitSeconds(prospect))).toBeCloseTo(1, 2);
      }),
      { numRuns: 60 },
    );
  });

  test('is above 0 and never beyond the longest planned wait, for any question', () => {
    fc.assert(
      fc.property(prospects, (prospect) => {
        expect(waitSeconds(prospect)).toBeGreaterThan(0);
        expect(waitSeconds(prospect)).toBeLessThanOrEqual(LONGEST_WAIT_SECONDS);
      }),
      { numRuns: 500 },
    );
  });

  test('never shortens as the price rises, and never grows with one more thing to see', () => {
    fc.assert(
      fc.property(prospects, terms, prices, (prospect, term, price) => {
        const wait = waitSeconds(prospect);
        const dearer = waitSeconds({ ...prospect, price: prospect.price + price });
        const more = waitSeconds({ ...prospect, terms: [...prospect.terms, term] });
        // Waits are summed in bins of up to hours, so the error is some parts in a billion.
        const rounding = 1e-6 + wait * 1e-8;
        expect(dearer).toBeGreaterThanOrEqual(wait - rounding);
        expect(more).toBeLessThanOrEqual(wait + rounding);
      }),
      { numRuns: 500 },
    );
  });

  test('in virtual time does not depend on the price, where the hazard does not change', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-4, max: 10, noNaN: true }), prices, prices, (constant, one, other) => {
        const waits = [one, other].map((price) => ({ terms: [], constant, price }));
        fc.pre(waits.every((prospect) => waitSeconds(prospect) < LONGEST_WAIT_SECONDS));
        const [first, second] = waits.map(virtualSeconds);
        expect((first ?? 0) / (second ?? 1)).toBeCloseTo(1, 6);
        expect(first).toBeCloseTo(Math.sqrt(2 / constant), 6);
      }),
    );
  });

  test('in virtual time is the real one at a price of 1', () => {
    fc.assert(
      fc.property(prospects, (prospect) => {
        const plain = { ...prospect, price: 1 };
        expect(virtualSeconds(plain)).toBe(waitSeconds(plain));
      }),
    );
  });

  test('is limited by its stage, later by a tenth of the age up to that of old subjects', () => {
    fc.assert(
      fc.property(seconds, (ageSeconds) => {
        const limits = { leastSeconds: 1, mostSeconds: 30, agedSeconds: 600 };
        const { leastSeconds, mostSeconds } = limitsAt(limits, ageSeconds);
        expect(leastSeconds).toBe(1);
        expect(mostSeconds / Math.max(30, Math.min(600, ageSeconds / 10))).toBeCloseTo(1, 9);
      }),
    );
  });
});

/** Limits that the config permits: 1 s to an hour, and from there to a day. */
const pollingLimits: fc.Arbitrary<PollingLimits> = fc
  .tuple(fc.integer({ min: 1, max: 3_600 }), fc.integer({ min: 0, max: 86_400 - 3_600 }))
  .map(([shortestSeconds, more]) => ({ shortestSeconds, longestSeconds: shortestSeconds + more }));

const laws: fc.Arbitrary<CadenceModel> = fc
  .record({ limits: pollingLimits, expectation: expectations })
  .map(({ limits, expectation }) => {
    const rules = watchRules(limits);
    const curve = expectedHazard(expectation);
    const arrivals = arrivalRule(limits);
    return {
      rules,
      arrivals,
      usualArrivals: 1 / arrivals.everySeconds,
      curve: () => curve,
      filledShares: endedShares(curve),
    };
  });

const NOW_MS = 1_763_638_260_000;
/** Includes notes of a clock that was ahead. */
const timesMs = fc.integer({ min: NOW_MS - 40 * 86_400_000, max: NOW_MS + 2 * 3_600_000 });

/** A storable plan: allowed within the longest rest, and not overdue before it is allowed. */
function expectKeepable(plan: PlannedPoll, { shortestSeconds }: PollingLimits): void {
  expect(Number.isFinite(plan.virtualSeconds)).toBe(true);
  expect(plan.restMs).toBeGreaterThanOrEqual(0);
  expect(plan.restMs).toBeLessThanOrEqual(1_000 * Math.max(LONGEST_WAIT_SECONDS, shortestSeconds));
  if (plan.latestMs !== null) expect(plan.latestMs).toBeGreaterThanOrEqual(plan.restMs);
  if (plan.alarmMs !== null) expect(plan.alarmMs).toBeGreaterThan(0);
}

describe('the next poll', () => {
  const subjects = fc.constantFrom(
    intentId('0xaa'),
    quoteId('q'),
    gaslessId('j'),
    gatewayJobId('g'),
    vaultId({ chainId: 1, address: '0xbb' }),
  );
  const words = fc.constantFrom(...new Set(SUBJECT_KINDS.flatMap(kindStatuses)), 'routing', 'constructor');
  const stages = fc.record({
    subject: subjects,
    status: fc.option(words),
    changedAtMs: timesMs,
    updatedAt: fc.option(timesMs.map((ms) => Math.floor(ms / 1_000))),
    model: laws,
    price: prices,
    alarmsMs: fc.array(timesMs, { maxLength: 3 }),
  });

  function planned({
    status,
    changedAtMs,
    updatedAt,
    ...rest
  }: typeof stages extends fc.Arbitrary<infer S> ? S : never) {
    const snapshot: Snapshot | null =
      status === null
        ? null
        : {
            version: 1,
            sequence: 1,
            commit: 1,
            status,
            updatedAt,
            record: { status },
            observedAtMs: changedAtMs,
            changedAtMs,
            pendingSince: null,
            flags: [],
            ahead: null,
            former: [],
            emitted: [],
            epoch: 1,
            unconfirmed: null,
            reported: true,
          };
    return nextPoll({ ...rest, snapshot, nowMs: NOW_MS, namedAtMs: changedAtMs, finished: {} });
  }

  test('is never before its shortest wait, never overdue before it is allowed, and comes for each alarm ahead', () => {
    fc.assert(
      fc.property(stages, (stage) => {
        const next = planned(stage);
        if (next.next === 'finish') return;
        const { leastSeconds, mostSeconds } = stage.model.arrivals.limits;
        expectKeepable(next, { shortestSeconds: leastSeconds, longestSeconds: mostSeconds });
        expect(next.restMs).toBeGreaterThanOrEqual(1_000 * leastSeconds);
        // Statuses that the upstream has not shown have a share of the budget of their own.
        expect(next.latestMs === null).toBe(next.unseen);
        const ahead = stage.alarmsMs.filter((atMs) => atMs > NOW_MS);
        expect(next.alarmMs === null).toBe(ahead.length === 0);
        for (const atMs of ahead) expect(next.alarmMs).toBeLessThanOrEqual(atMs - NOW_MS + 1_000);
      }),
      { numRuns: 500 },
    );
  });
});

describe('the plan of a wallet', () => {
  const transfers: fc.Arbitrary<OpenTransfer> = fc.record({
    subject: fc.nat(1e6).map((number) => intentId(`0x${number.toString(16)}`)),
    status: fc.constantFrom('pending', 'filled', 'refundable', 'expired', 'failed', 'routing'),
    route: fc.constant('8453:10'),
    sinceMs: timesMs,
    seenAtMs: timesMs,
    headAtMs: fc.option(fc.constantFrom(NOW_MS - 5_000, NOW_MS - 90_000)),
  });
  const polls = fc.record({ atMs: timesMs, virtual: fc.double({ min: -1e6, max: 1e6, noNaN: true }) });
  const views: fc.Arbitrary<WalletView> = fc.record({
    open: fc.array(transfers, { maxLength: 70 }),
    polled: fc.dictionary(fc.constantFrom(...LISTINGS), polls),
    headIngestedAtMs: fc.constant(NOW_MS - 5_000),
    nowMs: fc.constant(NOW_MS),
    fromMs: fc.integer({ min: 0, max: 10_000 }).map((ms) => NOW_MS + ms),
    roundSeconds: fc.double({ min: 0.01, max: 5_000, noNaN: true }),
    virtual: fc.double({ min: -1e6, max: 1e6, noNaN: true }),
    price: prices,
    narrows: fc.boolean(),
    headFinds: fc.boolean(),
    arrivalsPerSecond: fc.double({ min: 1e-9, max: 10, noNaN: true }),
    model: laws,
  });

  test('names a listing that may be requested, at times that can be stored', () => {
    fc.assert(
      fc.property(views, (view) => {
        const plan = planWallet(view);
        expect(LISTINGS).toContain(plan.listing);
        if (!view.narrows || view.polled.head === undefined) expect(plan.listing).toBe('head');
        const { leastSeconds, mostSeconds } = view.model.arrivals.limits;
        expectKeepable(plan, { shortestSeconds: leastSeconds, longestSeconds: mostSeconds });
        // New transfers are awaited in any state: the wallet is overdue after the longest wait at the latest.
        const shown = view.open.length;
        const pages = Math.ceil(Math.max(1, shown) / 50);
        expect(plan.latestMs).toBeLessThanOrEqual(
          1_000 * Math.max(mostSeconds * pages, LONGEST_WAIT_SECONDS),
        );
      }),
      { numRuns: 500 },
    );
  });

  test('polls in turn each listing in which new transfers appear, also where all of them are always overdue', () => {
    fc.assert(
      fc.property(views, (view) => {
        let polled: LastPolls = { ...view.polled, head: { atMs: NOW_MS, virtual: view.virtual } };
        let nowMs = NOW_MS;
        const requests = LISTINGS.map(() => {
          nowMs += 100 * 86_400_000;
          const { listing } = planWallet({ ...view, polled, nowMs });
          polled = { ...polled, [listing]: { atMs: nowMs, virtual: view.virtual } };
          return listing;
        });
        const finders: Listing[] = view.headFinds || !view.narrows ? ['head'] : ['pending', 'filled', 'head'];
        for (const listing of finders) expect(requests).toContain(listing);
      }),
      { numRuns: 200 },
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

  test('a curve has the shares of its log-normal at every edge, and is finite everywhere', () => {
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

  test('several processes add in any order, and the pieces add as much as the whole', () => {
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

  test('the rate of arrivals is above 0 and between the expected and the observed one', () => {
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

const HEAD: readonly Listing[] = ['head'];

describe('the choice of listings', () => {
  const limits = fc.constantFrom(
    { leastSeconds: 0.5, mostSeconds: 30 },
    { leastSeconds: 1, mostSeconds: 600 },
  );
  const members: fc.Arbitrary<UnderWay> = fc.record({
    status: fc.constantFrom('pending', 'filled', 'refundable', 'expired', 'failed', 'new'),
    hazard: fc.double({ min: 0, max: 1, noNaN: true }),
    weight: fc.double({ min: 0, max: 2, noNaN: true }),
    limits,
    onHead: fc.boolean(),
  });
  const settings = fc.record({
    price: prices,
    rates: fc.dictionary(
      fc.constantFrom('head', 'pending', 'filled'),
      fc.double({ min: 0, max: 1, noNaN: true }),
    ),
    limits,
    narrows: fc.boolean(),
  });

  test('has every transfer in exactly one place, where it is shown', () => {
    fc.assert(
      fc.property(
        fc.array(members, { maxLength: 70 }),
        settings,
        (list, { rates, limits, price, narrows }) => {
          const arrivals = (narrows ? LISTINGS : HEAD).flatMap((listing) => {
            const rate = rates[listing];
            return rate === undefined ? [] : [{ listing, rate, fillRate: rate / 2, limits }];
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
            if (page.listing !== 'head') expect(setting.narrows).toBe(true);
          }
          const requests = listings.map(({ listing }) => listing);
          expect(new Set(requests).size).toBe(requests.length);
          for (const { listing } of arrivals) expect(requests).toContain(listing);
        },
      ),
    );
  });
});
