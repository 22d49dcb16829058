import { type RedisClient, SCHEMA_VERSION } from './commands.ts';
import { EventLog } from './event-log.ts';
import type { Keys } from './keys.ts';

/** Redis holds data of a version that this program cannot work with. The message says what to do. */
export class SchemaVersionError extends Error {
  override readonly name = 'SchemaVersionError';
  readonly found: string;

  constructor(found: string) {
    const isOlder = /^\d+$/.test(found) && Number(found) < SCHEMA_VERSION;
    const what = `Redis holds data of version ${found}`;
    super(
      isOlder
        ? `${what}, expected ${SCHEMA_VERSION}: an older dump was restored; start again to have it migrated`
        : `${what}, expected ${SCHEMA_VERSION} or older: start the newer Intentwatch that wrote it, or restore a dump from before it`,
    );
    this.found = found;
  }
}

/** The version of what is stored in Redis. */
export class SchemaVersion {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** The version, 0 where there is none. Throws a SchemaVersionError for one after ours. */
  async read(): Promise<number> {
    return supported((await this.#redis.get(this.#keys.schema)) ?? '0');
  }

  /** Gives a Redis that is empty our version, and its event log a name. */
  async claim(): Promise<void> {
    await new EventLog(this.#redis, this.#keys).ensureName();
    await this.#redis.set(this.#keys.schema, String(SCHEMA_VERSION), 'NX');
  }

  /**
   * Throws a SchemaVersionError unless the version is ours, as it was at start. A Redis that was emptied gets it again:
   * no config was written to it yet.
   */
  async recheck(): Promise<void> {
    const [version, config] = (await this.#redis
      .multi()
      .get(this.#keys.schema)
      .exists(this.#keys.config)
      .exec()) ?? [[null, null]];
    const error = version?.[0] ?? config?.[0];
    if (error) throw error;
    if (version?.[1] === null && config?.[1] === 0) return this.claim();
    const found = String(version?.[1] ?? '0');
    if (supported(found) < SCHEMA_VERSION) throw new SchemaVersionError(found);
  }

  /** Moves the version on, under the lease of who migrates. False when that is not ours any more. */
  async advance(token: string, step: { from: number; to: number }): Promise<boolean> {
    const { schema, schemaLease } = this.#keys;
    const { from, to } = step;
    return (await this.#redis.iwAdvanceSchema(schema, schemaLease, token, String(from), String(to))) === 1;
  }
}

function supported(text: string): number {
  if (!/^\d{1,9}$/.test(text) || Number(text) > SCHEMA_VERSION) throw new SchemaVersionError(text);
  return Number(text);
}
