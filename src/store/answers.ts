import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';

/** The time that the answer to a named request is stored. */
const KEPT_MS = 86_400_000;

/** The number of named requests that are remembered at once. */
const MOST_KEPT = 10_000;

/** A kept answer that is longer than this is left out: the request is remembered all the same. */
const MOST_CHARACTERS = 65_536;

/** An answer as it was given. */
export type KeptAnswer = { status: number; body: string };

/**
 * What stands about a named request. `new`: it is ours to do; `answered`: it was done, with this answer; `underWay`: it is
 * being done; `other`: the name was another request's; `full`: no more names can be remembered now.
 */
export type NamedRequest =
  | { state: 'new' | 'underWay' | 'other' | 'full' }
  | { state: 'answered'; answer: KeptAnswer };

/** The answers to requests that carry a name of their own, so that one that is made twice is done once. */
export class AnswerStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /**
   * Begins a request; `fingerprint` is what of it must be the same for it to be the same request. Without an answer it
   * counts as under way for `underWayMs`.
   */
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

  /** Keeps the answer to a request. */
  async end(name: string, { status, body }: KeptAnswer): Promise<void> {
    const key = this.#keys.answer(name);
    const kept = body.length > MOST_CHARACTERS ? '' : body;
    await this.#redis.multi().hset(key, { status, body: kept }).pexpire(key, KEPT_MS).exec();
  }

  /** Removes a request that came to nothing: it can be made again. */
  async forget(name: string): Promise<void> {
    await this.#redis.multi().del(this.#keys.answer(name)).zrem(this.#keys.answers, name).exec();
  }
}
