import { DelayedError, type Job, Worker } from 'bullmq';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Receiver } from '../config/config.ts';
import { parseDeliveryId } from '../domain/delivery-id.ts';
import type { AttemptOptions, AttemptResult, Notifier } from '../notifiers/notifier.ts';
import type { Signals } from '../signals.ts';
import type { BatchStore } from '../store/batches.ts';
import type { RedisClient } from '../store/commands.ts';
import type { Attempt, DeliveryOutcome, DeliveryStore } from '../store/deliveries.ts';
import type { EventLog } from '../store/event-log.ts';
import type { Keys } from '../store/keys.ts';
import { isHeld, type ReceiverStore } from '../store/receivers.ts';
import type { Registry } from '../store/registry.ts';
import type { DeliveryJob, DeliveryQueues } from './delivery-queues.ts';
import { type Letter, readLetters } from './letters.ts';
import { deliveryQueueName, TAKE_OVER } from './names.ts';
import { Pace } from './pace.ts';
import { takeTurn } from './turn.ts';

/** What a delivery worker works with. */
export type DeliveryParts = {
  redis: RedisClient;
  keys: Keys;
  events: EventLog;
  registry: Registry;
  receivers: ReceiverStore;
  deliveries: DeliveryStore;
  batches: BatchStore;
  queues: DeliveryQueues;
  signals: Signals;
  log: Logger;
};

/** After an error of our own (Redis away, a bug) a delivery is tried again. */
const ERROR_RETRY_MS = 2_000;

/** So long a delivery whose event only a newer version can read is left to one. */
const NEWER_RETRY_MS = 30_000;

type DeliveryRun = { job: Job<DeliveryJob>; token: string | undefined; signal: AbortSignal };

/** What is sent at once: one delivery, or those of a batch. */
type Message = { letters: readonly Letter[]; batch: string | null };

/** Delivers the events of one receiver. The fact of a delivery decides what is done; the job only brings it up. */
export class DeliveryWorker {
  readonly #receiver: Receiver;
  readonly #notifier: Notifier;
  readonly #parts: DeliveryParts;
  readonly #pace = new Pace();
  #worker: Worker<DeliveryJob> | null = null;

  constructor(receiver: Receiver, notifier: Notifier, parts: DeliveryParts) {
    this.#receiver = receiver;
    this.#notifier = notifier;
    this.#parts = parts;
  }

  start(): void {
    const process = async (job: Job<DeliveryJob>, token?: string, signal?: AbortSignal): Promise<void> =>
      this.#process({ job, token, signal: signal ?? new AbortController().signal });
    const worker = new Worker<DeliveryJob>(deliveryQueueName(this.#receiver.name), process, {
      connection: this.#parts.redis,
      prefix: this.#parts.keys.queues,
      concurrency: this.#receiver.concurrency,
      ...TAKE_OVER,
    });
    worker.on('error', (error) => this.#parts.log.debug({ error: error.message }, 'delivery-worker.error'));
    this.#worker = worker;
  }

  isRunning(): boolean {
    return this.#worker?.isRunning() ?? false;
  }

  /** Stops taking deliveries and waits for attempts under way; `abort` cuts them off and hands them back. */
  async close(abort: AbortSignal): Promise<void> {
    const worker = this.#worker;
    if (worker !== null) {
      const cut = (): void => worker.cancelAllJobs('shutdown');
      abort.addEventListener('abort', cut);
      await worker.close();
      abort.removeEventListener('abort', cut);
    }
    await this.#notifier.close();
  }

  async #process(run: DeliveryRun): Promise<void> {
    let afterMs: number | null;
    await this.#pace.rest(run.signal);
    try {
      afterMs = await this.#deliver(z.string().parse(run.job.id), run.signal);
    } catch (error) {
      if (!run.signal.aborted) this.#parts.log.error({ job: run.job.id, error }, 'delivery.error');
      afterMs = run.signal.aborted ? 0 : ERROR_RETRY_MS;
    }
    if (afterMs === null) return;
    await run.job.moveToDelayed(Date.now() + afterMs, run.token);
    throw new DelayedError();
  }

