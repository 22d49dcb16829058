import type { Health } from '../../src/metrics/metrics.ts';

/** A process that is ready, on a Redis that keeps what it is given. */
export const STANDING: Health = {
  ready: async () => true,
  redisReachable: () => true,
  redisPersistent: () => true,
};

/** No transfer that has not come to an end. */
export const NO_TRANSFERS = { sums: [], oldest: [], nowMs: 0 };
