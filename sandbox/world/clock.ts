/** A wall clock in Unix milliseconds that never goes back, so that logs stay in order and `updatedAt` never decreases. */
export function createClock(): () => number {
  let latestMs = 0;
  return () => {
    latestMs = Math.max(latestMs, Date.now());
    return latestMs;
  };
}
