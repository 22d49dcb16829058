import type { Logger } from 'pino';
import type { Receiver } from '../../config/config.ts';
import { joinsWaiting, planBatch } from '../../domain/events/batching.ts';
import type { Directory } from '../../domain/transfers/chains.ts';
import type { AttemptResult, Notifier } from '../../notifiers/notifier.ts';
import type { Signals } from '../../signals.ts';
import type { BatchStore } from '../../store/batches.ts';
import type { DeliveryStore, EndedAttempt } from '../../store/deliveries.ts';
import type { DroppedStore } from '../../store/dropped.ts';
import type { EventLog } from '../../store/event-log.ts';
import type { Registry } from '../../store/registry.ts';
import { cutAnswer, judge, type MessageEnd, type PendingDelivery, readPending } from './attempts.ts';
import type { ClaimTime, MessageDeliveries } from './prefetch.ts';
import type { Sender } from './sender.ts';

type BatchDecisionDeps = { batches: BatchStore };

/** Decision to hold a delivery, or to send it: by itself (`batch` null), or as the batch that it leads. */
type BatchDecision =
  | { do: 'wait'; afterMs: number }
  | { do: 'send'; batch: string | null; members: readonly string[] };

/** Longest wait before a delivery is decided again, so that a changed config takes effect. */
const LONGEST_WAIT_MS = 300_000;

/**
 * Decides whether a due delivery waits for others or is sent, and with which; `nowMs` is Redis time. A receiver that gets every
 * event by itself at once needs no decision. A batch that was closed before its config changed is sent unchanged.
 */
async function decideBatch(
  { receiver, delivery, nowMs }: { receiver: Receiver; delivery: PendingDelivery; nowMs: number },
  { batches }: BatchDecisionDeps,
): Promise<BatchDecision> {
  const { id, fact } = delivery;
  const rules = receiver.type === 'email' ? receiver.batching : { digest: null, quietHours: null };
  if (rules.digest === null && rules.quietHours === null && fact.batch === null) {
    return { do: 'send', batch: null, members: [id] };
  }
  const found = await batches.join(receiver.name, id, { joins: joinsWaiting(rules, nowMs) });
  if ('members' in found) {
    if (found.leader === id) return { do: 'send', batch: found.id, members: found.members };
    return waitFor(Math.max(0, (fact.nextAt ?? 0) - nowMs) + receiver.timeoutMs);
  }
  const plan = planBatch(rules, found, nowMs);
  if (plan.do === 'wait') return waitFor(plan.untilMs - nowMs);
  const batch = await batches.close(receiver.name, id, { alone: plan.do === 'alone' });
  // Another delivery was faster, and leads it.
  if (batch === null) return waitFor(receiver.timeoutMs);
  return { do: 'send', batch: batch.id, members: batch.members };
}

function waitFor(ms: number): BatchDecision {
  return { do: 'wait', afterMs: Math.min(ms, LONGEST_WAIT_MS) };
}

/** Dependencies of making deliveries. */
export type DeliveryContext = {
  sender: Sender;
  events: EventLog;
  registry: Registry;
  deliveries: DeliveryStore;
  batches: BatchStore;
  dropped: DroppedStore;
  directory: Directory;
  signals: Signals;
  log: Logger;
};

/**
 * Runs the deliveries of one receiver; `cut` ends attempts at shutdown. `release` resolves when deliveries that are not sent now
 * are free, `record` when an end is recorded.
 */
export type DeliveryRunner = {
  receiver: Receiver;
  notifier: Notifier;
  deps: DeliveryContext;
  release: (ids: readonly string[]) => Promise<void>;
  record: (end: MessageEnd) => Promise<void>;
  cut: AbortSignal;
};

/** A message that was sent, with its attempt. `isPartial`: it has only a part of the claimed deliveries. */
export type SentMessage = MessageEnd & { isPartial: boolean };

/** The unit of sending: one delivery, or those of a batch, the leading one first; and the process that claimed it. */
type Message = {
  lead: PendingDelivery;
  deliveries: readonly PendingDelivery[];
  batch: string | null;
  process: string | null;
};

const NEWER_RETRY_MS = 30_000;

/** Wait while this process may have lost its claims: until a heartbeat is answered, the next ones are no better. */
const UNSURE_RETRY_MS = 250;

