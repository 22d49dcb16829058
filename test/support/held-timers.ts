import { onTestFinished, vi } from 'vitest';

/**
 * Stops every timer of at least `ms` that this process sets from now on until the test ends. No event of that time was then
 * caused by one, however slow the machine is.
 */
export function holdTimers(ms: number): void {
  const { setTimeout } = globalThis;
  const held = vi.spyOn(globalThis, 'setTimeout').mockImplementation((run, delayMs = 0, ...given) => {
    return setTimeout(run, delayMs >= ms ? NEVER_MS : delayMs, ...given);
  });
  onTestFinished(() => held.mockRestore());
}

/** Longer than any test, and the longest span of a timer. */
const NEVER_MS = 2 ** 31 - 1;
