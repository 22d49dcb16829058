import { z } from 'zod';
import type { RedisClient } from './commands.ts';
import { redisTimeMs } from './connection.ts';
import { compareEntries } from './entry-order.ts';
import type { Keys } from './keys.ts';
import { operatorSubject } from './operator-event.ts';
import { type ReceiverMove, receiverEvent } from './receivers.ts';
import { INTEGER_TEXT, JSON_TEXT, type OnForeign, readHash } from './stored.ts';

const ATTEMPT = z.object({
  atMs: z.number(),
  outcome: z.enum(['delivered', 'failed', 'rejected']),
  httpStatus: z.number().nullable(),
  smtpCode: z.number().nullable(),
  durationMs: z.number(),
  reason: z.string(),
  answer: z.string(),
  nextAtMs: z.number().nullable(),
  // Never empty: Lua writes an empty list as an object.
  remaining: z.array(z.string()).min(1).optional(),
});

const OUTCOME = z.enum(['pending', 'delivered', 'dead']);

const FACT = z.object({
  outcome: OUTCOME,
  entry: z.string().regex(/^\d+-\d+$/),
  roots: JSON_TEXT.pipe(z.array(z.string())),
  tries: INTEGER_TEXT.default(0),
  earlierTries: INTEGER_TEXT.default(0),
  after: z.string().nullable().default(null),
  replay: z.string().nullable().default(null),
  batch: z.string().nullable().default(null),
  attempts: JSON_TEXT.pipe(z.array(ATTEMPT)).default([]),
});

/**
 * One try of a delivery. Times in ms; `nextAtMs` is when the next try is due, null when there is none; `remaining` are the
 * recipients that still miss it, left out where that is all of them or none.
 */
export type Attempt = z.infer<typeof ATTEMPT>;

export type DeliveryOutcome = z.infer<typeof OUTCOME>;

/**
 * What is known of a delivery. It decides whether the delivery is done; a queue job is only the way to get there.
 * `entry` is the event's place in the log, `roots` the claims that lead to the receiver, `tries` counts all attempts,
 * `earlierTries` those from before the delivery began anew; the last of them are in `attempts`. `after` is the delivery
 * of the same subject that must have ended first, `replay` the replay that sends the event once more, `batch` the message
 * that it is sent in together with others.
 */
export type DeliveryFact = z.infer<typeof FACT>;

/** A delivery that follows from the log. `subject` is given when the deliveries of one subject follow each other. */
export type Opening = {
  id: string;
  entry: string;
  roots: readonly string[];
  subject: string | null;
  replay: string | null;
};

const OPENED = z.enum(['opened', 'open', 'opened-waiting', 'waiting', 'done', 'fenced']);

const RENEWED = z.enum(['open', 'waiting', 'delivered', 'gone', 'fenced']);

/** What noting an attempt came to: the outcome that stands, the receiver's move, and the deliveries that it releases. */
export type Noted = { outcome: DeliveryOutcome; moved: ReceiverMove | null; next: string[] };

const NOTED = z.tuple([OUTCOME, z.enum(['failing', 'disabled', 'recovered', ''])], z.string());

/** How many attempts of a delivery are kept. */
const ATTEMPTS_KEPT = 12;

/** Failed attempts of one event that make its receiver failing; a span of failures disables it with no fewer. */
const FAILING_AFTER = 4;

/** How many open deliveries are looked at in one go. */
const OLDEST_PENDING = 10_000;

/** How many facts are asked for in one go. */
const CHUNK = 1_000;

