import { resolve } from 'node:path';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/file/load.ts';
import { parseRedisUrl } from '../config/sections/redis.ts';
import { assembleOperations } from '../daemon/stores.ts';
import { COMMON_NAMES, extendDirectory } from '../domain/transfers/chains.ts';
import { discoveredDirectory } from '../domain/transfers/discovered.ts';
import { TryAgainError } from '../exit.ts';
import type { OperationContext } from '../operations/operation.ts';
import type { RedisClient } from '../store/commands.ts';
import { connect, disconnect } from '../store/connection.ts';
import { DirectoryStore } from '../store/directory.ts';
import { findEmbedded } from '../store/embedded.ts';
import { Epoch } from '../store/epoch.ts';
import { Keys } from '../store/keys.ts';
import { SchemaVersion } from '../store/schema-version.ts';
import { SeenFile } from '../store/seen-file.ts';
import { withTimeout } from '../with-timeout.ts';

const REDIS_TIMEOUT_MS = 10_000;

/**
 * Runs a task on a connection to a config's Redis and closes it afterwards. An embedded Redis is that of the running daemon.
 * Throws a retryable error where Redis does not answer.
 */
export async function withRedisOf<T>(
  config: Config,
  use: (redis: RedisClient, keys: Keys) => Promise<T>,
): Promise<T> {
  const target = parseRedisUrl(config.redis.url?.reveal() ?? '') ?? (await findEmbedded(config.dataDir));
  let reason = `no answer within ${REDIS_TIMEOUT_MS / 1_000} s`;
  const redis = connect(target, {
    onTrouble: (trouble) => {
      reason = trouble;
    },
  });
  const keys = new Keys(config.redis.prefix, config.upstream.statusSource);
  try {
    if ((await withTimeout(redis.ping(), REDIS_TIMEOUT_MS)) === null) {
      throw new TryAgainError(`Redis cannot be reached: ${reason}`);
    }
    await new SchemaVersion(redis, keys).check();
    return await use(redis, keys);
  } finally {
    await disconnect(redis);
  }
}

/** Runs a task with the deliveries of a config's Redis. Throws a ConfigError for a bad file, and as `withRedisOf`. */
export async function withDeliveries<T>(
  file: string,
  use: (deps: OperationContext) => Promise<T>,
): Promise<T> {
  const config = await loadConfig(resolve(file), process.env);
  return withRedisOf(config, async (redis, keys) => {
    const directory = extendDirectory(
      config,
      discoveredDirectory(COMMON_NAMES, await new DirectoryStore(redis, keys).read()),
    );
    // Nothing is committed here; only a daemon checks the epoch of Redis.
    const epoch = new Epoch({
      redis,
      keys,
      file: new SeenFile(config.dataDir, config.redis.prefix),
      onRestored: () => undefined,
      onChecked: () => undefined,
      onFile: () => undefined,
    });
    return use(
      assembleOperations(config, { redis, keys, epoch, directory, process: '', onForeign: () => undefined }),
    );
  });
}

/** A remark for the case that no process relays: only the relay does the requested work. */
export async function unlessRelayed({ stores: { lease } }: OperationContext): Promise<string> {
  return (await lease.isHeld()) ? '' : '; no daemon relays now, one will take it up when it runs';
}
