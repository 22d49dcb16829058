import type { RenderedEvent } from '../domain/events/event.ts';

/**
 * What one attempt came to. `delivered`: the receiver took it. `failed`: it did not, and a later attempt may work.
 * `rejected`: it says that no attempt will ever work. `reason` is short and for humans, `answer` up to 1 KiB of what
 * the receiver said; both are printable and hold none of the receiver's secrets. `retryAfterMs` is the wait that the
 * receiver requested, at most one hour; after a timeout it is as long as that was, so that a receiver that is slow is
 * not asked again at once. `remaining` are the recipients of a mail that a later attempt is for, where others have got it.
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
};

/**
 * `nowMs` is the time of the attempt; `signal` cuts it off at shutdown; `replay` marks an event that is sent once more;
 * `remaining` are the recipients that an earlier attempt left, all where there are none; `entry` is where the event stands
 * in the event log, left out for one that stands in none.
 */
export type AttemptOptions = {
  signal: AbortSignal;
  nowMs: number;
  replay?: boolean;
  remaining?: readonly string[] | undefined;
  entry?: string;
};

/** Several events in one message, oldest first. `id` names the message: sent again, it is recognised by it. */
export type Digest = { id: string; events: readonly RenderedEvent[] };

/** An event with where it stands in the event log; null for one that stands in none. */
export type LoggedEvent = { event: RenderedEvent; entry: string | null };

/**
 * Delivers events to one receiver. `deliver` makes one attempt and reports whatever the receiver did; it throws only
 * an `AbortError`, when `signal` cut the attempt off. `deliverDigest` is there where events can be sent as one message,
 * `deliverTogether` where several that are due can be taken in their order in one step, all or none. `close` gives up the
 * connections, at once.
 */
export type Notifier = {
  deliver(event: RenderedEvent, options: AttemptOptions): Promise<AttemptResult>;
  deliverDigest?(digest: Digest, options: AttemptOptions): Promise<AttemptResult>;
  deliverTogether?(events: readonly LoggedEvent[], options: AttemptOptions): Promise<AttemptResult>;
  close(): Promise<void>;
};

/** The address of an event as a receiver gets it; whoever has it can read that event for some days from `nowMs` on. */
export type EventUrl = (event: { id: string; receiver: string }, nowMs: number) => string;
