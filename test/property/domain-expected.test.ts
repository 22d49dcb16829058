import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { arrivalOf, expectedBy, type StageEnds } from '../../src/domain/cadence/expected.ts';
import { AGE_BINS, boundedRate, expectedHazard, lowerEdge, rateAt } from '../../src/domain/cadence/hazard.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';

const LAST_AGE = lowerEdge(AGE_BINS.length - 1);

const expected = fc
  .record({
    medianSeconds: fc.double({ min: 1e-2, max: 1e5, noNaN: true }),
    sigma: fc.double({ min: 0.05, max: 5, noNaN: true }),
    neverShare: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(expectedHazard);

/** Rates of any shape: learned times need not resemble the expected ones. */
const learned = fc
  .array(fc.double({ min: -8, max: 4, noNaN: true }), {
    minLength: AGE_BINS.length,
    maxLength: AGE_BINS.length,
  })
  .map((exponents) => exponents.map((exponent) => boundedRate(10 ** exponent)));

const curves = fc.oneof(expected, learned);
const ends: fc.Arbitrary<StageEnds> = fc.record({ usual: curves, failed: curves });
const ages = fc.oneof(
  fc.double({ min: 0, max: LAST_AGE - 1, noNaN: true }),
  fc.double({ min: 0, max: 300, noNaN: true }),
);
/** Not nearer to 1 than a sum of fractions can distinguish. */
const shares = fc.double({ min: 0, max: 0.9999, noNaN: true });

/** Times are compared to a millionth: sums of fractions are not exact. */
const slack = (ageSeconds: number): number => 1e-6 * Math.max(1, ageSeconds);

describe('the age by which a share has arrived', () => {
  test('is never before the present one, and is later for a larger share, which is likelier', () => {
    fc.assert(
      fc.property(ends, ages, shares, shares, (both, ageSeconds, one, other) => {
        const [less, more] = [one, other].sort((a, b) => a - b);
        const early = arrivalOf(both, { ageSeconds, share: less ?? 0 });
        const late = arrivalOf(both, { ageSeconds, share: more ?? 0 });
        if (early === null || late === null) return expect(early).toBe(late);
        expect(early.ageSeconds).toBeGreaterThanOrEqual(ageSeconds);
        expect(late.ageSeconds).toBeGreaterThanOrEqual(early.ageSeconds - slack(early.ageSeconds));
        expect(late.probability).toBeGreaterThanOrEqual(early.probability);
        expect(late.probability).toBeLessThanOrEqual(1);
        expect(late.ageSeconds).toBeLessThanOrEqual(LAST_AGE);
      }),
      { numRuns: 5_000 },
    );
  });

  test('is later, the later the stage is still open', () => {
    fc.assert(
      fc.property(ends, ages, ages, shares, (both, one, other, share) => {
        const [young = 0, old = 0] = [one, other].sort((a, b) => a - b);
        const early = arrivalOf(both, { ageSeconds: young, share });
        const late = arrivalOf(both, { ageSeconds: old, share });
        // Of transfers that are open so late, the chance to arrive at all may be indistinguishable from none.
        if (early === null || late === null || late.probability < 1e-9) return;
        expect(late.ageSeconds).toBeGreaterThanOrEqual(early.ageSeconds - slack(early.ageSeconds));
      }),
      { numRuns: 5_000 },
    );
  });

  test('is where the sum of many small steps comes to its probability', () => {
    fc.assert(
      fc.property(ends, fc.double({ min: 0, max: 100, noNaN: true }), shares, (both, ageSeconds, share) => {
        const arrival = arrivalOf(both, { ageSeconds, share });
        if (arrival === null || arrival.ageSeconds > 1e4) return;
        const steps = 40_000;
        const step = (arrival.ageSeconds - ageSeconds) / steps;
        let [open, arrived] = [1, 0];
        for (let index = 0; index < steps; index++) {
          const age = ageSeconds + (index + 0.5) * step;
          const usual = rateAt(both.usual, age);
          const all = usual + rateAt(both.failed, age);
          const ended = open * -Math.expm1(-all * step);
          arrived += (ended * usual) / all;
          open -= ended;
        }
        expect(arrived).toBeCloseTo(arrival.probability, 2);
      }),
      { numRuns: 60 },
    );
  });
});

test('an expected time is never in the past, comes after its median, and is reported only where it is likely', () => {
  const NOW_MS = 1_795_174_200_000;
  const times = fc.record({
    waitedMs: fc.integer({ min: -5_000, max: 200_000_000 }),
    seenMs: fc.integer({ min: 0, max: 10_000 }),
  });
  fc.assert(
    fc.property(ends, times, (both, { waitedMs, seenMs }) => {
      const snapshot = {
        status: 'pending',
        record: {},
        updatedAt: Math.floor((NOW_MS - waitedMs) / 1_000),
        changedAtMs: NOW_MS - seenMs,
      };
      const reported = expectedBy({ subject: intentId('0xaa'), snapshot, nowMs: NOW_MS }, () => both);
      if (reported === null) return;
      expect(reported.status).toBe('filled');
      expect(Date.parse(reported.medianAt)).toBeGreaterThanOrEqual(NOW_MS);
      expect(Date.parse(reported.at)).toBeGreaterThanOrEqual(Date.parse(reported.medianAt));
      expect(reported.probability).toBeGreaterThanOrEqual(0.5);
      expect(reported.probability).toBeLessThanOrEqual(0.9);
    }),
    { numRuns: 5_000 },
  );
});
