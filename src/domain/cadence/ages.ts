/** Three bins to a doubling of age, from a quarter of a second to a day and a half. */
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

/** The bin in which an age lies; a negative age lies in the first. */
export function binOf(ageSeconds: number): number {
  const guess = 1 + Math.floor((Math.log2(ageSeconds) - FIRST_EXPONENT) * PER_DOUBLING);
  if (!(guess > 0)) return 0;
  const bin = Math.min(guess, LAST);
  // The logarithm may round an age that lies on an edge to either side of it.
  if (ageSeconds < lowerEdge(bin)) return bin - 1;
  return bin < LAST && ageSeconds >= lowerEdge(bin + 1) ? bin + 1 : bin;
}

/** The place where a bin begins, seconds. */
export function lowerEdge(bin: number): number {
  return AGE_BINS[bin] ?? Number.POSITIVE_INFINITY;
}

/** The place where a bin ends, seconds; Infinity for the last. */
export function upperEdge(bin: number): number {
  return AGE_BINS[bin + 1] ?? Number.POSITIVE_INFINITY;
}
