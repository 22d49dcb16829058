import type { ActingClock } from '../../src/store/confirmed-time.ts';

/** Clocks that all agree: every time of Redis is trusted. */
export const AGREEING_CLOCKS: ActingClock = { mayActAt: () => true, certainMs: (redisMs) => redisMs };
