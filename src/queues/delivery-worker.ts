import { DelayedError, type Job, Worker } from 'bullmq';
import type { Logger } from 'pino';
import type { Receiver } from '../config/config.ts';
import { renderEvent } from '../domain/render.ts';
import type { Notifier } from '../notifiers/notifier.ts';
import type { Signals } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import type { Attempt, DeliveryFact, DeliveryOutcome, DeliveryStore } from '../store/deliveries.ts';
import type { EventLog } from '../store/event-log.ts';
import type { Keys } from '../store/keys.ts';
import type { Registry } from '../store/registry.ts';
import { DELIVERY_JOB, deliveryQueueName, TAKE_OVER } from './names.ts';
import { Pace } from './pace.ts';

/** What a delivery worker works with. */
export type DeliveryParts = {
  redis: RedisClient;
  keys: Keys;
  events: EventLog;
  registry: Registry;
  deliveries: DeliveryStore;
  signals: Signals;
  log: Logger;
};

/** After an error of our own (Redis away, a bug) a delivery is tried again. */
const ERROR_RETRY_MS = 2_000;

type DeliveryRun = { job: Job<{ eventId: string }>; token: string | undefined; signal: AbortSignal };

/** Delivers the events of one receiver. The fact of a delivery decides what is done; the job only brings it up. */
export class DeliveryWorker {
  readonly #receiver: Receiver;
  readonly #notifier: Notifier;
  readonly #parts: DeliveryParts;
  readonly #pace = new Pace();
  #worker: Worker<{ eventId: string }> | null = null;

  constructor(receiver: Receiver, notifier: Notifier, parts: DeliveryParts) {
    this.#receiver = receiver;
    this.#notifier = notifier;
    this.#parts = parts;
  }

  start(): void {
    const process = async (
      job: Job<{ eventId: string }>,
      token?: string,
      signal?: AbortSignal,
    ): Promise<void> => this.#process({ job, token, signal: signal ?? new AbortController().signal });
    const worker = new Worker<{ eventId: string }>(deliveryQueueName(this.#receiver.name), process, {
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
      afterMs = await this.#deliver(DELIVERY_JOB.parse(run.job.data).eventId, run.signal);
    } catch (error) {
      if (!run.signal.aborted) this.#parts.log.error({ job: run.job.id, error }, 'delivery.error');
      afterMs = run.signal.aborted ? 0 : ERROR_RETRY_MS;
    }
    if (afterMs === null) return;
    await run.job.moveToDelayed(Date.now() + afterMs, run.token);
    throw new DelayedError();
  }

  /** Makes one attempt, if the fact says that one is due. Returns the ms until the next; null when it is over. */
  async #deliver(eventId: string, signal: AbortSignal): Promise<number | null> {
    const { deliveries, events, registry } = this.#parts;
    const { name } = this.#receiver;
    const fact = await deliveries.fact(name, eventId);
    if (fact === null) await deliveries.forget(name, eventId);
    if (fact?.outcome !== 'pending') return null;
    const event = await events.at(fact.entry);
    if (event === null) {
      const gone = failed('the event has left the log: its retention is over');
      return this.#note({ eventId, eventType: 'unknown', fact, attempt: gone, outcome: 'dead' });
    }
    const rendered = renderEvent(event, fact.roots, await registry.subscriptions(fact.roots));
    const nowMs = Date.now();
    const result = await this.#notifier.deliver(rendered, { signal, nowMs });
    this.#pace.note({ delivered: result.outcome === 'delivered' });
    const { retryAfterMs, ...rest } = result;
    const afterMs = result.outcome === 'failed' ? this.#waitAfter(fact.tries + 1, retryAfterMs) : null;
    const attempt: Attempt = {
      ...rest,
      atMs: nowMs,
      nextAtMs: afterMs === null ? null : Date.now() + afterMs,
    };
    const outcome = result.outcome === 'delivered' ? 'delivered' : afterMs === null ? 'dead' : 'pending';
    return this.#note({ eventId, eventType: event.type, fact, attempt, outcome });
  }

  async #note(noted: {
    eventId: string;
    eventType: string;
    fact: DeliveryFact;
    attempt: Attempt;
    outcome: DeliveryOutcome;
  }): Promise<number | null> {
    const { eventId, eventType, fact, attempt, outcome } = noted;
    const { name: receiver } = this.#receiver;
    const { signals, log, deliveries } = this.#parts;
    const stands = await deliveries.record(receiver, eventId, { attempt, outcome });
    const { outcome: result, durationMs, httpStatus, smtpCode, reason } = attempt;
    const number = fact.tries + 1;
    signals.emit('delivery.attempted', {
      receiver,
      eventId,
      eventType,
      attempt: number,
      outcome: result,
      durationSeconds: durationMs / 1_000,
      reason,
    });
    if (stands !== 'pending')
      signals.emit('delivery.ended', { receiver, eventId, eventType, outcome: stands });
    const level = stands === 'dead' ? 'error' : result === 'delivered' ? 'info' : 'warn';
    const line = {
      receiver,
      eventId,
      eventType,
      attempt: number,
      result,
      httpStatus,
      smtpCode,
      durationMs,
      reason,
    };
    log[level]({ ...line, outcome: stands }, 'delivery.attempted');
    return stands === 'pending' && attempt.nextAtMs !== null
      ? Math.max(0, attempt.nextAtMs - Date.now())
      : null;
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
