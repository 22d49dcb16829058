import { z } from 'zod';
import type { RedisClient } from './commands.ts';
import { redisTimeMs } from './connection.ts';
import type { Keys } from './keys.ts';
import { operatorEventTemplate, operatorSubject } from './operator-event.ts';
import { INTEGER_TEXT, type OnForeign, readHash } from './stored.ts';

/**
 * The states of a receiver. A process that relays or delivers reads the state each time; every move is one script.
 *
 *   ok ──► failing       the fourth failed attempt of one event, or its end as a dead letter if that comes sooner
 *   failing ──► ok       an attempt succeeds
 *   * ──► disabled       a span of nothing but failures, a 410, or the operator. Nothing is attempted, the cursor stands
 *   disabled ──► enabling ──► ok   the operator; the relay opens the dead letters of the failing span again, then
 *                        queues all that is open, oldest first (`resuming`), then the cursor goes on
 */
export const RECEIVER_STATES = ['ok', 'failing', 'disabled', 'enabling'] as const;

export type ReceiverState = (typeof RECEIVER_STATES)[number];

/** A move of a receiver that its operator is told of. */
export type ReceiverMove = 'failing' | 'disabled' | 'recovered';

const MS = INTEGER_TEXT.nullable().default(null);

const CONDITION = z.object({
  state: z.enum(RECEIVER_STATES).default('ok'),
  resuming: z
    .string()
    .optional()
    .transform((text) => text === '1'),
  since: MS,
  lastSuccessAt: MS,
  lastErrorAt: MS,
  lastError: z.string().nullable().default(null),
  disabledAt: MS,
  disabledBy: z.enum(['failures', 'gone', 'operator']).nullable().default(null),
});

/**
 * How a receiver is. `since` is the first failure after the last success, all times are ms of Redis time; `resuming`
 * says that what was held is being queued.
 */
export type ReceiverCondition = z.infer<typeof CONDITION>;

/** Whether no attempts are made. */
export function isHeld({ state }: Pick<ReceiverCondition, 'state'>): boolean {
  return state === 'disabled' || state === 'enabling';
}

/** The states of receivers, which all processes on one Redis share. */
export class ReceiverStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #onForeign: OnForeign;

  constructor(redis: RedisClient, keys: Keys, onForeign: OnForeign = () => undefined) {
    this.#redis = redis;
    this.#keys = keys;
    this.#onForeign = onForeign;
  }

  async condition(name: string): Promise<ReceiverCondition> {
    const key = this.#keys.receiver(name);
    const { value, foreign } = readHash(CONDITION, await this.#redis.hgetall(key));
    if (foreign !== null) {
      this.#onForeign({ what: 'receiver-state', where: key, reason: foreign.reason });
      await this.#redis.hdel(key, ...foreign.fields);
    }
    return value ?? CONDITION.parse({});
  }

  /** Makes no more attempts until the receiver is enabled. Returns the state before. */
  async disable(name: string): Promise<ReceiverState> {
    const reason = 'disabled by the operator';
    const before = await this.#redis.iwDisable(
      this.#keys.receiver(name),
      this.#keys.events,
      operatorSubject('receiver', name),
      receiverEvent({ name, word: 'disabled', reason, nowMs: await redisTimeMs(this.#redis) }),
    );
    return z.enum(RECEIVER_STATES).parse(before);
  }

  /** Has the relay enable a disabled receiver. Returns the state before; any other state stays as it is. */
  async enable(name: string): Promise<ReceiverState> {
    return z.enum(RECEIVER_STATES).parse(await this.#redis.iwEnable(this.#keys.receiver(name)));
  }

  /** One step of enabling, under the relay's fencing token. False when it may not be taken. */
  async resume(token: string, name: string, step: 'begin' | 'end'): Promise<boolean> {
    const { receiver, relayLease } = {
      receiver: this.#keys.receiver(name),
      relayLease: this.#keys.relayLease,
    };
    return (await this.#redis.iwResume(receiver, relayLease, token, step)) === 1;
  }

  /** Tells the operator that the retention of events ended before a receiver got them, once per standing cursor. */
  async tellDropped(name: string, dropped: { cursor: string; count: number }): Promise<boolean> {
    const { cursor, count } = dropped;
    const told = await this.#redis.iwDrop(
      this.#keys.receiver(name),
      this.#keys.events,
      operatorSubject('receiver', name),
      cursor,
      operatorEventTemplate({
        kind: 'receiver',
        name,
        word: 'events_dropped',
        nowMs: await redisTimeMs(this.#redis),
        record: {
          receiver: name,
          count,
          reason: 'the retention of events has ended before they were delivered',
        },
      }),
    );
    return told === 1;
  }
}

/** A move of a receiver as JSON, with what only the script knows left to be filled in. */
export function receiverEvent(move: {
  name: string;
  word: ReceiverMove;
  reason: string;
  nowMs: number;
}): string {
  const { name, word, reason, nowMs } = move;
  const record = { receiver: name, reason, by: '%BY%', failingSince: '%SINCE%' };
  return operatorEventTemplate({ kind: 'receiver', name, word, nowMs, record });
}
