import { z } from 'zod';
import type { Attempt, DeliveryFact } from '../store/deliveries.ts';
import { isoTime, isoTimeOrNull } from './moment.ts';

const ATTEMPT = z.object({
  at: z.iso.datetime(),
  outcome: z
    .enum(['delivered', 'failed', 'rejected'])
    .describe('`rejected`: an answer that no other attempt would change.'),
  httpStatus: z.int().nullable(),
  smtpCode: z.int().nullable(),
  durationMs: z.number(),
  reason: z.string().describe('In a line.'),
  answer: z.string().describe('What was said: its beginning, of the last attempt all that is stored.'),
});

/** A delivery of an event to a receiver, as it stands. */
export const DELIVERY = z
  .object({
    id: z.string().describe('The event’s id; for an event that was sent once more the replay’s behind it.'),
    receiver: z.string(),
    state: z
      .enum(['waiting', 'retrying', 'delivered', 'dead'])
      .describe(
        '`waiting`: it was not attempted yet. `retrying`: it failed, and is tried again. `dead`: it was given up.',
      ),
    attempts: z.int().describe('How many were made.'),
    lastAttempts: z
      .array(ATTEMPT)
      .describe('The last of them, the newest last; none where the first succeeded.'),
    nextAttemptAt: z.iso
      .datetime()
      .nullable()
      .describe('When it is tried again; null where that is at once, or never, or hangs on the receiver.'),
    openedAt: z.iso.datetime().nullable().describe('When it was queued; null once it was delivered.'),
    waitsFor: z.string().nullable().describe('The delivery of the same subject that comes before it.'),
    replay: z.string().nullable().describe('The replay that sends the event once more.'),
  })
  .meta({ id: 'Delivery' });

/** What a receiver said to a test event. */
export const TESTED = z
  .object({
    receiver: z.string(),
    event: z.string().describe('The id of the event that was sent, of type `intentwatch.test`.'),
    outcome: z.enum(['delivered', 'failed', 'rejected']),
    httpStatus: z.int().nullable(),
    smtpCode: z.int().nullable(),
    durationMs: z.number(),
    reason: z.string(),
    answer: z.string(),
  })
  .meta({ id: 'Tested' });

export type Delivery = z.infer<typeof DELIVERY>;

/** A delivery as it is shown. */
export function deliveryOf(receiver: string, id: string, fact: DeliveryFact): Delivery {
  const last = fact.attempts.at(-1);
  return {
    id,
    receiver,
    state: stateOf(fact),
    attempts: fact.tries,
    lastAttempts: fact.attempts.map((attempt) => attemptOf(attempt, attempt === last ? fact.answer : '')),
    nextAttemptAt: fact.outcome === 'pending' ? isoTimeOrNull(fact.nextAt) : null,
    openedAt: fact.turn === null ? null : isoTime(Math.floor(fact.turn / 1_000)),
    waitsFor: fact.outcome === 'pending' ? fact.after : null,
    replay: fact.replay,
  };
}

function stateOf({ outcome, tries }: DeliveryFact): Delivery['state'] {
  if (outcome !== 'pending') return outcome;
  return tries === 0 ? 'waiting' : 'retrying';
}

function attemptOf(attempt: Attempt, whole: string): z.infer<typeof ATTEMPT> {
  const { atMs, outcome, httpStatus, smtpCode, durationMs, reason, answer } = attempt;
  return { at: isoTime(atMs), outcome, httpStatus, smtpCode, durationMs, reason, answer: whole || answer };
}
