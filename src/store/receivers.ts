import { z } from 'zod';
import { BoundedMap, bytesOfTexts, CACHES } from '../domain/caches.ts';
import { redisTimeMs } from './commands.ts';
import { operatorEventTemplate, operatorSubject } from './operator-event.ts';
import { scripts } from './scripts.ts';
import { INTEGER_TEXT, RedisStore, readHash } from './stored.ts';

/** The states of a receiver, which decide the number of its attempts (the table of moves is in commands/include/pace.lua). */
export const RECEIVER_STATES = ['ok', 'resting', 'failing', 'disabled', 'enabling', 'paused'] as const;

export type ReceiverState = (typeof RECEIVER_STATES)[number];

/** A move of a receiver that its operator is notified of. */
export type ReceiverMove = 'failing' | 'disabled' | 'recovered' | 'paused' | 'resumed';

const MS = INTEGER_TEXT.nullable().default(null);

const CONDITION = z.object({
  state: z.enum(RECEIVER_STATES).default('ok'),
  notBefore: MS,
  since: MS,
  lastSuccessAt: MS,
  lastErrorAt: MS,
  lastError: z.string().nullable().default(null),
  disabledAt: MS,
  pausedAt: MS,
  disabledBy: z.enum(['failures', 'gone', 'operator']).nullable().default(null),
});

/**
 * The condition of a receiver. `since` is the first failure after the last success; `notBefore` is the time of the next try of
 * one that rests or fails. All times are ms of Redis time.
 */
export type ReceiverCondition = z.infer<typeof CONDITION>;

/** True when no attempts are made. */
export function isHeld({ state }: { state: ReceiverState }): boolean {
  return state === 'disabled' || state === 'enabling' || state === 'paused';
}

/** The states of receivers, which all processes on one Redis share. */
export class ReceiverStore extends RedisStore {
  async condition(name: string): Promise<ReceiverCondition> {
    const key = this.keys.receiver(name);
    const { value, foreign } = readHash(CONDITION, await this.redis.hgetall(key));
    if (foreign !== null) {
      this.onForeign({ what: 'receiver-state', where: key, reason: foreign.reason });
      await this.redis.hdel(key, ...foreign.fields);
    }
    return value ?? CONDITION.parse({});
  }

  /** Stops attempts until the receiver is enabled. Returns the state before. */
  async disable(name: string): Promise<ReceiverState> {
    const reason = 'disabled by the operator';
    const event = receiverEvent({ name, word: 'disabled', reason, nowMs: await redisTimeMs(this.redis) });
    const args = { subject: operatorSubject('receiver', name), event };
    return scripts.disable(this.redis, { keys: this.#keysOf(name), args });
  }

  /** Stops attempts until the receiver is resumed. Returns the state before; one that is held already stays as it is. */
  async pause(name: string): Promise<ReceiverState> {
    const reason = 'paused by the operator';
    const event = receiverEvent({ name, word: 'paused', reason, nowMs: await redisTimeMs(this.redis) });
    const args = { subject: operatorSubject('receiver', name), event };
    return scripts.pause(this.redis, { keys: this.#keysOf(name), args });
  }

  /** Resumes a paused receiver. Returns the state before; any other state stays as it is. */
  async unpause(name: string): Promise<ReceiverState> {
    const reason = 'resumed by the operator';
    const event = receiverEvent({ name, word: 'resumed', reason, nowMs: await redisTimeMs(this.redis) });
    const args = { receiver: name, subject: operatorSubject('receiver', name), event };
    return scripts.unpause(this.redis, { keys: this.#keysOf(name), args });
  }

  /** Requests the relay to enable a disabled receiver. Returns the state before; any other state stays as it is. */
  async enable(name: string): Promise<ReceiverState> {
    return scripts.enable(this.redis, { keys: this.#keysOf(name), args: {} });
  }

  /**
   * Queues a bounded part of the waiting deliveries, under the relay's token. `enabled`: none remained; `held`: no step is
   * allowed.
   */
  async resume(token: string, name: string, most: number): Promise<'enabled' | 'more' | 'held'> {
    const { relayLease } = this.keys;
    return scripts.resume(this.redis, {
      keys: { ...this.#keysOf(name), queue: this.keys.queue(name), relayLease },
      args: { fence: token, receiver: name, deliveryPrefix: this.keys.delivery(name, ''), most },
    });
  }

  #keysOf(name: string): { receiver: string; events: string; wakes: string } {
    return { receiver: this.keys.receiver(name), events: this.keys.events, wakes: this.keys.wakes };
  }
}

/** Moves as JSON, by receiver and name, without time and reason: every attempt carries one, and few of them are reported. */
const TEMPLATES = new BoundedMap<string, string>({ ...CACHES.receiverMoves, bytesOf: bytesOfTexts });

const REASON = '%REASON%';
const NO_TIME = new Date(0).toISOString();

/** Builds a move of a receiver as JSON, with placeholders that the script fills in. */
export function receiverEvent(move: {
  name: string;
  word: ReceiverMove;
  reason: string;
  nowMs: number;
}): string {
  const { name, word, reason, nowMs } = move;
  const key = `${word} ${name}`;
  const template = TEMPLATES.get(key) ?? moveTemplate(name, word);
  TEMPLATES.set(key, template);
  return template
    .replace(NO_TIME, new Date(nowMs).toISOString())
    .replace(`"${REASON}"`, () => JSON.stringify(reason));
}

function moveTemplate(name: string, word: ReceiverMove): string {
  const record = { receiver: name, reason: REASON, by: '%BY%', failingSince: '%SINCE%' };
  return operatorEventTemplate({ kind: 'receiver', name, word, nowMs: 0, record });
}
