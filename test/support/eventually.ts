const EVERY_MS = 50;

/** Polls for a condition without events until it is neither null nor false. Throws after `forMs` with its name. */
export async function eventually<T>(
  awaited: string,
  probe: () => Promise<T | null | false> | T | null | false,
  forMs = 170_000,
): Promise<T> {
  const endMs = performance.now() + forMs;
  for (;;) {
    const answer = await probe();
    if (answer !== null && answer !== false) return answer;
    if (performance.now() > endMs) throw new Error(`waited ${forMs / 1_000} s in vain: ${awaited}`);
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}
