import { parseDeliveryId } from '../domain/events/event.ts';
import { MOST_OPEN } from './backlog.ts';
import {
  type Attempt,
  type DeliveryFact,
  type DeliveryOutcome,
  deliveredFields,
  FACT,
} from './delivery-fact.ts';
import type { CursorMove, ExpectedEntry } from './log-entry.ts';
import { operatorSubject } from './operator-event.ts';
import { type ReceiverMove, receiverEvent } from './receivers.ts';
import { scripts } from './scripts.ts';
import { isolated, RedisStore, readHash } from './stored.ts';

export type { Attempt, DeliveryFact, DeliveryOutcome } from './delivery-fact.ts';

/** A delivery to open. `subject`: set when deliveries of one subject follow each other; `isSuspended`: its event waited. */
export type Opening = {
  id: string;
  entry: string;
  claimKeys: readonly string[];
  subject: string | null;
  isSuspended?: boolean;
};

/** The deliveries to open for one receiver, of one `replay` or of none. `cursor`: its cursor afterwards (null: as before). */
export type OpeningOrder = {
  receiver: string;
  deliveries: readonly Opening[];
  replay: string | null;
  cursor: CursorMove | null;
  process: string;
};

/** Further work of the step that opens deliveries: claims for the same process, and a check of what the relay remembers. */
export type OpeningStep = { order: ClaimOrder | null; memory: RelayMemory | null };

/**
 * Entries that must follow the relay's place in the log: `log` are their ids, `expected` those that are on their way, whose names
 * the deliveries have as their entries. None where the entries were read from the log.
 */
export type EntriesBehind = {
  log: readonly string[];
  expected: readonly { name: string; entry: ExpectedEntry }[];
};

/**
 * The part of the last round by which the relay opens deliveries of a receiver. All its receivers are at the entry `from`; `passed`
 * are those of them that no event is for, and move too. `definitions` are those that matched the events, with the digests of
 * their texts. `isCounted`: events without a receiver are counted up to `from` and now further.
 */
export type RelayMemory = EntriesBehind & {
  from: string;
  most: number;
  definitions: readonly { of: 'receivers' | 'subscriptions' | 'tracked'; field: string; digest: string }[];
  claimKeys: readonly string[];
  passed: readonly string[];
  isCounted: boolean;
};

/** The result of opening a delivery; see commands/open-deliveries-8.lua. */
export type Opened = 'opened' | 'open' | 'opened-waiting' | 'waiting' | 'done';

/** The result of opening: `entries` are the ids of the expected ones; `claims` are those of the order, null without one. */
export type OpenedDeliveries = {
  isCurrent: boolean;
  entries: string[];
  results: Opened[];
  claims: Claims | null;
};

/** A delivery that this process claimed. */
export type ClaimedDelivery = { id: string; fact: DeliveryFact };

/**
 * Deliveries that were claimed at `nowMs` (Redis time). `waitMs`: wait until more may be claimed; null when something else has
 * to happen first. `subscriptions` are the names and texts of those that lead to the receiver.
 */
export type Claims = {
  nowMs: number;
  waitMs: number | null;
  subscriptions: [name: string, text: string][];
  claimed: ClaimedDelivery[];
};

/**
 * An order to claim at most `most` deliveries. `intervalMs`: time between two attempts over all processes, null for no limit.
 * `isTogether`: all of it is sent in one message, in this order, so that deliveries of one subject may follow each other.
 * `held`: ids that the process already has; any other delivery that Redis has under its name is queued again: it was given up, or
 * was claimed in a reply that never arrived.
 */
export type ClaimOrder = {
  most: number;
  intervalMs: number | null;
  isTogether: boolean;
  held: readonly string[];
};

type ClaimReply = Awaited<ReturnType<typeof scripts.claimDeliveries>>;

/**
 * An attempt of deliveries that ended, `ids`: the leading one first. `nextAtMs`: time of the next try, null where that is
 * unchanged; `counts`: it uses up one of their attempts; `answer`: the whole answer, of which the attempt stores the beginning;
 * `restMs`: wait that the receiver requested. `disableAfterMs`: span of failures alone that disables the receiver, null when the
 * attempt has no bearing on it. `process` is null for the end of an unsent delivery, `nowMs` is Redis time. `isLogged`: the
 * claims of all its deliveries are those of their entries; otherwise the script compares them.
 */
export type EndedAttempt = {
  ids: readonly [string, ...string[]];
  nowMs: number;
  attempt: Attempt;
  outcome: DeliveryOutcome;
  nextAtMs: number | null;
  counts: boolean;
  answer: string;
  restMs: number | null;
  disableAfterMs: number | null;
  process: string | null;
  isLogged?: boolean;
};

/** The stored outcome of an attempt. `moved`: a move of the receiver that the operator is notified of. */
export type Recorded = { outcome: DeliveryOutcome; moved: ReceiverMove | null };

