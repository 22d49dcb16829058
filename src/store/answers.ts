import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';

const KEPT_MS = 86_400_000;

const MOST_KEPT = 10_000;

/** A longer answer is not stored; the request is remembered all the same. */
const MOST_CHARACTERS = 65_536;

/** A stored answer to a named request. */
export type StoredAnswer = { status: number; body: string };

/** A named request. `new`: this call must do it; `other`: another request has the name; `full`: no more names are remembered. */
export type NamedRequest =
  | { state: 'new' | 'underWay' | 'other' | 'full' }
  | { state: 'answered'; answer: StoredAnswer };

/** The answers to named requests: a request that is made twice is done once. */
export class AnswerStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** Begins a request; an equal `fingerprint` means an equal request. Without an answer it is under way for `underWayMs`. */
  async begin(
    name: string,
    { fingerprint, underWayMs }: { fingerprint: string; underWayMs: number },
  ): Promise<NamedRequest> {
    const { state, status, body } = await scripts.beginAnswer(this.#redis, {
      keys: { answer: this.#keys.answer(name), answers: this.#keys.answers },
      args: { name, fingerprint, underWayMs, rememberedMs: KEPT_MS, most: MOST_KEPT },
    });
    return state === 'answered' ? { state, answer: { status: Number(status), body } } : { state };
  }

  async end(name: string, { status, body }: StoredAnswer): Promise<void> {
    const key = this.#keys.answer(name);
    const stored = body.length > MOST_CHARACTERS ? '' : body;
    await this.#redis.multi().hset(key, { status, body: stored }).pexpire(key, KEPT_MS).exec();
  }

  /** Removes a request that failed, so that it can be made again. */
  async remove(name: string): Promise<void> {
    await this.#redis.multi().del(this.#keys.answer(name)).zrem(this.#keys.answers, name).exec();
  }
}
