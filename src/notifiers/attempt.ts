import type { AttemptOptions } from './notifier.ts';

/** The clock of an attempt, and the two ways in which it ends early. */
export type AttemptClock = {
  /** Aborts when the time is over or the attempt is cut off. */
  signal: AbortSignal;
  elapsedMs(): number;
  /** Throws an `AbortError` if the attempt was cut off from outside. */
  throwIfCutOff(): void;
  isTimedOut(): boolean;
  /** Must be called once it is over, however it went. */
  end(): void;
};

/** Begins an attempt of at most `timeoutMs`. It has its own signal and timer: combining signals costs a multiple. */
export function beginAttempt(options: AttemptOptions, timeoutMs: number): AttemptClock {
  const startedAt = performance.now();
  const controller = new AbortController();
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    controller.abort(new DOMException(`the attempt took ${timeoutMs} ms`, 'TimeoutError'));
  }, timeoutMs).unref();
  const cut = (): void => controller.abort(options.signal.reason);
  options.signal.addEventListener('abort', cut, { once: true });
  if (options.signal.aborted) cut();
  return {
    signal: controller.signal,
    elapsedMs: () => Math.round(performance.now() - startedAt),
    throwIfCutOff: () => {
      if (!options.signal.aborted) return;
      const { reason } = options.signal;
      if (reason instanceof Error && reason.name === 'AbortError') throw reason;
      throw new DOMException('the attempt was cut off', { name: 'AbortError', cause: reason });
    },
    isTimedOut: () => timedOut,
    end: () => {
      clearTimeout(timer);
      options.signal.removeEventListener('abort', cut);
    },
  };
}
