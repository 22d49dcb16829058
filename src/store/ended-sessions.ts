import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';

/** Console sessions that a user signed out of before they expired. Every process refuses their cookies. */
export class EndedSessionStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  async end(id: string, validForMs: number): Promise<void> {
    await this.#redis.set(this.#keys.endedSession(id), '1', 'PX', Math.max(1, Math.ceil(validForMs)));
  }

  async hasEnded(id: string): Promise<boolean> {
    return (await this.#redis.exists(this.#keys.endedSession(id))) === 1;
  }
}
