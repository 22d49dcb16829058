import type { Health } from '../../src/metrics/metrics.ts';

/** A process that is ready, on a reachable, persistent Redis. */
export const HEALTH: Health = {
  ready: async () => true,
  redisReachable: () => true,
  redisPersistent: () => true,
};

/** The counts without any open transfer. */
export const NO_TRANSFERS = { sums: [], oldest: [], nowMs: 0 };
