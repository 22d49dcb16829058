import { MOST_OPEN } from './backlog.ts';
import type { RedisClient } from './commands.ts';
import { type Attempt, type DeliveryFact, type DeliveryOutcome, FACT } from './delivery-fact.ts';
import type { Keys } from './keys.ts';
import { operatorSubject } from './operator-event.ts';
import { type ReceiverMove, receiverEvent } from './receivers.ts';
import { scripts } from './scripts.ts';
import { type OnForeign, readHash } from './stored.ts';

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

/** What became of a delivery that was to be opened; see commands/open-deliveries-6.lua. */
export type Opened = 'opened' | 'open' | 'opened-waiting' | 'waiting' | 'done';

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
    const results = await scripts.openDeliveries(this.#redis, {
      keys: { ...this.#keysOf(receiver), relayLease: keys.relayLease, cursors: keys.cursors },
      args: {
        fence,
        receiver,
        cursor,
        deliveryPrefix: keys.delivery(receiver, ''),
        lastPrefix: keys.last(receiver),
        replayPrefix: keys.replay(''),
        replay,
        process,
        replaysOfPrefix: keys.replaysOf(''),
        deliveries: deliveries.map(({ isSuspended = false, ...opening }) => ({ ...opening, isSuspended })),
      },
    });
    return results.length === 0 ? null : results.filter((result) => result !== 'held');
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
    const { together: isTogether = false, ...args } = wanted;
    const { nowMs, waitMs, subscriptions, ...found } = await scripts.claimDeliveries(this.#redis, {
      keys: {
        receiver: keys.receiver(receiver),
        queue: keys.queue(receiver),
        events: keys.events,
        subscriptions: keys.subscriptions,
      },
      args: { ...args, deliveryPrefix: keys.delivery(receiver, ''), tracked: keys.tracked, isTogether },
    });
    const claimed: Claimed[] = [];
    for (const { id, fact: fields, entry } of found.claimed) {
      const fact = await this.#read(receiver, id, fields);
      if (fact !== null) claimed.push({ id, fact, entry: entry.length === 0 ? null : entry });
    }
    return {
      nowMs,
      // What is none has left its place to another.
      waitMs: claimed.length < found.claimed.length ? 0 : waitMs,
      subscriptions: Object.entries(subscriptions),
      claimed,
    };
  }

  /** Releases deliveries that were claimed and not sent: for at once, or to come up again after a while. */
  async release(
    receiver: string,
    { process, ids, afterMs }: { process: string; ids: readonly string[]; afterMs: number | null },
  ): Promise<void> {
    const restMs = afterMs === null ? null : Math.max(0, Math.round(afterMs));
    await scripts.releaseDeliveries(this.#redis, {
      keys: { queue: this.#keys.queue(receiver), wakes: this.#keys.wakes },
      args: { process, receiver, afterMs: restMs, deliveryPrefix: this.#keys.delivery(receiver, ''), ids },
    });
  }

  /** Queues the deliveries of processes that no longer live; `process` is the one that asks. Returns how many. */
  async takeOver(receiver: string, process: string): Promise<number> {
    const keys = this.#keys;
    return scripts.takeOver(this.#redis, {
      keys: { queue: keys.queue(receiver), senders: keys.senders, wakes: keys.wakes },
      args: { receiver, deliveryPrefix: keys.delivery(receiver, ''), process },
    });
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
    const noted = await scripts.recordAttempt(this.#redis, {
      keys: { ...this.#keysOf(receiver), dead: keys.dead(receiver), events: keys.events, clock: keys.clock },
      args: {
        process,
        receiver,
        attempt,
        outcome,
        nextAtMs,
        counts,
        answer,
        restMs,
        disableAfterMs,
        subject: operatorSubject('receiver', receiver),
        failing: isFailure ? event('failing') : '',
        disabled: isFailure ? event('disabled') : '',
        recovered: isFailure ? '' : event('recovered'),
        mostAttempts: ATTEMPTS_KEPT,
        deliveryPrefix: keys.delivery(receiver, ''),
        replayPrefix: keys.replay(''),
        ids,
      },
    });
    return { ...noted, moved: noted.moved === '' ? null : noted.moved };
  }

  /**
   * Has dead letters begin anew, with all attempts before them. `fence` is the relay's token, '' for the operator.
   * Returns how many are open again; null when another process relays now.
   */
  async renew(fence: string, receiver: string, ids: readonly string[]): Promise<number | null> {
    const keys = this.#keys;
    const [deliveryPrefix, replayPrefix] = [keys.delivery(receiver, ''), keys.replay('')];
    const renewed = await scripts.renewDeliveries(this.#redis, {
      keys: { ...this.#keysOf(receiver), dead: keys.dead(receiver), relayLease: keys.relayLease },
      args: { fence, receiver, deliveryPrefix, replayPrefix, ids },
    });
    return renewed === -1 ? null : renewed;
  }

  /** Queues open deliveries that have come off their queue, a part of them at a time, oldest first. Returns their ids. */
  async repair(receiver: string): Promise<string[]> {
    const [keys, deliveryPrefix] = [this.#keysOf(receiver), this.#keys.delivery(receiver, '')];
    const repaired: string[] = [];
    for (let rank = 0; rank < MOST_OPEN * 2; rank += CHUNK) {
      const args = { receiver, deliveryPrefix, rank, count: CHUNK };
      const { checked, queued } = await scripts.repairDeliveries(this.#redis, { keys, args });
      repaired.push(...queued);
      if (checked < CHUNK) break;
    }
    return repaired;
  }

  #keysOf(receiver: string): { pending: string; queue: string; receiver: string; wakes: string } {
    return {
      pending: this.#keys.pending(receiver),
      queue: this.#keys.queue(receiver),
      receiver: this.#keys.receiver(receiver),
      wakes: this.#keys.wakes,
    };
  }
}
