import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type RedisClient, SCHEMA_VERSION } from './commands.ts';
import type { Keys } from './keys.ts';
import { SchemaVersion } from './schema-version.ts';

/** What a migration works with. `proceed` is called after every batch: it keeps the lease, or throws to end the run. */
export type MigrationContext = { redis: RedisClient; keys: Keys; proceed: () => Promise<void> };

/**
 * Takes what is stored to a version, from the one before. It works in bounded batches, and can be cut off after any of
 * them: whoever runs it again goes on where it was.
 */
export type Migration = { to: number; run: (context: MigrationContext) => Promise<void> };

/** What migrating works with. `signal` ends it: the next process goes on. */
export type MigrateParts = {
  redis: RedisClient;
  keys: Keys;
  migrations: readonly Migration[];
  log: Logger;
  signal: AbortSignal;
};

/** A process that died while it migrated is followed by another after this time. */
const LEASE_MS = 30_000;
const WAIT_MS = 250;

class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
}

/**
 * Brings what is stored to our version before anything works on it. One process migrates at a time, the others wait.
 * Throws a SchemaVersionError for data of a newer version.
 */
export async function migrate(parts: MigrateParts): Promise<void> {
  const { redis, keys, log, signal } = parts;
  const version = new SchemaVersion(redis, keys);
  let waits = false;
  for (;;) {
    signal.throwIfAborted();
    const from = await version.read();
    if (from === SCHEMA_VERSION) return;
    const token = await hold(parts, '');
    if (token === '') {
      if (!waits) log.info({ from, to: SCHEMA_VERSION }, 'schema.waiting');
      waits = true;
      await sleep(WAIT_MS, undefined, { signal });
      continue;
    }
    try {
      await run(parts, { version, token });
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
    } finally {
      if ((await redis.get(keys.schemaLease)) === token) await redis.del(keys.schemaLease);
    }
  }
}

async function run(
  parts: MigrateParts,
  { version, token }: { version: SchemaVersion; token: string },
): Promise<void> {
  const { redis, keys, migrations, log, signal } = parts;
  const proceed = async (): Promise<void> => {
    signal.throwIfAborted();
    if ((await hold(parts, token)) !== token) throw new LeaseLostError();
  };
  // Read again: another process may have ended its migration just before the lease became ours.
  for (let from = await version.read(); from < SCHEMA_VERSION; from += 1) {
    const to = from + 1;
    const startMs = performance.now();
    for (const migration of migrations.filter((one) => one.to === to)) {
      await migration.run({ redis, keys, proceed });
    }
    await proceed();
    if (!(await version.advance(token, { from, to }))) throw new LeaseLostError();
    log.info({ from, to, durationMs: Math.round(performance.now() - startMs) }, 'schema.migrated');
  }
}

async function hold({ redis, keys }: MigrateParts, token: string): Promise<string> {
  return redis.iwLease(keys.schemaLease, keys.schemaFence, token, String(LEASE_MS));
}
