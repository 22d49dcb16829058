/** Largest number of times (ms, ascending) within one second, wherever it begins. */
export function busiestSecond(timesMs: readonly number[]): number {
  let most = 0;
  let from = 0;
  timesMs.forEach((atMs, index) => {
    while (atMs - (timesMs[from] ?? atMs) >= 1_000) from++;
    most = Math.max(most, index - from + 1);
  });
  return most;
}
