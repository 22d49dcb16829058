import type { RedisClient } from '../../src/store/commands.ts';
import type { Keys } from '../../src/store/keys.ts';
import { storesOn } from '../../src/store/stores.ts';
import { firstEpoch } from './epoch.ts';

/** The stores of a prefix, without a process that others replace. */
export function storesOf(redis: RedisClient, keys: Keys) {
  const epoch = firstEpoch(redis, keys);
  return storesOn(redis, { keys, retentionMs: 86_400_000, epoch, process: '', onForeign: () => undefined });
}