/**
 * Runs claimed deliveries, one or several that are sent together. It decides whether one is sent now and with which others,
 * reads their events, makes the attempt, and judges it. Returns the attempt, which is to be recorded; ms until they are due
 * again; or null when there is nothing to send.
 */
export async function runDelivery(
  claimed: MessageDeliveries,
  clock: ClaimTime,
  runner: DeliveryRunner,
): Promise<SentMessage | number | null> {
  const message = await prepare(claimed, clock, runner);
  if (message === null || typeof message === 'number') return message;
  // Another process may have claimed it while this one was stalled.
  if (!runner.deps.sender.isSure(clock.life)) return UNSURE_RETRY_MS;
  const made = await makeAttempts(message, clock, runner);
  if (made === null) return UNSURE_RETRY_MS;
  const { sent, attempt } = made;
  return {
    deliveries: sent.deliveries,
    lead: sent.lead,
    ended: endOf(sent, attempt, { clock, receiver: runner.receiver }),
    refused: attempt.result.refused ?? 0,
    isPartial: sent.deliveries.length < message.deliveries.length,
  };
}

/** Builds the message about some deliveries. Returns null when there is nothing to send, or ms until they are due again. */
async function prepare(
  claimed: MessageDeliveries,
  clock: ClaimTime,
  runner: DeliveryRunner,
): Promise<Message | number | null> {
  const { receiver, deps } = runner;
  const [delivery, ...others] = claimed;
  if (others.length > 0) {
    return { lead: delivery, deliveries: claimed, batch: null, process: deps.sender.id };
  }
  const decision = await decideBatch({ receiver, delivery, nowMs: nowBy(clock) }, deps);
  if (decision.do === 'wait') return decision.afterMs;
  const deliveries = await read(delivery, decision, runner);
  if (deliveries.some(({ waits }) => waits)) return NEWER_RETRY_MS;
  for (const one of deliveries) {
    if (one.isGone) await drop(one, runner);
    else if (one.missing !== null) await recordMissing(one, one.missing, { clock, runner });
  }
  return messageOf(delivery, deliveries, { decision, process: deps.sender.id });
}

async function read(
  delivery: PendingDelivery,
  { members }: SendDecision,
  { receiver, deps }: DeliveryRunner,
): Promise<PendingDelivery[]> {
  const isAlone = members.every((id) => id === delivery.id);
  return isAlone ? [delivery] : readPending(receiver.name, members, deps);
}

function messageOf(
  delivery: PendingDelivery,
  deliveries: readonly PendingDelivery[],
  { decision, process }: { decision: SendDecision; process: string },
): Message | null {
  const sent = deliveries.filter(({ event }) => event !== null);
  const [first] = sent;
  if (first === undefined) return null;
  const lead = deliveries.length === 1 ? delivery : (sent.find(({ id }) => id === delivery.id) ?? first);
  const batch = decision.members.length > 1 ? decision.batch : null;
  // Where the event of the leading delivery is gone, another of the batch takes its place, which no process claimed.
  return { lead, deliveries: sent, batch, process: lead.id === delivery.id ? process : null };
}

/** An attempt, and its time (own clock, ms). */
type TimedAttempt = { result: AttemptResult; atMs: number };

/**
 * Sends a message. Where several were to be accepted together and were not, the first is sent by itself and the others are
 * released: any of them may be the one that is refused. Returns the message that was sent in the end; null where another process
 * may have claimed the first by then.
 */
async function makeAttempts(
  message: Message,
  clock: ClaimTime,
  runner: DeliveryRunner,
): Promise<{ sent: Message; attempt: TimedAttempt } | null> {
  const attempt = await makeAttempt(message, runner);
  const isTogether = message.batch === null && message.deliveries.length > 1;
  if (!isTogether || attempt.result.outcome === 'delivered') return { sent: message, attempt };
  const { lead, deliveries } = message;
  await runner.release(deliveries.filter(({ id }) => id !== lead.id).map(({ id }) => id));
  if (!runner.deps.sender.isSure(clock.life)) return null;
  const alone = { ...message, deliveries: [lead] };
  return { sent: alone, attempt: await makeAttempt(alone, runner) };
}

