import { z } from 'zod';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';

const ATTEMPT = z.object({
  atMs: z.number(),
  outcome: z.enum(['delivered', 'failed', 'rejected']),
  httpStatus: z.number().nullable(),
  smtpCode: z.number().nullable(),
  durationMs: z.number(),
  reason: z.string(),
  answer: z.string(),
  nextAtMs: z.number().nullable(),
});

const OUTCOME = z.enum(['pending', 'delivered', 'dead']);

const FACT = z.object({
  outcome: OUTCOME,
  entry: z.string(),
  roots: z.string().transform((text) => z.array(z.string()).parse(JSON.parse(text))),
  tries: z.string().default('0').transform(Number),
  attempts: z
    .string()
    .default('[]')
    .transform((text) => z.array(ATTEMPT).parse(JSON.parse(text))),
});

/** One try of a delivery. Times in ms; `nextAtMs` is when the next try is due, null when there is none. */
export type Attempt = z.infer<typeof ATTEMPT>;

export type DeliveryOutcome = z.infer<typeof OUTCOME>;

/**
 * What is known of a delivery. It decides whether the delivery is done; a queue job is only the way to get there.
 * `entry` is the event's place in the log, `roots` the claims that lead to the receiver, `tries` counts all attempts;
 * the last of them are in `attempts`.
 */
export type DeliveryFact = z.infer<typeof FACT>;

/** How many attempts of a delivery are kept. */
const ATTEMPTS_KEPT = 12;

/** How many open deliveries are looked at in one go. */
const OLDEST_PENDING = 10_000;

/** The facts of deliveries, one per event and receiver, kept as long as the event. */
export class DeliveryStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #retentionMs: number;

  constructor(redis: RedisClient, keys: Keys, options: { retentionMs: number }) {
    this.#redis = redis;
    this.#keys = keys;
    this.#retentionMs = options.retentionMs;
  }

  /** Opens deliveries of one receiver, in order, under the relay's fencing token. */
  async open(
    fence: string,
    receiver: string,
    deliveries: readonly { eventId: string; entry: string; roots: readonly string[] }[],
  ): Promise<('opened' | 'open' | 'done' | 'fenced')[]> {
    const keys = this.#keys;
    const results = await Promise.all(
      deliveries.map((delivery) =>
        this.#redis.iwEnqueue(
          keys.delivery(receiver, delivery.eventId),
          keys.pending(receiver),
          keys.relayLease,
          fence,
          delivery.eventId,
          delivery.entry,
          JSON.stringify(delivery.roots),
          String(this.#retentionMs),
        ),
      ),
    );
    return results.map((result) => z.enum(['opened', 'open', 'done', 'fenced']).parse(result));
  }

  /** The fact of a delivery; null when it was never opened or its time is over. */
  async fact(receiver: string, eventId: string): Promise<DeliveryFact | null> {
    const fields = await this.#redis.hgetall(this.#keys.delivery(receiver, eventId));
    return fields.outcome === undefined ? null : FACT.parse(fields);
  }

  /** Notes an attempt. Returns the outcome that stands: what was delivered stays delivered. */
  async record(
    receiver: string,
    eventId: string,
    noted: { attempt: Attempt; outcome: DeliveryOutcome },
  ): Promise<DeliveryOutcome> {
    const keys = this.#keys;
    const outcome = await this.#redis.iwRecordAttempt(
      keys.delivery(receiver, eventId),
      keys.pending(receiver),
      keys.dead(receiver),
      eventId,
      JSON.stringify(noted.attempt),
      noted.outcome,
      String(ATTEMPTS_KEPT),
      String(this.#retentionMs),
    );
    return OUTCOME.parse(outcome);
  }

  /** Takes a delivery whose fact is gone off the list of open ones. */
  async forget(receiver: string, eventId: string): Promise<void> {
    await this.#redis.zrem(this.#keys.pending(receiver), eventId);
  }

  /** The event ids of the oldest open deliveries, oldest first. */
  async pending(receiver: string): Promise<string[]> {
    return this.#redis.zrange(this.#keys.pending(receiver), '0', String(OLDEST_PENDING - 1));
  }

  async counts(receiver: string): Promise<{ pending: number; dead: number }> {
    const [pending, dead] = await Promise.all([
      this.#redis.zcard(this.#keys.pending(receiver)),
      this.#redis.zcard(this.#keys.dead(receiver)),
    ]);
    return { pending, dead };
  }

  /** Drops dead letters from before a moment (Redis time, ms). */
  async trim(receiver: string, beforeMs: number): Promise<void> {
    await this.#redis.zremrangebyscore(this.#keys.dead(receiver), '-inf', `(${beforeMs}`);
  }
}
