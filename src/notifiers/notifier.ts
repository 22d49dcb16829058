import type { RenderedEvent } from '../domain/events/event.ts';

/**
 * Result of one attempt. `delivered`: the receiver accepted it. `failed`: it did not, and a later attempt may work. `rejected`:
 * no later attempt will work. `reason` is short and for humans, `answer` is up to 1 KiB of the receiver's answer; both are
 * printable and contain none of the receiver's secrets. An answer may be searched for those only when it is read.
 * `retryAfterMs` is the wait that the receiver requested, at most one hour. After a timeout it is as long as that was, so that
 * a slow receiver does not get the next request at once. `remaining` are the recipients of a mail that a later attempt is for,
 * where others have got it; `refused`: number of recipients that do not get it, which the mail server refused for good.
 */
export type AttemptResult = {
  outcome: 'delivered' | 'failed' | 'rejected';
  httpStatus: number | null;
  smtpCode: number | null;
  reason: string;
  answer: string;
  durationMs: number;
  retryAfterMs: number | null;
  remaining?: string[] | undefined;
  refused?: number;
};

/**
 * `nowMs` is the time of the attempt; `signal` cuts it off at shutdown; `replay` marks an event that is sent once more;
 * `remaining` are the recipients that an earlier attempt omitted, all where there are none; `entry` is the event's place in the
 * event log, absent for an event outside it.
 */
export type AttemptOptions = {
  signal: AbortSignal;
  nowMs: number;
  replay?: boolean;
  remaining?: readonly string[] | undefined;
  entry?: string;
};

/** Several events in one message, oldest first. `id` identifies the message when it is sent again. */
export type Digest = { id: string; events: readonly RenderedEvent[] };

/** An event with its place in the event log; null for an event outside it. */
export type NotifiedEvent = { event: RenderedEvent; entry: string | null };

/**
 * Delivers events to one receiver. `deliver` makes one attempt and reports whatever the receiver did; it throws only an
 * `AbortError`, when `signal` cut the attempt off. `deliverDigest` exists where events can be sent as one message,
 * `deliverTogether` where several due events can be accepted in their order in one step, all or none. `close` ends the
 * connections at once.
 */
export type Notifier = {
  deliver(event: RenderedEvent, options: AttemptOptions): Promise<AttemptResult>;
  deliverDigest?(digest: Digest, options: AttemptOptions): Promise<AttemptResult>;
  deliverTogether?(events: readonly NotifiedEvent[], options: AttemptOptions): Promise<AttemptResult>;
  close(): Promise<void>;
};

/** Builds the URL of an event as a receiver gets it. Its holder can read that event for some days from `nowMs` on. */
export type EventUrl = (event: { id: string; receiver: string }, nowMs: number) => string;

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