const ATTEMPTS_STORED = 12;

const CHUNK = 500;

/** The facts of deliveries, one per event, receiver and replay, and their senders. Stored as long as event or dead letter. */
export class DeliveryStore extends RedisStore {
  /**
   * Opens deliveries of one receiver, in order, under the relay's fencing token. Null when another process relays now. Where the
   * cursor, or what the relay remembers, is not current, nothing is opened.
   */
  async open(
    fence: string,
    { receiver, deliveries, replay, cursor, process }: OpeningOrder,
    { order, memory }: OpeningStep = { order: null, memory: null },
  ): Promise<OpenedDeliveries | null> {
    const keys = this.keys;
    const opened = await scripts.openDeliveries(this.redis, {
      keys: {
        ...this.#keysOf(receiver),
        relayLease: keys.relayLease,
        cursors: keys.cursors,
        senders: keys.senders,
        subscriptions: keys.subscriptions,
      },
      args: {
        order,
        remembered: memory === null ? null : this.#rememberedOf(memory),
        tracked: keys.tracked,
        fence,
        receiver,
        from: cursor?.from ?? null,
        cursor: cursor?.to ?? null,
        deliveryPrefix: keys.delivery(receiver, ''),
        lastPrefix: keys.last(receiver),
        replayPrefix: keys.replay(''),
        replay,
        process,
        replaysOfPrefix: keys.replaysOf(''),
        deliveries: deliveries.map(({ isSuspended = false, ...opening }) => ({ ...opening, isSuspended })),
      },
    });
    if (opened === null) return null;
    const { isCurrent, entries, results, nowMs, ...claimed } = opened;
    const claims = nowMs === null ? null : await this.#claimsOf(receiver, { nowMs, ...claimed });
    return { isCurrent, entries, results, claims };
  }

