/** A change that a look showed: when, and how long after it had happened. Seconds. */
export type Detection = { at: number; delay: number };

/** What a way of polling came to: what it saw, in the order in which it saw it, and what it asked. */
export type Outcome = { fills: Detection[]; settlements: Detection[]; requestsPerSecond: number };

/** Delays in seconds. */
export type Summary = { count: number; mean: number; p50: number; p95: number; p99: number };

/** Sums detections up. */
export function summarize(detections: readonly Detection[]): Summary {
  const delays = detections.map(({ delay }) => delay).toSorted((a, b) => a - b);
  const count = delays.length;
  const quantile = (share: number): number =>
    delays[Math.min(count - 1, Math.floor(share * count))] ?? Number.NaN;
  const mean = delays.reduce((sum, delay) => sum + delay, 0) / count;
  return { count, mean, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) };
}