async function makeAttempt(
  { lead, deliveries, batch }: Message,
  { receiver, notifier, cut }: DeliveryRunner,
): Promise<TimedAttempt> {
  const atMs = Date.now();
  const replay = lead.fact.replay !== null;
  const { entry } = lead.fact;
  const options = { signal: cut, nowMs: atMs, replay, remaining: remainingOf(deliveries), entry };
  if (batch === null && deliveries.length > 1) {
    if (notifier.deliverTogether === undefined) throw new Error(takesOne(receiver.name));
    const events = deliveries.flatMap(({ event, fact }) =>
      event === null ? [] : [{ event, entry: fact.entry }],
    );
    return { result: await notifier.deliverTogether(events, options), atMs };
  }
  if (batch === null) {
    if (lead.event === null) throw new Error('there is no event to send');
    return { result: await notifier.deliver(lead.event, options), atMs };
  }
  const events = deliveries.flatMap(({ event }) => event ?? []);
  if (notifier.deliverDigest === undefined) throw new Error(takesOne(receiver.name));
  return { result: await notifier.deliverDigest({ id: batch, events }, options), atMs };
}

function takesOne(receiver: string): string {
  return `receiver ${receiver} takes one event at a time, but several are to be sent`;
}

function endOf(
  { lead, deliveries, batch, process }: Message,
  { result, atMs }: TimedAttempt,
  { clock, receiver }: { clock: ClaimTime; receiver: Receiver },
): EndedAttempt {
  const nowMs = nowBy(clock);
  const verdict = judge({
    result,
    facts: deliveries.map(({ fact }) => fact),
    retries: receiver.retries,
    claimedMs: clock.redisMs,
    nowMs,
  });
  const { outcome, httpStatus, smtpCode, reason, durationMs, remaining } = result;
  // A first attempt that succeeds is not stored, and its answer need not be searched for secrets.
  const isStored = outcome !== 'delivered' || deliveries.some(({ fact }) => fact.attempts.length > 0);
  const answer = isStored ? result.answer : '';
  const attempt = { outcome, httpStatus, smtpCode, reason, durationMs, remaining };
  return {
    ids: idsOf(lead, deliveries),
    ...verdict,
    attempt: { ...attempt, answer: cutAnswer(answer), atMs, nextAtMs: verdict.nextAtMs },
    answer: outcome === 'delivered' ? '' : answer,
    disableAfterMs: receiver.disableAfterMs,
    process,
    // Claims may be added to a delivery of a batch that no process has claimed.
    isLogged: batch === null && process !== null && deliveries.every((delivery) => delivery.isLogged),
    nowMs,
  };
}

function idsOf(lead: PendingDelivery, deliveries: readonly PendingDelivery[]): [string, ...string[]] {
  return [lead.id, ...deliveries.flatMap(({ id }) => (id === lead.id ? [] : [id]))];
}

async function drop({ id }: PendingDelivery, { receiver, deps }: DeliveryRunner): Promise<void> {
  const { name } = receiver;
  const count = await deps.dropped.drop(name, [id], 'lost');
  if (count > 0) deps.signals.emit('receiver.events-dropped', { receiver: name, count });
}

async function recordMissing(
  delivery: PendingDelivery,
  reason: string,
  { clock, runner }: { clock: ClaimTime; runner: DeliveryRunner },
): Promise<void> {
  const ended: EndedAttempt = {
    ids: [delivery.id],
    attempt: { ...NOT_SENT, reason, atMs: Date.now() },
    outcome: 'dead',
    nextAtMs: null,
    counts: true,
    answer: '',
    restMs: null,
    disableAfterMs: null,
    process: null,
    nowMs: nowBy(clock),
  };
  await runner.record({ deliveries: [delivery], lead: delivery, ended, refused: 0 });
}

type SendDecision = Extract<BatchDecision, { do: 'send' }>;

const NOT_SENT = {
  outcome: 'failed',
  httpStatus: null,
  smtpCode: null,
  durationMs: 0,
  answer: '',
  nextAtMs: null,
} as const;

function nowBy({ redisMs, ownMs }: ClaimTime): number {
  return Math.round(redisMs + performance.now() - ownMs);
}

/** Addressees that the last attempt omitted, where they are the same for all that is sent. */
function remainingOf(deliveries: readonly PendingDelivery[]): readonly string[] | undefined {
  const [first, ...others] = deliveries.map(({ fact }) => fact.attempts.at(-1)?.remaining);
  return others.every((other) => other?.join() === first?.join()) ? first : undefined;
}
