import { z } from 'zod';
import { type Event, parseDeliveryId } from '../domain/events/event.ts';
import { wantsType } from '../domain/events/filter.ts';
import { chunks, redisTimeMs } from '../store/commands.ts';
import type { Attempt, DeliveryFact } from '../store/deliveries.ts';
import { compareEntries, eventOf } from '../store/log-entry.ts';
import { isHeld } from '../store/receivers.ts';
import { type OperationContext, UnknownError } from './operation.ts';
import { receiverNamed } from './resend.ts';
import { isoTime, isoTimeOrNull, type TimeInput, timeMs } from './time.ts';

const ATTEMPT = z.object({
  at: z.iso.datetime(),
  outcome: z
    .enum(['delivered', 'failed', 'rejected'])
    .describe('`rejected`: an answer that no other attempt would change.'),
  httpStatus: z.int().nullable(),
  smtpCode: z.int().nullable(),
  durationMs: z.number(),
  reason: z.string().describe('In a line.'),
  answer: z.string().describe('The response: its beginning, of the last attempt all that is stored.'),
});

/** The state of a delivery of an event to a receiver. */
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

/** A receiver's answer to a test event. */
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

/** Builds the view of a delivery. */
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

type DeadLetter = { receiver: string; id: string; fact: DeliveryFact; event: Event | null };

const READ_AT_ONCE = 200;

/** Dead letters that are opened again in one step, so that Redis is not blocked. */
const RENEWED_AT_ONCE = 500;

type WantedLetters = {
  events: readonly string[];
  since?: TimeInput;
  until?: TimeInput;
  type?: readonly string[];
  status?: readonly string[];
};

/** Result of a retry: `renewed` of `all`; `gone` are of events that have expired from the log. */
type Retried = { renewed: number; all: number; gone: number; isHeld: boolean };

async function lettersOf(
  receiver: string,
  ids: readonly string[],
  { stores: { deliveries, events } }: OperationContext,
): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = [];
  for (const some of chunks(ids, READ_AT_ONCE)) {
    const facts = await Promise.all(some.map((id) => deliveries.fact(receiver, id)));
    const found = some.flatMap((id, index) => {
      const fact = facts[index] ?? null;
      return fact === null ? [] : [{ receiver, id, fact }];
    });
    const entries = await events.readAllAt(found.map(({ fact }) => fact.entry));
    letters.push(...found.map((one, index) => ({ ...one, event: eventOf(entries[index] ?? null) })));
  }
  return letters.sort((a, b) => compareEntries(a.fact.entry, b.fact.entry));
}

function isWanted({ id, fact, event }: DeadLetter, wanted: WantedLetters, nowMs: number): boolean {
  const { events, since, until, type, status } = wanted;
  const atMs = Number(fact.entry.split('-')[0]);
  const last = fact.attempts.at(-1);
  const code = String(last?.httpStatus ?? last?.smtpCode ?? 'none');
  return (
    (events.length === 0 || events.includes(parseDeliveryId(id).eventId)) &&
    (since === undefined || atMs >= timeMs(since, nowMs)) &&
    (until === undefined || atMs < timeMs(until, nowMs)) &&
    (type === undefined || (event !== null && wantsType(type, event.type))) &&
    (status === undefined || status.includes(code))
  );
}

/** Delivers dead letters again, with all attempts before them. It does nothing unless all of the named events exist. */
export async function retryDeadLetters(
  receiver: string,
  selection: WantedLetters,
  deps: OperationContext,
): Promise<Retried> {
  await receiverNamed(receiver, deps);
  const all = await deps.stores.backlog.dead(receiver, { sinceMs: 0, count: Number.MAX_SAFE_INTEGER });
  const named = new Set(selection.events);
  const ids = named.size === 0 ? all : all.filter((id) => named.has(parseDeliveryId(id).eventId));
  const letters = await lettersOf(receiver, ids, deps);
  const found = new Set(letters.map(({ id }) => parseDeliveryId(id).eventId));
  const unknown = selection.events.filter((event) => !found.has(event));
  if (unknown.length > 0) {
    throw new UnknownError(
      `found ${unknown.join(', ')}, expected dead letters of ${receiver} (nothing was done)`,
    );
  }
  const nowMs = await redisTimeMs(deps.redis);
  const wanted = letters.filter((letter) => isWanted(letter, selection, nowMs));
  const remaining = wanted.flatMap(({ id, event }) => (event === null ? [] : [id]));
  let renewed = 0;
  for (const some of chunks(remaining, RENEWED_AT_ONCE))
    renewed += (await deps.stores.deliveries.renew('', receiver, some)) ?? 0;
  return {
    renewed,
    all: all.length,
    gone: wanted.length - remaining.length,
    isHeld: isHeld(await deps.stores.receivers.condition(receiver)),
  };
}
