import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';

const MOST_CONSUMERS = 1_000;

/** The stored place of a consumer. One of another shape begins anew: duplicate events are better than lost ones. */
const PLACE = /^([^|]+)\|(\d{1,16}-\d{1,19})$/;

/** The last entry that a consumer has processed of the log named `log`. */
export type ConsumerPlace = { log: string; after: string };

/** The places of consumers that do not store their own. */
export class ConsumerStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** Returns the place of a consumer; null for one that has acknowledged nothing yet. */
  async place(name: string): Promise<ConsumerPlace | null> {
    const stored = (await this.#redis.hget(this.#keys.consumers, name)) ?? '';
    const [, log, after] = PLACE.exec(stored) ?? [];
    return log === undefined || after === undefined ? null : { log, after };
  }

  /** Moves a consumer. `behind`: it is already there, or further on; `full`: no more consumers can be stored. */
  async acknowledge(name: string, { log, after }: ConsumerPlace): Promise<'stored' | 'behind' | 'full'> {
    const args = { consumer: name, log, entry: after, most: MOST_CONSUMERS };
    return scripts.acknowledge(this.#redis, { keys: this.#keys, args });
  }

  async remove(name: string): Promise<boolean> {
    return (await this.#redis.hdel(this.#keys.consumers, name)) === 1;
  }
}
