import { onTestFinished, vi } from 'vitest';

/**
 * Keeps every timer of at least `ms` that this process sets from now on from firing until the test ends: what happens
 * meanwhile was not caused by one, however long the machine takes for it.
 */
export function holdTimers(ms: number): void {
  const { setTimeout } = globalThis;
  const held = vi.spyOn(globalThis, 'setTimeout').mockImplementation((run, delayMs = 0, ...given) => {
    return setTimeout(run, delayMs >= ms ? NEVER_MS : delayMs, ...given);
  });
  onTestFinished(() => held.mockRestore());
}

/** Longer than any test, and no longer than a timer can be. */
const NEVER_MS = 2 ** 31 - 1;
