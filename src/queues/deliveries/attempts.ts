import type { Logger } from 'pino';
import type { Retries } from '../../config/config.ts';
import { parseDeliveryId, type RenderedEvent } from '../../domain/events/event.ts';
import { renderEvent, withSuspended } from '../../domain/events/make-event.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import { loggedType } from '../../log.ts';
import type { AttemptResult } from '../../notifiers/notifier.ts';
import type { Signals } from '../../signals.ts';
import type { StoredSubscription } from '../../store/definitions.ts';
import type {
  Claims,
  DeliveryFact,
  DeliveryOutcome,
  DeliveryStore,
  EndedAttempt,
  Recorded,
} from '../../store/deliveries.ts';
import type { EventLog } from '../../store/event-log.ts';
import { compareEntries, eventOf, isOfNewerVersion, type LogEntry } from '../../store/log-entry.ts';
import type { Registry } from '../../store/registry.ts';

/**
 * An open delivery with its event as the receiver gets it. The event is null where it has expired from the log (`isGone`) or
 * cannot be read; `missing` states why. `waits`: a newer version can read it. `isLogged`: its claims are those of the entry.
 */
export type PendingDelivery = {
  id: string;
  fact: DeliveryFact;
  event: RenderedEvent | null;
  isLogged: boolean;
  missing: string | null;
  isGone: boolean;
  waits: boolean;
};

type DeliverySources = {
  deliveries: DeliveryStore;
  events: EventLog;
  registry: Registry;
  directory: Directory;
};

/** Reads the events of claimed deliveries; those in memory without a request. */
export async function readClaimed(
  { claimed, subscriptions }: Claims,
  { events, registry, directory }: DeliverySources,
): Promise<PendingDelivery[]> {
  const found = claimed.map(({ id, fact }) => events.cached(fact.entry, parseDeliveryId(id).eventId));
  const places = claimed.flatMap(({ fact }, index) => (found[index] === null ? [fact.entry] : []));
  const [texts, read] = await Promise.all([
    registry.readSubscriptions(subscriptions),
    events.readAllAt(places),
  ]);
  return claimed.map(({ id, fact }, index) => {
    const entry = found[index] ?? read.shift() ?? null;
    return withEvent({ id, fact, entry }, texts, directory);
  });
}

/** Reads the deliveries of one message, in the order of the log. Omits those that have ended. */
export async function readPending(
  receiver: string,
  ids: readonly string[],
  { deliveries, events, registry, directory }: DeliverySources,
): Promise<PendingDelivery[]> {
  const read = await Promise.all(
    ids.map(async (id): Promise<PendingDelivery | null> => {
      const fact = await deliveries.fact(receiver, id);
      if (fact?.outcome !== 'pending') return null;
      const [entry, subscriptions] = await Promise.all([
        events.at(fact.entry),
        registry.subscriptions(fact.claimKeys),
      ]);
      return withEvent({ id, fact, entry }, subscriptions, directory);
    }),
  );
  return read
    .filter((delivery) => delivery !== null)
    .sort((one, other) => compareEntries(one.fact.entry, other.fact.entry));
}

function withEvent(
  { id, fact, entry }: { id: string; fact: DeliveryFact; entry: LogEntry | null },
  subscriptions: ReadonlyMap<string, StoredSubscription>,
  directory: Directory,
): PendingDelivery {
  const event = eventOf(entry);
  if (event !== null) {
    const rendered = renderEvent(event, fact.claimKeys, subscriptions, directory);
    const shown = fact.suspended === '' ? rendered : withSuspended(rendered);
    const isLogged = entry?.kind === 'event' && entry.claimKeys.join('\n') === fact.claimKeys.join('\n');
    return { id, fact, event: shown, isLogged, missing: null, isGone: false, waits: false };
  }
  const isUnreadable = entry?.kind === 'unreadable';
  const missing = isUnreadable ? `the event's entry in the log cannot be read: ${entry.reason}` : null;
  const waits = isUnreadable && isOfNewerVersion(entry);
  return { id, fact, event, isLogged: false, missing, isGone: !isUnreadable, waits };
}

/** Rest of a receiver that reports too many requests and names no time or too short a one, ms. */
const REST_MS = 5_000;

/** Shortest named wait that counts: after `Retry-After: 0`, or a slow clock's past date, each answer would lead to a request. */
const SHORTEST_NAMED_MS = 1_000;

/** Uncounted attempts of a delivery. Beyond them a requested wait counts: one event must not hold up the others for ever. */
const MOST_UNCOUNTED = 30;

const TOO_MANY = 429;
/** Answers whose `Retry-After` applies to the receiver as a whole. A timeout, too, leads to a wait, without such a header. */
const RESTING_STATUSES: ReadonlySet<number> = new Set([TOO_MANY, 502, 503, 504]);

/** Characters of an answer that are stored with each attempt. The last answer is stored whole. */
const ANSWER_STORED = 160;

/** An attempt with the times around it (Redis time, ms). */
type JudgedAttempt = {
  result: { outcome: AttemptResult['outcome']; httpStatus: number | null; retryAfterMs: number | null };
  facts: readonly { tries: number; earlierTries: number; nextAt: number | null }[];
  retries: Retries;
  claimedMs: number;
  nowMs: number;
};

