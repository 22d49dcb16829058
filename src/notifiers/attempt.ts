import type { AttemptOptions } from './notifier.ts';

/** The clock and the two ways in which an attempt is ended before its time. */
export type Attempt = {
  /** Aborts when the time is over or the attempt is cut off. */
  signal: AbortSignal;
  /** Time since the attempt began, in whole milliseconds. */
  elapsedMs(): number;
  /** Throws an `AbortError` if the attempt was cut off from outside. */
  throwIfCutOff(): void;
  /** Whether its own time is over. */
  isTimedOut(): boolean;
};

/** Begins an attempt that has `timeoutMs` for everything. */
export function beginAttempt(options: AttemptOptions, timeoutMs: number): Attempt {
  const startedAt = performance.now();
  const timeout = AbortSignal.timeout(timeoutMs);
  return {
    signal: AbortSignal.any([options.signal, timeout]),
    elapsedMs: () => Math.round(performance.now() - startedAt),
    throwIfCutOff: () => {
      if (!options.signal.aborted) return;
      const { reason } = options.signal;
      if (reason instanceof Error && reason.name === 'AbortError') throw reason;
      throw new DOMException('the attempt was cut off', { name: 'AbortError', cause: reason });
    },
    isTimedOut: () => timeout.aborted,
  };
}
