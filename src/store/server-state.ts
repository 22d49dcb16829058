import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

const STORED_MS = 86_400_000;

const MOST_STORED = 10_000;

/** A longer answer is not stored; the request is remembered all the same. */
const MOST_CHARACTERS = 65_536;

/** A stored answer to a named request. */
export type StoredAnswer = { status: number; body: string };

/** A named request. `new`: this call must do it; `other`: another request has the name; `full`: no more names are remembered. */
export type NamedRequest =
  | { state: 'new' | 'underWay' | 'other' | 'full' }
  | { state: 'answered'; answer: StoredAnswer };

/** The answers to named requests: a request that is made twice is done once. */
export class AnswerStore extends RedisStore {
  /** Begins a request; an equal `fingerprint` means an equal request. Without an answer it is under way for `underWayMs`. */
  async begin(
    name: string,
    { fingerprint, underWayMs }: { fingerprint: string; underWayMs: number },
  ): Promise<NamedRequest> {
    const { state, status, body } = await scripts.beginAnswer(this.redis, {
      keys: { answer: this.keys.answer(name), answers: this.keys.answers },
      args: { name, fingerprint, underWayMs, rememberedMs: STORED_MS, most: MOST_STORED },
    });
    return state === 'answered' ? { state, answer: { status: Number(status), body } } : { state };
  }

  async end(name: string, { status, body }: StoredAnswer): Promise<void> {
    const key = this.keys.answer(name);
    const stored = body.length > MOST_CHARACTERS ? '' : body;
    await this.redis.multi().hset(key, { status, body: stored }).pexpire(key, STORED_MS).exec();
  }

  /** Removes a request that failed, so that it can be made again. */
  async remove(name: string): Promise<void> {
    await this.redis.multi().del(this.keys.answer(name)).zrem(this.keys.answers, name).exec();
  }
}

const MOST_CONSUMERS = 1_000;

/** The stored place of a consumer. One of another shape begins anew: duplicate events are better than lost ones. */
const PLACE = /^([^|]+)\|(\d{1,16}-\d{1,19})$/;

/** The last entry that a consumer has processed of the log named `log`. */
export type ConsumerPlace = { log: string; after: string };

/** The places of consumers that do not store their own. */
export class ConsumerStore extends RedisStore {
  /** Returns the place of a consumer; null for one that has acknowledged nothing yet. */
  async place(name: string): Promise<ConsumerPlace | null> {
    const stored = (await this.redis.hget(this.keys.consumers, name)) ?? '';
    const [, log, after] = PLACE.exec(stored) ?? [];
    return log === undefined || after === undefined ? null : { log, after };
  }

  /** Moves a consumer. `behind`: it is already there, or further on; `full`: no more consumers can be stored. */
  async acknowledge(name: string, { log, after }: ConsumerPlace): Promise<'stored' | 'behind' | 'full'> {
    const args = { consumer: name, log, entry: after, most: MOST_CONSUMERS };
    return scripts.acknowledge(this.redis, { keys: this.keys, args });
  }

  async remove(name: string): Promise<boolean> {
    return (await this.redis.hdel(this.keys.consumers, name)) === 1;
  }
}

/** Console sessions that a user signed out of before they expired. Every process refuses their cookies. */
export class EndedSessionStore extends RedisStore {
  async end(id: string, validForMs: number): Promise<void> {
    await this.redis.set(this.keys.endedSession(id), '1', 'PX', Math.max(1, Math.ceil(validForMs)));
  }

  async hasEnded(id: string): Promise<boolean> {
    return (await this.redis.exists(this.keys.endedSession(id))) === 1;
  }
}