  #rememberedOf({ definitions, isCounted, expected, ...memory }: RelayMemory): object {
    const keys = this.keys;
    return {
      ...memory,
      expected: expected.map(({ name, entry: { packed, claimKeys } }) => ({
        name,
        event: packed,
        claimKeys,
      })),
      definitions: definitions.map(({ of, field, digest }) => [keys[of], field, digest]),
      continued: keys.continued,
      counted: isCounted ? keys.unmatchedPlace : '',
      events: keys.events,
    };
  }

  /** Claims deliveries of a receiver for a process, oldest first, as far as the receiver's pace allows. */
  async claim(receiver: string, { process, order }: { process: string; order: ClaimOrder }): Promise<Claims> {
    const { pending: _, ...keys } = this.#keysOf(receiver);
    const { subscriptions, senders, tracked } = this.keys;
    const claimed = await scripts.claimDeliveries(this.redis, {
      keys: { ...keys, subscriptions, senders },
      args: { process, receiver, order, deliveryPrefix: this.keys.delivery(receiver, ''), tracked },
    });
    return this.#claimsOf(receiver, claimed);
  }

  /** Reads the claims in the reply of a script that includes commands/include/claim-deliveries.lua. */
  async #claimsOf(
    receiver: string,
    { nowMs, waitMs, subscriptions, claimed: found }: ClaimReply,
  ): Promise<Claims> {
    const claimed: ClaimedDelivery[] = [];
    for (const { id, fact: fields } of found) {
      const fact = await this.#read(receiver, id, fields);
      if (fact !== null) claimed.push({ id, fact });
    }
    return {
      nowMs,
      // A claimed entry without a fact frees a slot for another.
      waitMs: claimed.length < found.length ? 0 : waitMs,
      subscriptions: Object.entries(subscriptions),
      claimed,
    };
  }

  /** Releases deliveries that were claimed and not sent: to be due at once, or after a while. */
  async release(
    receiver: string,
    { process, ids, afterMs }: { process: string; ids: readonly string[]; afterMs: number | null },
  ): Promise<void> {
    const restMs = afterMs === null ? null : Math.max(0, Math.round(afterMs));
    await scripts.releaseDeliveries(this.redis, {
      keys: { queue: this.keys.queue(receiver), wakes: this.keys.wakes, senders: this.keys.senders },
      args: { process, receiver, afterMs: restMs, deliveryPrefix: this.keys.delivery(receiver, ''), ids },
    });
  }

  /** Queues the deliveries of dead processes; `process` is the caller. Returns how many. */
  async takeOver(receiver: string, process: string): Promise<number> {
    const keys = this.keys;
    const work = scripts.takeOver(this.redis, {
      keys: { queue: keys.queue(receiver), senders: keys.senders, wakes: keys.wakes },
      args: { receiver, deliveryPrefix: keys.delivery(receiver, ''), process },
    });
    return (await isolated(receiver, work, this.onForeign)) ?? 0;
  }

  /**
   * Returns the fact of a delivery; null when it was never opened or has expired. A fact without its event or receiver is
   * deleted: the check drops and reports the delivery, and a replay opens it again.
   */
  async fact(receiver: string, id: string): Promise<DeliveryFact | null> {
    // In this order, a delivery that is delivered meanwhile is found in one of both.
    const [fields, delivered] = await Promise.all([
      this.redis.hgetall(this.keys.delivery(receiver, id)),
      this.redis.hget(this.keys.delivery(receiver, ''), id),
    ]);
    if (Object.keys(fields).length > 0) return this.#read(receiver, id, fields);
    if (delivered === null) return null;
    return this.#read(receiver, id, deliveredFields(delivered, parseDeliveryId(id).replay));
  }

  async #read(receiver: string, id: string, fields: Record<string, string>): Promise<DeliveryFact | null> {
    const key = this.keys.delivery(receiver, id);
    const { value, foreign } = readHash(FACT, fields);
    if (foreign === null) return value;
    this.onForeign({ what: 'delivery', where: key, reason: foreign.reason });
    if (value !== null) {
      await this.redis.hdel(key, ...foreign.fields);
      return value;
    }
    await this.redis.del(key);
    await this.redis.hdel(this.keys.delivery(receiver, ''), id);
    await this.redis.zrem(this.keys.dead(receiver), id);
    return null;
  }

  /**
   * Records attempts of a process that ended, in order, and claims its next deliveries in the same step where it has an order
   * for them. A delivered delivery stays delivered.
   */
  async record(
    receiver: string,
    ends: readonly EndedAttempt[],
    { process, order }: { process: string; order: ClaimOrder | null },
  ): Promise<{ recorded: Recorded[]; claims: Claims | null }> {
    const keys = this.keys;
    const success = ends.findLast(({ outcome }) => outcome === 'delivered') ?? null;
    const event = (word: ReceiverMove, { attempt, nowMs }: EndedAttempt): string =>
      receiverEvent({ name: receiver, word, reason: attempt.reason, nowMs });
    const { recorded, ...reply } = await scripts.recordAttempts(this.redis, {
      keys: {
        ...this.#keysOf(receiver),
        dead: keys.dead(receiver),
        events: keys.events,
        senders: keys.senders,
        clock: keys.clock,
        subscriptions: keys.subscriptions,
      },
      args: {
        process,
        receiver,
        order,
        subject: operatorSubject('receiver', receiver),
        recovered: success === null ? '' : event('recovered', success),
        mostAttempts: ATTEMPTS_STORED,
        deliveryPrefix: keys.delivery(receiver, ''),
        replayPrefix: keys.replay(''),
        tracked: keys.tracked,
        ends: ends.map((ended) => ({
          ...ended,
          ids: ended.ids.join(' '),
          isLogged: ended.isLogged === true,
          failing: ended.outcome === 'delivered' ? '' : event('failing', ended),
          disabled: ended.outcome === 'delivered' ? '' : event('disabled', ended),
        })),
      },
    });
    return {
      recorded: recorded.map(({ outcome, moved }) => ({ outcome, moved: moved === '' ? null : moved })),
      claims: order === null ? null : await this.#claimsOf(receiver, reply),
    };
  }

  /**
   * Restarts dead letters, with the record of all attempts. `fence` is the relay's token, '' for the operator. Returns how
   * many are open again; null when another process relays now.
   */
  async renew(fence: string, receiver: string, ids: readonly string[]): Promise<number | null> {
    const keys = this.keys;
    const [deliveryPrefix, replayPrefix] = [keys.delivery(receiver, ''), keys.replay('')];
    const renewed = await scripts.renewDeliveries(this.redis, {
      keys: { ...this.#keysOf(receiver), dead: keys.dead(receiver), relayLease: keys.relayLease },
      args: { fence, receiver, deliveryPrefix, replayPrefix, ids },
    });
    return renewed === -1 ? null : renewed;
  }

  /** Queues open deliveries that are missing in their queue, a bounded number at a time, oldest first. Returns their ids. */
  async repair(receiver: string): Promise<string[]> {
    const [keys, deliveryPrefix] = [this.#keysOf(receiver), this.keys.delivery(receiver, '')];
    const repaired: string[] = [];
    for (let rank = 0; rank < MOST_OPEN * 2; rank += CHUNK) {
      const args = { receiver, deliveryPrefix, rank, count: CHUNK };
      const { checked, queued } = await scripts.repairDeliveries(this.redis, { keys, args });
      repaired.push(...queued);
      if (checked < CHUNK) break;
    }
    return repaired;
  }

  #keysOf(receiver: string): { pending: string; queue: string; receiver: string; wakes: string } {
    return {
      pending: this.keys.pending(receiver),
      queue: this.keys.queue(receiver),
      receiver: this.keys.receiver(receiver),
      wakes: this.keys.wakes,
    };
  }
}