/**
 * Result of an attempt. `counts`: it uses up one of the delivery's tries. `nextAtMs`: time of the next try, null where that
 * does not change. `restMs`: rest that the receiver requests.
 */
type AttemptOutcome = {
  outcome: DeliveryOutcome;
  counts: boolean;
  nextAtMs: number | null;
  restMs: number | null;
};

/**
 * Decides what an attempt means for its deliveries. It uses up no try when the receiver requested time, or when it came before
 * their own time: then it only tested whether the receiver is back.
 */
export function judge({ result, facts, retries, claimedMs, nowMs }: JudgedAttempt): AttemptOutcome {
  if (result.outcome === 'delivered') {
    return { outcome: 'delivered', counts: true, nextAtMs: null, restMs: null };
  }
  if (result.outcome === 'rejected') return { outcome: 'dead', counts: true, nextAtMs: null, restMs: null };
  const restMs = restOf(result);
  const isEarly = facts.every(({ nextAt }) => nextAt !== null && claimedMs < nextAt);
  const mayRest = facts.every(({ earlierTries }) => earlierTries < MOST_UNCOUNTED);
  if (isEarly || (restMs !== null && mayRest)) {
    return { outcome: 'pending', counts: false, nextAtMs: null, restMs };
  }
  const number = Math.max(...facts.map(({ tries, earlierTries }) => tries - earlierTries + 1));
  const delayMs = retries.delaysMs[number - 1];
  if (delayMs === undefined) return { outcome: 'dead', counts: true, nextAtMs: null, restMs };
  const jittered = delayMs * (1 + retries.jitter * (Math.random() * 2 - 1));
  const afterMs = Math.max(jittered, result.retryAfterMs ?? 0);
  return { outcome: 'pending', counts: true, nextAtMs: Math.round(nowMs + afterMs), restMs };
}

function restOf({ httpStatus, retryAfterMs }: JudgedAttempt['result']): number | null {
  if (httpStatus === null || !RESTING_STATUSES.has(httpStatus)) return null;
  if (retryAfterMs === null) return httpStatus === TOO_MANY ? REST_MS : null;
  return retryAfterMs < SHORTEST_NAMED_MS ? REST_MS : retryAfterMs;
}

/** Cuts an answer to its beginning, for the list of attempts. */
export function cutAnswer(answer: string): string {
  const characters = [...answer];
  return characters.length <= ANSWER_STORED ? answer : `${characters.slice(0, ANSWER_STORED).join('')}…`;
}

/** The end of a message: its deliveries, the one that leads it, its attempt, and the recipients refused for good in it. */
export type MessageEnd = {
  deliveries: readonly PendingDelivery[];
  lead: PendingDelivery;
  ended: EndedAttempt;
  refused: number;
};

/** Emits and logs an attempt, the outcome of its deliveries, and the move of their receiver. */
export function reportRecorded(
  receiver: string,
  { deliveries, lead, ended: { attempt, nowMs }, refused }: MessageEnd,
  { outcome, moved }: Recorded,
  { signals, log }: { signals: Signals; log: Logger },
): void {
  const { outcome: result, durationMs, httpStatus, smtpCode, reason } = attempt;
  const number = lead.fact.tries + 1;
  const about = aboutOf(receiver, lead);
  const durationSeconds = durationMs / 1_000;
  signals.emit('delivery.attempted', {
    ...about,
    attempt: number,
    outcome: result,
    durationSeconds,
    reason,
    refused,
  });
  const isFine = result === 'delivered' && refused === 0;
  const level = outcome === 'dead' ? 'error' : isFine ? 'info' : 'warn';
  const line = {
    ...about,
    eventType: loggedType(about.eventType, lead.event?.data.status ?? null),
    attempt: number,
    result,
    httpStatus,
    smtpCode,
    durationMs,
    reason,
  };
  const { replay, turn } = lead.fact;
  const more = {
    ...(turn === null ? {} : { openedAt: new Date(Math.floor(turn / 1_000)).toISOString() }),
    ...(replay === null ? {} : { replay }),
    ...(deliveries.length === 1 ? {} : { events: deliveries.length }),
  };
  log[level]({ ...line, ...more, outcome }, 'delivery.attempted');
  if (moved !== null) {
    signals.emit('receiver.moved', { receiver, move: moved, reason });
    const how = moved === 'recovered' ? 'info' : 'error';
    log[how]({ receiver, move: moved, reason }, 'receiver.moved');
  }
  if (outcome === 'pending') return;
  for (const delivery of deliveries) {
    const delaySeconds = outcome === 'delivered' ? delayOf(delivery, nowMs) : null;
    signals.emit('delivery.ended', { ...aboutOf(receiver, delivery), outcome, delaySeconds });
  }
}

/** Delay from an event to its acceptance in seconds. Null for a replay: its event was accepted or missed before. */
function delayOf({ event, fact }: PendingDelivery, nowMs: number): number | null {
  if (event === null || fact.replay !== null) return null;
  return Math.max(0, nowMs - Date.parse(event.timestamp)) / 1_000;
}

function aboutOf(
  receiver: string,
  { id, event }: PendingDelivery,
): { receiver: string; subject: string | null; eventId: string; eventType: string } {
  const subject = event?.data.subject.id ?? null;
  return { receiver, subject, eventId: parseDeliveryId(id).eventId, eventType: event?.type ?? 'unknown' };
}
