import type { RedisClient } from '../../src/store/commands.ts';
import type { Keys } from '../../src/store/keys.ts';
import { Fence } from '../../src/store/lease.ts';
import type { Registry } from '../../src/store/registry.ts';
import { type Desired, syncConfig as sync } from '../../src/store/sync-config.ts';

/** Makes a new fence, as a process has that has just acquired the lease of a sync. An earlier one ends. */
export async function syncFence(redis: RedisClient, keys: Keys): Promise<Fence> {
  const leaseKeys = { lease: keys.configLease, fence: keys.configFence };
  return new Fence(redis, leaseKeys, String(await redis.incr(leaseKeys.fence)));
}

/** Syncs a registry with a config, under a fence of its own. */
export async function syncConfig(registry: Registry, wanted: Desired, newestEntry: string): Promise<void> {
  const fence = await syncFence(registry.redis, registry.keys);
  await sync(registry, wanted, { newestEntry, fence });
}
