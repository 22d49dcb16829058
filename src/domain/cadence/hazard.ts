/** Three bins per doubling of age, from a quarter of a second to a day and a half. */
const PER_DOUBLING = 3;
const FIRST_EXPONENT = -2;
const LAST_EXPONENT = 17;

/** Lower edges of the age bins, seconds; the first is 0, and the last bin has no end. */
export const AGE_BINS: readonly number[] = [
  0,
  ...Array.from(
    { length: (LAST_EXPONENT - FIRST_EXPONENT) * PER_DOUBLING + 1 },
    (_, index) => 2 ** (FIRST_EXPONENT + index / PER_DOUBLING),
  ),
];

const LAST = AGE_BINS.length - 1;

/** Bin of an age; a negative age is in the first. */
export function binOf(ageSeconds: number): number {
  const guess = 1 + Math.floor((Math.log2(ageSeconds) - FIRST_EXPONENT) * PER_DOUBLING);
  if (!(guess > 0)) return 0;
  const bin = Math.min(guess, LAST);
  // The logarithm may round an age on an edge to either side.
  if (ageSeconds < lowerEdge(bin)) return bin - 1;
  return bin < LAST && ageSeconds >= lowerEdge(bin + 1) ? bin + 1 : bin;
}

/** Start of a bin, seconds. */
export function lowerEdge(bin: number): number {
  return AGE_BINS[bin] ?? Number.POSITIVE_INFINITY;
}

/** End of a bin, seconds; Infinity for the last. */
export function upperEdge(bin: number): number {
  return AGE_BINS[bin + 1] ?? Number.POSITIVE_INFINITY;
}

/**
 * Expectation of a stage before any observation: a log-normal time to its end, and the share of transfers that never
 * end it. `sigma` is the standard deviation of the time's logarithm.
 */
export type Expectation = { medianSeconds: number; sigma: number; neverShare: number };

/** Chance per second that a stage ends: one rate per age bin. Every rate is finite and above 0. */
export type HazardCurve = readonly number[];

/** Bounds of a rate: learning multiplies, and cannot leave 0. */
const LEAST_PER_SECOND = 1e-7;
const MOST_PER_SECOND = 1e3;
const LEAST_NEVER_SHARE = 1e-6;

/** Curves by expectation: those of the rules are needed every few seconds, as long as the process runs. */
const CURVES = new WeakMap<Expectation, HazardCurve>();

/** Hazard of an expectation. The rate of a bin gives the bin its share of ends. */
export function expectedHazard(expectation: Expectation): HazardCurve {
  const curve = CURVES.get(expectation) ?? curveOf(expectation);
  CURVES.set(expectation, curve);
  return curve;
}

function curveOf(expectation: Expectation): HazardCurve {
  const rates: number[] = [];
  for (let bin = 0; bin < AGE_BINS.length - 1; bin++) {
    const width = upperEdge(bin) - lowerEdge(bin);
    const from = stillOpen(expectation, lowerEdge(bin));
    const to = stillOpen(expectation, upperEdge(bin));
    rates.push(boundedRate(Math.log(from / to) / width));
  }
  rates.push(rates.at(-1) ?? LEAST_PER_SECOND);
  return rates;
}

/** Share of transfers whose stage is open at an age: 1 at age 0, the never-ending share at the end. */
export function stillOpen(expectation: Expectation, ageSeconds: number): number {
  if (ageSeconds <= 0) return 1;
  const { medianSeconds, sigma } = expectation;
  const never = Math.min(1, Math.max(LEAST_NEVER_SHARE, expectation.neverShare));
  return never + (1 - never) * normalTail(Math.log(ageSeconds / medianSeconds) / sigma);
}

/** Share of transfers whose stage has ended, one per age bin, at the middle of the bin. */
export function endedShares(curve: HazardCurve): readonly number[] {
  let sum = 0;
  return AGE_BINS.map((_, bin) => {
    const rate = curve[bin] ?? 0;
    const width = Math.min(upperEdge(bin), 2 * lowerEdge(LAST_BIN)) - lowerEdge(bin);
    const share = -Math.expm1(-(sum + (rate * width) / 2));
    sum += rate * width;
    return share;
  });
}

const LAST_BIN = AGE_BINS.length - 1;

/** Rate of a curve at an age, per second. */
export function rateAt(curve: HazardCurve, ageSeconds: number): number {
  return ageSeconds < 0 ? 0 : (curve[binOf(ageSeconds)] ?? 0);
}

/** Age by which a share of the stages that ever end have ended, seconds; at most the start of the last age bin. */
export function quantileSeconds(curve: HazardCurve, share: number): number {
  const sums = [0];
  for (let bin = 0; bin < AGE_BINS.length - 1; bin++) {
    sums.push((sums[bin] ?? 0) + (curve[bin] ?? 0) * (upperEdge(bin) - lowerEdge(bin)));
  }
  const ever = -Math.expm1(-(sums.at(-1) ?? 0));
  const need = -Math.log1p(-Math.min(1, Math.max(0, share)) * ever);
  const reached = sums.findIndex((sum) => sum >= need);
  if (reached === 0) return 0;
  const bin = reached === -1 ? AGE_BINS.length - 2 : reached - 1;
  return Math.min(upperEdge(bin), lowerEdge(bin) + (need - (sums[bin] ?? 0)) / (curve[bin] ?? 1));
}

/** Bounds a rate; NaN becomes the least. Per second. */
export function boundedRate(perSecond: number): number {
  return Math.min(MOST_PER_SECOND, Math.max(LEAST_PER_SECOND, perSecond || 0));
}

/** Chance that a standard normal exceeds z (Numerical Recipes' erfcc, relative error below 1.2e-7 everywhere). */
function normalTail(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + x / 2);
  const sum = COEFFICIENTS.reduceRight((total, coefficient) => total * t + coefficient, 0);
  const tail = (t * Math.exp(-x * x + sum)) / 2;
  return z >= 0 ? tail : 1 - tail;
}

const COEFFICIENTS = [
  -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
  -0.82215223, 0.17087277,
];
