import type { Logger } from 'pino';
import { Duty } from '../duty.ts';
import { SCHEMA_VERSION } from './commands.ts';
import { EventLog } from './event-log.ts';
import { RedisStore } from './stored.ts';

/** The error when Redis holds data of a version that this program cannot work with. The message has the remedy. */
export class SchemaVersionError extends Error {
  override readonly name = 'SchemaVersionError';
  readonly found: string;

  constructor(found: string) {
    const isOlder = /^\d+$/.test(found) && Number(found) < SCHEMA_VERSION;
    const what = `Redis holds data of version ${found}, expected ${SCHEMA_VERSION}`;
    super(
      isOlder
        ? `${what}: a clone from before 0.1.0 wrote it, and this version does not read it; set another redis.prefix, or start with an empty Redis or dataDir`
        : `${what}: start the newer Intentwatch that wrote it, or restore a dump from before it`,
    );
    this.found = found;
  }
}

/** The version of the data in Redis. */
export class SchemaVersion extends RedisStore {
  /**
   * Sets our version in an empty Redis. Throws a SchemaVersionError where it holds data of another one. One that was emptied gets
   * it again: no config was written to it yet.
   */
  async open(): Promise<void> {
    if (await this.check()) await this.claim();
  }

  async claim(): Promise<void> {
    await new EventLog(this.redis, this.keys).ensureName();
    await this.redis.set(this.keys.schema, String(SCHEMA_VERSION), 'NX');
  }

  /**
   * True when Redis holds neither a version nor a config. Data without a version is of version 0. Throws a SchemaVersionError
   * where it holds data of another version.
   */
  async check(): Promise<boolean> {
    const [version, config] = (await this.redis
      .multi()
      .get(this.keys.schema)
      .exists(this.keys.config)
      .exec()) ?? [[null, null]];
    const error = version?.[0] ?? config?.[0];
    if (error) throw error;
    if (version?.[1] === null && config?.[1] === 0) return true;
    const found = String(version?.[1] ?? '0');
    if (found !== String(SCHEMA_VERSION)) throw new SchemaVersionError(found);
    return false;
  }
}

const EVERY_MS = 3_000;

type SchemaWatchDeps = {
  version: SchemaVersion;
  log: Logger;
  onChanged: (error: SchemaVersionError) => void;
};

/** Checks every few seconds that the stored data still has our version: another program may have migrated it. */
export class SchemaWatch {
  readonly #checking: Duty;

  constructor({ version, log, onChanged }: SchemaWatchDeps) {
    this.#checking = new Duty({
      everyMs: EVERY_MS,
      isShared: true,
      run: () => version.open(),
      onError: (error) => {
        if (!(error instanceof SchemaVersionError)) return log.debug({ error }, 'schema.unknown');
        this.close();
        onChanged(error);
      },
    });
  }

  start(): void {
    this.#checking.start();
  }

  close(): void {
    void this.#checking.close();
  }
}