  /** Makes one attempt, if the fact says that one is due. Returns the ms until the next; null when there is none. */
  async #deliver(id: string, signal: AbortSignal): Promise<number | null> {
    const { receivers, deliveries } = this.#parts;
    const { name } = this.#receiver;
    const [fact, condition] = await Promise.all([deliveries.fact(name, id), receivers.condition(name)]);
    if (fact === null) await deliveries.forget(name, id);
    if (fact?.outcome !== 'pending') return null;
    // Its fact waits: enabling the receiver queues it again.
    if (isHeld(condition)) return null;
    const turn = await takeTurn({ receiver: this.#receiver, id, fact }, this.#parts);
    if (turn.do === 'wait') return turn.afterMs;
    const letters = await readLetters(name, turn.members, this.#parts);
    if (letters.some(({ waits }) => waits)) return NEWER_RETRY_MS;
    for (const letter of letters) {
      if (letter.missing === null) continue;
      await this.#note([letter], { attempt: failed(letter.missing), outcome: 'dead', disableAfterMs: null });
    }
    const sent = letters.filter(({ event }) => event !== null);
    return sent.length === 0
      ? null
      : this.#attempt({ letters: sent, batch: turn.members.length > 1 ? turn.batch : null }, signal);
  }

  /** Sends one message: about one event, or as the batch of several. */
  async #attempt(message: Message, signal: AbortSignal): Promise<number | null> {
    const { letters } = message;
    const [first] = letters;
    const nowMs = Date.now();
    const replay = first?.fact.replay != null;
    const result = await this.#send(message, { signal, nowMs, replay, remaining: remainingOf(letters) });
    this.#pace.note({ delivered: result.outcome === 'delivered' });
    const { retryAfterMs, ...rest } = result;
    const number = Math.max(...letters.map(({ fact }) => fact.tries - fact.earlierTries + 1));
    const afterMs = result.outcome === 'failed' ? this.#waitAfter(number, retryAfterMs) : null;
    const attempt: Attempt = {
      ...rest,
      atMs: nowMs,
      nextAtMs: afterMs === null ? null : Date.now() + afterMs,
    };
    const outcome = result.outcome === 'delivered' ? 'delivered' : afterMs === null ? 'dead' : 'pending';
    const { disableAfterMs } = this.#receiver;
    return this.#note(letters, { attempt, outcome, disableAfterMs });
  }

  async #send({ letters, batch }: Message, options: AttemptOptions): Promise<AttemptResult> {
    const [event, ...others] = letters.flatMap((letter) => letter.event ?? []);
    if (event === undefined) throw new Error('there is no event to send');
    if (batch === null) return this.#notifier.deliver(event, options);
    if (this.#notifier.deliverDigest === undefined) {
      throw new Error(
        `receiver ${this.#receiver.name} takes one event at a time, but several are to be sent`,
      );
    }
    return this.#notifier.deliverDigest({ id: batch, events: [event, ...others] }, options);
  }

  /** Notes an attempt with all its deliveries in one step. Returns the ms until the next; null when there is none. */
  async #note(
    letters: readonly Letter[],
    noted: { attempt: Attempt; outcome: DeliveryOutcome; disableAfterMs: number | null },
  ): Promise<number | null> {
    const [first, ...rest] = letters;
    if (first === undefined) return null;
    const { attempt } = noted;
    const { name: receiver } = this.#receiver;
    const { signals, log, deliveries, queues } = this.#parts;
    const others = rest.map(({ id }) => id);
    const stands = await deliveries.record(receiver, first.id, { ...noted, others });
    // What waited for these has no job yet. A crash before this line leaves it to the repeating check.
    if (stands.next.length > 0)
      await queues.add(
        receiver,
        stands.next.map((id) => ({ id, afterMs: 0 })),
      );
    const { outcome: result, durationMs, httpStatus, smtpCode, reason } = attempt;
    const number = first.fact.tries + 1;
    const about = aboutOf(receiver, first);
    const durationSeconds = durationMs / 1_000;
    signals.emit('delivery.attempted', {
      ...about,
      attempt: number,
      outcome: result,
      durationSeconds,
      reason,
    });
    const level = stands.outcome === 'dead' ? 'error' : result === 'delivered' ? 'info' : 'warn';
    const line = { ...about, attempt: number, result, httpStatus, smtpCode, durationMs, reason };
    const { replay } = first.fact;
    const more = {
      ...(replay === null ? {} : { replay }),
      ...(rest.length === 0 ? {} : { events: letters.length }),
    };
    log[level]({ ...line, ...more, outcome: stands.outcome }, 'delivery.attempted');
    if (stands.moved !== null) {
      signals.emit('receiver.moved', { receiver, move: stands.moved, reason });
      const how = stands.moved === 'recovered' ? 'info' : 'error';
      log[how]({ receiver, move: stands.moved, reason }, 'receiver.moved');
    }
    if (stands.outcome === 'pending')
      return attempt.nextAtMs === null ? null : Math.max(0, attempt.nextAtMs - Date.now());
    for (const letter of letters)
      signals.emit('delivery.ended', { ...aboutOf(receiver, letter), outcome: stands.outcome });
    // They would only come up to find that they have ended; with a rate limit they would keep others waiting.
    await queues.drop(receiver, others);
    return null;
  }

  /** The wait after the nth failed attempt, ms; null when it was the last. A receiver may ask for a longer one. */
  #waitAfter(attempt: number, retryAfterMs: number | null): number | null {
    const { delaysMs, jitter } = this.#receiver.retries;
    const delayMs = delaysMs[attempt - 1];
    if (delayMs === undefined) return null;
    const jittered = delayMs * (1 + jitter * (Math.random() * 2 - 1));
    return Math.round(Math.max(jittered, retryAfterMs ?? 0));
  }
}

/** Whom the last attempt left out, where that is the same for all that is sent. */
function remainingOf(letters: readonly Letter[]): readonly string[] | undefined {
  const [first, ...others] = letters.map(({ fact }) => fact.attempts.at(-1)?.remaining);
  return others.every((other) => other?.join() === first?.join()) ? first : undefined;
}

function aboutOf(
  receiver: string,
  { id, event }: Letter,
): { receiver: string; subject: string | null; eventId: string; eventType: string } {
  const subject = event?.data.subject.id ?? null;
  return { receiver, subject, eventId: parseDeliveryId(id).eventId, eventType: event?.type ?? 'unknown' };
}

function failed(reason: string): Attempt {
  return {
    atMs: Date.now(),
    outcome: 'failed',
    httpStatus: null,
    smtpCode: null,
    durationMs: 0,
    reason,
    answer: '',
    nextAtMs: null,
  };
}
