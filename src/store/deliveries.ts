import { z } from 'zod';
import { MOST_OPEN } from './backlog.ts';
import type { RedisClient } from './commands.ts';
import { type Attempt, type DeliveryFact, type DeliveryOutcome, FACT, OUTCOME } from './delivery-fact.ts';
import type { Keys } from './keys.ts';
import { operatorSubject } from './operator-event.ts';
import { type ReceiverMove, receiverEvent } from './receivers.ts';
import { type OnForeign, pairs, readHash } from './stored.ts';

export type { Attempt, DeliveryFact, DeliveryOutcome } from './delivery-fact.ts';

/**
 * A delivery that follows from the log. `subject` is given when the deliveries of one subject follow each other;
 * `isSuspended`: its event waited for what had left the config.
 */
export type Opening = {
  id: string;
  entry: string;
  roots: readonly string[];
  subject: string | null;
  isSuspended?: boolean;
};

/** What is opened for one receiver: for which replay if it is one, and where its cursor stands after it (null: as before). */
export type OpeningOrder = {
  receiver: string;
  deliveries: readonly Opening[];
  replay: string | null;
  cursor: string | null;
  process: string;
};

const OPENED = z.enum(['opened', 'open', 'opened-waiting', 'waiting', 'done', 'held']);

export type Opened = Exclude<z.infer<typeof OPENED>, 'held'>;

/** A delivery that this process claimed, with its event's entry as it stands; null when that has left the log. */
export type Claimed = { id: string; fact: DeliveryFact; entry: readonly string[] | null };

/**
 * Deliveries that were claimed at `nowMs` (Redis time). `waitMs` is when more may be; null when something else has to
 * happen first. `subscriptions` are the texts of those that lead to the receiver, with their names.
 */
export type Claims = {
  nowMs: number;
  waitMs: number | null;
  subscriptions: [name: string, text: string][];
  claimed: Claimed[];
};

const FIELDS = z.array(z.string());
const CLAIMS = z.tuple([z.string(), z.string(), FIELDS], z.tuple([z.string(), FIELDS, FIELDS]));

/**
 * What is noted of an attempt of deliveries, the one that led first. `nextAtMs` is when they are tried again, null where
 * that stays as it was; `counts` whether it uses up one of their attempts; `answer` is the whole of what was said, of
 * which the attempt keeps the beginning; `restMs` the wait that the receiver requested. `disableAfterMs` is the span of
 * nothing but failures that disables the receiver; null when the attempt says nothing about it. `process` is null for
 * the end of what was not sent, `nowMs` is Redis time.
 */
export type Noting = {
  nowMs: number;
  ids: readonly [string, ...string[]];
  attempt: Attempt;
  outcome: DeliveryOutcome;
  nextAtMs: number | null;
  counts: boolean;
  answer: string;
  restMs: number | null;
  disableAfterMs: number | null;
  process: string | null;
};

/** What noting an attempt came to: the outcome that stands, what the operator is notified, and how many others it released. */
export type Noted = { outcome: DeliveryOutcome; moved: ReceiverMove | null; released: number };

const NOTED = z.tuple([OUTCOME, z.enum(['failing', 'disabled', 'recovered', '']), z.string()]);

/** The number of attempts of a delivery are stored. */
const ATTEMPTS_KEPT = 12;

/** The number of deliveries that are looked through in one go. */
const CHUNK = 500;