/** The facts of deliveries, one per event and receiver and replay, kept as long as the event. */
export class DeliveryStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #retentionMs: number;
  readonly #onForeign: OnForeign;

  constructor(redis: RedisClient, keys: Keys, options: { retentionMs: number; onForeign?: OnForeign }) {
    this.#redis = redis;
    this.#keys = keys;
    this.#retentionMs = options.retentionMs;
    this.#onForeign = options.onForeign ?? (() => undefined);
  }

  /** Opens deliveries of one receiver, in order, under the relay's fencing token. */
  async open(
    fence: string,
    receiver: string,
    deliveries: readonly Opening[],
  ): Promise<z.infer<typeof OPENED>[]> {
    const keys = this.#keys;
    const results = await Promise.all(
      deliveries.map(({ id, entry, roots, subject, replay }) =>
        this.#redis.iwEnqueue(
          keys.delivery(receiver, id),
          keys.pending(receiver),
          keys.relayLease,
          keys.last(receiver, { subject: subject ?? '', replay: replay ?? '' }),
          fence,
          id,
          entry,
          JSON.stringify(roots),
          String(this.#retentionMs),
          keys.delivery(receiver, ''),
          subject === null ? '' : '1',
          replay ?? '',
          keys.replay(''),
        ),
      ),
    );
    return results.map((result) => OPENED.parse(result));
  }

  /**
   * The fact of a delivery; null when it was never opened or its time is over. One that does not say what is delivered
   * to whom is forgotten: a replay opens it again.
   */
  async fact(receiver: string, id: string): Promise<DeliveryFact | null> {
    const key = this.#keys.delivery(receiver, id);
    const fields = await this.#redis.hgetall(key);
    if (Object.keys(fields).length === 0) return null;
    const { value, foreign } = readHash(FACT, fields);
    if (foreign === null) return value;
    this.#onForeign({ what: 'delivery', where: key, reason: foreign.reason });
    if (value !== null) {
      await this.#redis.hdel(key, ...foreign.fields);
      return value;
    }
    await this.#redis.del(key);
    await this.#redis.zrem(this.#keys.dead(receiver), id);
    await this.forget(receiver, id);
    return null;
  }

  /**
   * Notes an attempt, also for the `others` that were sent in the same message. What was delivered stays delivered. `disableAfterMs` is the span of nothing but failures that
   * disables the receiver; null when the attempt says nothing about it.
   */
  async record(
    receiver: string,
    id: string,
    noted: {
      attempt: Attempt;
      outcome: DeliveryOutcome;
      disableAfterMs: number | null;
      others?: readonly string[];
    },
  ): Promise<Noted> {
    const keys = this.#keys;
    const { attempt, outcome, disableAfterMs, others = [] } = noted;
    const nowMs = await redisTimeMs(this.#redis);
    const event = (word: ReceiverMove): string =>
      receiverEvent({ name: receiver, word, reason: attempt.reason, nowMs });
    const [stands, moved, ...next] = NOTED.parse(
      await this.#redis.iwRecordAttempt(
        keys.delivery(receiver, id),
        keys.pending(receiver),
        keys.dead(receiver),
        keys.receiver(receiver),
        keys.events,
        id,
        JSON.stringify(attempt),
        outcome,
        String(ATTEMPTS_KEPT),
        String(this.#retentionMs),
        keys.replay(''),
        disableAfterMs === null ? '' : String(disableAfterMs),
        String(FAILING_AFTER),
        operatorSubject('receiver', receiver),
        event('failing'),
        event('disabled'),
        event('recovered'),
        JSON.stringify(others),
        keys.delivery(receiver, ''),
      ),
    );
    return { outcome: stands, moved: moved === '' ? null : moved, next };
  }

  /** Has a delivery begin anew, with all attempts before it. `fence` is the relay's token, '' for the operator. */
  async renew(fence: string, receiver: string, id: string): Promise<z.infer<typeof RENEWED>> {
    const keys = this.#keys;
    const renewed = await this.#redis.iwRenew(
      keys.delivery(receiver, id),
      keys.pending(receiver),
      keys.dead(receiver),
      keys.relayLease,
      fence,
      id,
      String(this.#retentionMs),
      keys.delivery(receiver, ''),
      keys.replay(''),
    );
    return RENEWED.parse(renewed);
  }

  /** Takes a delivery whose fact is gone off the list of open ones. */
  async forget(receiver: string, id: string): Promise<void> {
    await this.#redis.zrem(this.#keys.pending(receiver), id);
  }

  /** The ids of the oldest open deliveries, oldest first. */
  async pending(receiver: string): Promise<string[]> {
    return this.#redis.zrange(this.#keys.pending(receiver), '0', String(OLDEST_PENDING - 1));
  }

  /** The ids of all open deliveries in the order of the log. Those whose facts are gone come first. */
  async pendingByEntry(receiver: string): Promise<string[]> {
    const ids = await this.#redis.zrange(this.#keys.pending(receiver), '0', '-1');
    const entries = await this.#fields(receiver, ids, 'entry');
    return ids
      .map((id, index) => ({ id, entry: entries[index] ?? '0-0' }))
      .sort((one, other) => compareEntries(one.entry, other.entry))
      .map(({ id }) => id);
  }

  /** Those of some deliveries that wait for no other: the one before them has ended, or there is none. */
  async released(receiver: string, ids: readonly string[]): Promise<string[]> {
    const before = await this.#fields(receiver, ids, 'after');
    const waiting = ids.flatMap((id, index) => {
      const after = before[index] ?? null;
      return after === null ? [] : [{ id, after }];
    });
    const outcomes = await this.#fields(
      receiver,
      waiting.map(({ after }) => after),
      'outcome',
    );
    const held = new Set(waiting.filter((_, index) => outcomes[index] === 'pending').map(({ id }) => id));
    return ids.filter((id) => !held.has(id));
  }

  /** One field of the facts of some deliveries, null where there is none. */
  async #fields(receiver: string, ids: readonly string[], field: string): Promise<(string | null)[]> {
    const found: (string | null)[] = [];
    for (let index = 0; index < ids.length; index += CHUNK) {
      const chunk = ids.slice(index, index + CHUNK);
      const values = chunk.map((id) => this.#redis.hget(this.#keys.delivery(receiver, id), field));
      found.push(...(await Promise.all(values)));
    }
    return found;
  }

  /** The ids of dead letters that died at a moment (Redis time, ms) or later, the first to die first. */
  async dead(receiver: string, { sinceMs, count }: { sinceMs: number; count: number }): Promise<string[]> {
    return this.#redis.zrange(this.#keys.dead(receiver), sinceMs, '+inf', 'BYSCORE', 'LIMIT', 0, count);
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

  /** Gives up open deliveries from before a moment (Redis time, ms), whose events have left the log. Returns how many. */
  async giveUp(receiver: string, beforeMs: number): Promise<number> {
    const key = this.#keys.pending(receiver);
    const ids = await this.#redis.zrange(key, '-inf', `(${beforeMs}`, 'BYSCORE', 'LIMIT', 0, CHUNK);
    if (ids.length === 0) return 0;
    // The facts go first: what waits for one that is gone waits no longer.
    await this.#redis.del(...ids.map((id) => this.#keys.delivery(receiver, id)));
    return this.#redis.zrem(key, ...ids);
  }
}
