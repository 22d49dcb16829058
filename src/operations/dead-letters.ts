import { parseDeliveryId } from '../domain/events/delivery-id.ts';
import type { Event } from '../domain/events/event.ts';
import { wantsType } from '../domain/events/filter.ts';
import { chunks } from '../store/chunks.ts';
import { redisTimeMs } from '../store/connection.ts';
import type { DeliveryFact } from '../store/deliveries.ts';
import { compareEntries, eventOf } from '../store/log-entry.ts';
import { isHeld } from '../store/receivers.ts';
import { UnknownError } from './errors.ts';
import { type Moment, momentMs } from './moment.ts';
import type { OperationParts } from './parts.ts';
import { receiverNamed } from './resend.ts';

/** A dead letter with its fact; without event when that has left the log. */
type DeadLetter = { receiver: string; id: string; fact: DeliveryFact; event: Event | null };

/** So many dead letters are read in one go. */
const READ_AT_ONCE = 200;

/** So many dead letters are opened again in one step: Redis must not stand still for it. */
const RENEWED_AT_ONCE = 500;

/** Which dead letters are meant: by the ids of their events, or all those that fit what is given. */
export type WantedLetters = {
  events: readonly string[];
  since?: Moment;
  until?: Moment;
  type?: readonly string[];
  status?: readonly string[];
};

/** What came of trying dead letters again: how many of `all`; `gone` are of events that have left the log. */
export type Retried = { renewed: number; all: number; gone: number; isHeld: boolean };

/** Some dead letters of a receiver in the order of the log. */
async function lettersOf(
  receiver: string,
  ids: readonly string[],
  { stores: { deliveries, events } }: OperationParts,
): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = [];
  for (const some of chunks(ids, READ_AT_ONCE)) {
    const facts = await Promise.all(some.map((id) => deliveries.fact(receiver, id)));
    const known = some.flatMap((id, index) => {
      const fact = facts[index] ?? null;
      return fact === null ? [] : [{ receiver, id, fact }];
    });
    const entries = await events.atAll(known.map(({ fact }) => fact.entry));
    letters.push(...known.map((one, index) => ({ ...one, event: eventOf(entries[index] ?? null) })));
  }
  return letters.sort((a, b) => compareEntries(a.fact.entry, b.fact.entry));
}

/** True when a dead letter is one of those that were requested. What has left the log has no type any more. */
function isWanted({ id, fact, event }: DeadLetter, wanted: WantedLetters, nowMs: number): boolean {
  const { events, since, until, type, status } = wanted;
  const atMs = Number(fact.entry.split('-')[0]);
  const last = fact.attempts.at(-1);
  const code = String(last?.httpStatus ?? last?.smtpCode ?? 'none');
  return (
    (events.length === 0 || events.includes(parseDeliveryId(id).eventId)) &&
    (since === undefined || atMs >= momentMs(since, nowMs)) &&
    (until === undefined || atMs < momentMs(until, nowMs)) &&
    (type === undefined || (event !== null && wantsType(type, event.type))) &&
    (status === undefined || status.includes(code))
  );
}

/** Delivers dead letters again, with all attempts before them. Nothing is done unless all of the named events are there. */
export async function retryDeadLetters(
  receiver: string,
  asked: WantedLetters,
  parts: OperationParts,
): Promise<Retried> {
  await receiverNamed(receiver, parts);
  const all = await parts.stores.backlog.dead(receiver, { sinceMs: 0, count: Number.MAX_SAFE_INTEGER });
  const named = new Set(asked.events);
  const ids = named.size === 0 ? all : all.filter((id) => named.has(parseDeliveryId(id).eventId));
  const letters = await lettersOf(receiver, ids, parts);
  const known = new Set(letters.map(({ id }) => parseDeliveryId(id).eventId));
  const unknown = asked.events.filter((event) => !known.has(event));
  if (unknown.length > 0) {
    throw new UnknownError(
      `found ${unknown.join(', ')}, expected dead letters of ${receiver} (nothing was done)`,
    );
  }
  const nowMs = await redisTimeMs(parts.redis);
  const wanted = letters.filter((letter) => isWanted(letter, asked, nowMs));
  const kept = wanted.flatMap(({ id, event }) => (event === null ? [] : [id]));
  let renewed = 0;
  for (const some of chunks(kept, RENEWED_AT_ONCE))
    renewed += (await parts.stores.deliveries.renew('', receiver, some)) ?? 0;
  return {
    renewed,
    all: all.length,
    gone: wanted.length - kept.length,
    isHeld: isHeld(await parts.stores.receivers.condition(receiver)),
  };
}
