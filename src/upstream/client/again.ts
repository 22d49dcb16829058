import { setTimeout as delay } from 'node:timers/promises';
import { UpstreamFailure } from './failure.ts';

/** Limits of a caller's retries. */
export type Patience = {
  /** Requests in all, the first included. */
  attempts: number;
  /** Wait after the first failure; it doubles with each further one. */
  firstDelayMs: number;
  /** When the upstream requests a longer pause, the failure is passed on. */
  maxDelayMs: number;
};

/** Four requests within about five seconds. */
const USUAL_PATIENCE: Patience = { attempts: 4, firstDelayMs: 500, maxDelayMs: 30_000 };

/**
 * Repeats a request until it is answered, the patience ends, or a failure advises against it. `send` must send the
 * same every time. Throws the last UpstreamFailure, or the signal's reason when the caller gave up.
 */
export async function retry<T>(
  send: () => Promise<T>,
  { patience = USUAL_PATIENCE, signal }: { patience?: Patience; signal?: AbortSignal | undefined } = {},
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || attempt >= patience.attempts) throw error;
      if (error.advice === 'fix' || error.advice === 'never') throw error;
      const backoffMs = Math.min(patience.firstDelayMs * 2 ** (attempt - 1), patience.maxDelayMs);
      const waitMs = Math.max(backoffMs, error.retryAfterMs ?? 0);
      if (waitMs > patience.maxDelayMs) throw error;
      await wait(waitMs, signal);
    }
  }
}

async function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch (error) {
    // The timer wraps the reason; callers expect their own.
    signal?.throwIfAborted();
    throw error;
  }
}
