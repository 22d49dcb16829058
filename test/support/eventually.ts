const EVERY_MS = 50;

/**
 * Asks again until the answer is neither null nor false, for a condition without events, such as one of another process.
 * Throws after `forMs`, and names the awaited condition.
 */
export async function eventually<T>(
  awaited: string,
  ask: () => Promise<T | null | false> | T | null | false,
  forMs = 170_000,
): Promise<T> {
  const endMs = performance.now() + forMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== false) return answer;
    if (performance.now() > endMs) throw new Error(`waited ${forMs / 1_000} s in vain: ${awaited}`);
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}
