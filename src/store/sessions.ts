import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';

/** The sessions of the console that were ended early, for all processes. */
export class SessionStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  async end(id: string, goodForMs: number): Promise<void> {
    await this.#redis.set(this.#keys.endedSession(id), '1', 'PX', Math.max(1, Math.ceil(goodForMs)));
  }

  async hasEnded(id: string): Promise<boolean> {
    return (await this.#redis.exists(this.#keys.endedSession(id))) === 1;
  }
}
