import { resolve } from 'node:path';
import { loadConfig } from '../config/file/load.ts';
import { parseRedisUrl } from '../config/sections/redis.ts';
import { COMMON, type Directory, extendDirectory } from '../domain/transfers/chains.ts';
import { discoveredDirectory } from '../domain/transfers/discovered.ts';
import { TryAgainError } from '../exit.ts';
import type { RelayStores } from '../queues/deliveries/relay-parts.ts';
import type { RedisClient } from '../store/commands.ts';
import { connect, disconnect } from '../store/connection.ts';
import { DeliveryStore } from '../store/deliveries.ts';
import { DirectoryStore } from '../store/directory.ts';
import { findEmbedded } from '../store/embedded.ts';
import { EventLog } from '../store/event-log.ts';
import { Keys } from '../store/keys.ts';
import { ReceiverStore } from '../store/receivers.ts';
import { Registry, type StoredReceiver } from '../store/registry.ts';
import { RelayLease } from '../store/relay-lease.ts';
import { ReplayStore } from '../store/replays.ts';
import { SchemaVersion } from '../store/schema-version.ts';
import { SetAside } from '../store/set-aside.ts';
import { SubjectStore } from '../store/subjects.ts';
import { withTimeout } from '../with-timeout.ts';

/** What commands about deliveries work with: the daemon's own stores, on the Redis of its config. */
export type Deliveries = {
  redis: RedisClient;
  /** As the daemon knew it last. */
  directory: Directory;
  stores: RelayStores;
};

const REDIS_TIMEOUT_MS = 10_000;

/**
 * Lends the deliveries of a config's Redis and lets go of them afterwards. The embedded one is that of the running
 * daemon. Throws a ConfigError for a bad file, and what is worth another try where Redis does not answer.
 */
export async function withDeliveries<T>(file: string, use: (parts: Deliveries) => Promise<T>): Promise<T> {
  const config = await loadConfig(resolve(file), process.env);
  const { retentionMs } = config;
  const target = parseRedisUrl(config.redis.url?.reveal() ?? '') ?? (await findEmbedded(config.dataDir));
  let reason = `no answer within ${REDIS_TIMEOUT_MS / 1_000} s`;
  const redis = connect(target, {
    onTrouble: (trouble) => {
      reason = trouble;
    },
  });
  const keys = new Keys(config.redis.prefix);
  try {
    if ((await withTimeout(redis.ping(), REDIS_TIMEOUT_MS)) === null) {
      throw new TryAgainError(`Redis cannot be reached: ${reason}`);
    }
    await new SchemaVersion(redis, keys).read();
    return await use({
      redis,
      directory: extendDirectory(
        config,
        discoveredDirectory(COMMON, await new DirectoryStore(redis, keys).read()),
      ),
      stores: {
        registry: new Registry(redis, keys, new SubjectStore(redis, keys, { retentionMs })),
        receivers: new ReceiverStore(redis, keys),
        deliveries: new DeliveryStore(redis, keys, { retentionMs }),
        events: new EventLog(redis, keys),
        replays: new ReplayStore(redis, keys, { retentionMs }),
        setAside: new SetAside(redis, keys),
        lease: new RelayLease(redis, keys),
      },
    });
  } finally {
    await disconnect(redis);
  }
}

/** The receiver of a name, in this config or one before it. Throws with the names there are. */
export async function receiverNamed(
  name: string,
  { stores: { registry } }: Deliveries,
): Promise<StoredReceiver> {
  const known = await registry.receivers();
  const found = known.find((receiver) => receiver.name === name);
  if (found !== undefined) return found;
  const names = known.map((receiver) => receiver.name).sort();
  const expected = names.length === 0 ? 'a receiver of a daemon that has run' : `one of ${names.join(', ')}`;
  throw new Error(`found the receiver "${name}", expected ${expected}`);
}

/** A remark for what only the relay does, while no process relays. */
export async function unlessRelayed({ stores: { lease } }: Deliveries): Promise<string> {
  return (await lease.isHeld()) ? '' : '; no daemon relays now, one will take it up when it runs';
}