/** The facts of deliveries, one per event and receiver and replay, kept as long as the event or the dead letter, and who sends them. */
export class DeliveryStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #onForeign: OnForeign;

  constructor(redis: RedisClient, keys: Keys, options: { onForeign?: OnForeign } = {}) {
    this.#redis = redis;
    this.#keys = keys;
    this.#onForeign = options.onForeign ?? (() => undefined);
  }

  /** Opens deliveries of one receiver, in order, under the relay's fencing token. Null when another process relays now. */
  async open(
    fence: string,
    { receiver, deliveries, replay, cursor, process }: OpeningOrder,
  ): Promise<Opened[] | null> {
    const keys = this.#keys;
    const results = await this.#redis.iwOpenDeliveries(
      keys.pending(receiver),
      keys.queue(receiver),
      keys.receiver(receiver),
      keys.relayLease,
      keys.cursors,
      keys.wakes,
      fence,
      receiver,
      cursor ?? '',
      keys.delivery(receiver, ''),
      keys.last(receiver),
      keys.replay(''),
      replay ?? '',
      process,
      keys.replaysOf(''),
      ...deliveries.flatMap(({ id, entry, roots, subject, isSuspended }) => [
        id,
        entry,
        JSON.stringify(roots),
        subject ?? '',
        isSuspended ? '1' : '',
      ]),
    );
    const parsed = z.array(OPENED).parse(results);
    return parsed.length === 0 ? null : parsed.filter((result) => result !== 'held');
  }

  /**
   * Hands deliveries of a receiver to a process, oldest first, as far as the receiver's pace allows. `held` are the ids
   * that the process has in hand; what else Redis takes for its own was claimed in an answer that never came.
   * `together`: all of it is sent in one message, in this order, so that deliveries of one subject may follow each other.
   */
  async claim(
    receiver: string,
    wanted: {
      process: string;
      most: number;
      intervalMs: number | null;
      together?: boolean;
      held: readonly string[];
    },
  ): Promise<Claims> {
    const keys = this.#keys;
    const { process, most, intervalMs, together = false, held } = wanted;
    const [nowMs, waitMs, texts, ...rows] = CLAIMS.parse(
      await this.#redis.iwClaimDeliveries(
        keys.receiver(receiver),
        keys.queue(receiver),
        keys.events,
        keys.subscriptions,
        process,
        String(most),
        intervalMs === null ? '' : String(intervalMs),
        keys.delivery(receiver, ''),
        keys.tracked,
        together ? '1' : '',
        ...held,
      ),
    );
    const claimed: Claimed[] = [];
    for (const [id, fields, entry] of rows) {
      const fact = await this.#read(receiver, id, pairs(fields));
      if (fact !== null) claimed.push({ id, fact, entry: entry.length === 0 ? null : entry });
    }
    return {
      nowMs: Number(nowMs),
      // What is none has left its place to another.
      waitMs: claimed.length < rows.length ? 0 : waitMs === '' ? null : Number(waitMs),
      subscriptions: Object.entries(pairs(texts)),
      claimed,
    };
  }

  /** Releases deliveries that were claimed and not sent: for at once, or to come up again after a while. */
  async release(
    receiver: string,
    { process, ids, afterMs }: { process: string; ids: readonly string[]; afterMs: number | null },
  ): Promise<void> {
    const keys = this.#keys;
    await this.#redis.iwReleaseDeliveries(
      keys.queue(receiver),
      keys.wakes,
      process,
      receiver,
      afterMs === null ? '' : String(Math.max(0, Math.round(afterMs))),
      keys.delivery(receiver, ''),
      ...ids,
    );
  }

  /** Queues the deliveries of processes that no longer live; `process` is the one that asks. Returns how many. */
  async takeOver(receiver: string, process: string): Promise<number> {
    const keys = this.#keys;
    return this.#redis.iwTakeOver(
      keys.queue(receiver),
      keys.senders,
      keys.wakes,
      receiver,
      keys.delivery(receiver, ''),
      process,
    );
  }

  /**
   * The fact of a delivery; null when it was never opened or its time is over. One that does not say what is delivered
   * to whom is deleted: the check drops and reports the delivery, and a replay opens it again.
   */
  async fact(receiver: string, id: string): Promise<DeliveryFact | null> {
    const fields = await this.#redis.hgetall(this.#keys.delivery(receiver, id));
    return Object.keys(fields).length === 0 ? null : this.#read(receiver, id, fields);
  }

  async #read(receiver: string, id: string, fields: Record<string, string>): Promise<DeliveryFact | null> {
    const key = this.#keys.delivery(receiver, id);
    const { value, foreign } = readHash(FACT, fields);
    if (foreign === null) return value;
    this.#onForeign({ what: 'delivery', where: key, reason: foreign.reason });
    if (value !== null) {
      await this.#redis.hdel(key, ...foreign.fields);
      return value;
    }
    await this.#redis.del(key);
    await this.#redis.zrem(this.#keys.dead(receiver), id);
    return null;
  }

  /** Notes an attempt of one delivery, or of several that were sent in one message. What was delivered stays delivered. */
  async record(receiver: string, noting: Noting): Promise<Noted> {
    const keys = this.#keys;
    const { nowMs, ids, attempt, outcome, nextAtMs, counts, answer, restMs, disableAfterMs, process } =
      noting;
    const event = (word: ReceiverMove): string =>
      receiverEvent({ name: receiver, word, reason: attempt.reason, nowMs });
    const isFailure = outcome !== 'delivered';
    const [stands, moved, released] = NOTED.parse(
      await this.#redis.iwRecordAttempt(
        keys.receiver(receiver),
        keys.pending(receiver),
        keys.dead(receiver),
        keys.queue(receiver),
        keys.events,
        keys.wakes,
        process ?? '',
        receiver,
        JSON.stringify(attempt),
        outcome,
        nextAtMs === null ? '' : String(nextAtMs),
        counts ? '1' : '',
        answer,
        restMs === null ? '' : String(restMs),
        disableAfterMs === null ? '' : String(disableAfterMs),
        operatorSubject('receiver', receiver),
        isFailure ? event('failing') : '',
        isFailure ? event('disabled') : '',
        isFailure ? '' : event('recovered'),
        String(ATTEMPTS_KEPT),
        keys.delivery(receiver, ''),
        keys.replay(''),
        ...ids,
      ),
    );
    return { outcome: stands, moved: moved === '' ? null : moved, released: Number(released) };
  }

  /**
   * Has dead letters begin anew, with all attempts before them. `fence` is the relay's token, '' for the operator.
   * Returns how many are open again; null when another process relays now.
   */
  async renew(fence: string, receiver: string, ids: readonly string[]): Promise<number | null> {
    const keys = this.#keys;
    const renewed = await this.#redis.iwRenewDeliveries(
      keys.pending(receiver),
      keys.dead(receiver),
      keys.queue(receiver),
      keys.relayLease,
      keys.wakes,
      fence,
      receiver,
      keys.delivery(receiver, ''),
      keys.replay(''),
      ...ids,
    );
    return renewed === -1 ? null : renewed;
  }

  /** Queues open deliveries that have come off their queue, a part of them at a time, oldest first. Returns their ids. */
  async repair(receiver: string): Promise<string[]> {
    const keys = this.#keys;
    const repaired: string[] = [];
    for (let rank = 0; rank < MOST_OPEN * 2; rank += CHUNK) {
      const [looked = '0', ...ids] = await this.#redis.iwRepairDeliveries(
        keys.pending(receiver),
        keys.queue(receiver),
        keys.wakes,
        receiver,
        keys.delivery(receiver, ''),
        String(rank),
        String(CHUNK),
      );
      repaired.push(...ids);
      if (Number(looked) < CHUNK) break;
    }
    return repaired;
  }
}
