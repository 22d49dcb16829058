import { onTestFinished, vi } from 'vitest';

/** Stops every timer of at least `ms` set from now on until the test ends, so that no later event was caused by one. */
export function holdTimers(ms: number): void {
  const { setTimeout } = globalThis;
  const held = vi.spyOn(globalThis, 'setTimeout').mockImplementation((run, delayMs = 0, ...given) => {
    return setTimeout(run, delayMs >= ms ? NEVER_MS : delayMs, ...given);
  });
  onTestFinished(() => held.mockRestore());
}

/** Longer than any test, and the longest span of a timer. */
const NEVER_MS = 2 ** 31 - 1;
