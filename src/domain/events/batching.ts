import { type QuietHours, quietUntilMs } from './quiet-hours.ts';

/** When the events of a receiver are sent together: `everyMs` after the first, or at once when `max` wait. */
export type DigestRule = { everyMs: number; max: number };

/** What makes events wait for each other; with neither, each is sent by itself at once. */
export type BatchingRules = { digest: DigestRule | null; quietHours: QuietHours | null };

/** The number of events one digest holds at most. */
export const MOST_IN_DIGEST = 100;

/**
 * A delivery that may be due. `joinedAtMs` is since when it waits (Redis time), now if it does not; `waiting` counts all
 * that wait.
 */
export type BatchState = { joinedAtMs: number; isWaiting: boolean; waiting: number };

/**
 * What is to be done about a delivery: `wait` until a moment, send it `alone`, or send all that wait `together`.
 * `reason` says why.
 */
export type Plan =
  | { do: 'wait'; untilMs: number; reason: 'quiet' | 'batching' }
  | { do: 'alone'; reason: 'immediate' }
  | { do: 'together'; reason: 'enough' | 'time' | 'quiet-is-over' };

/** True when a delivery that comes up now joins those that wait. */
export function joinsWaiting({ digest, quietHours }: BatchingRules, nowMs: number): boolean {
  return digest !== null || (quietHours !== null && quietUntilMs(quietHours, nowMs) !== null);
}

/**
 * Decides about a delivery that comes up. Every delivery comes up when it is due, and the first that is takes all that
 * wait with it: so a digest goes out when the oldest is due, and the next one's time begins with the first event after.
 */
export function planBatch(rules: BatchingRules, batch: BatchState, nowMs: number): Plan {
  const { digest, quietHours } = rules;
  const { joinedAtMs, isWaiting, waiting } = batch;
  const quietEndMs = quietHours === null ? null : quietUntilMs(quietHours, nowMs);
  if (quietEndMs !== null) return { do: 'wait', untilMs: quietEndMs, reason: 'quiet' };
  if (digest === null)
    return isWaiting ? { do: 'together', reason: 'quiet-is-over' } : { do: 'alone', reason: 'immediate' };
  if (waiting >= digest.max) return { do: 'together', reason: 'enough' };
  const heldUntilMs = quietHours === null ? null : quietUntilMs(quietHours, joinedAtMs);
  if (heldUntilMs !== null) return { do: 'together', reason: 'quiet-is-over' };
  const dueMs = joinedAtMs + digest.everyMs;
  return dueMs <= nowMs
    ? { do: 'together', reason: 'time' }
    : { do: 'wait', untilMs: dueMs, reason: 'batching' };
}
