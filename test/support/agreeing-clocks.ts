import type { ActingClock } from '../../src/store/confirmed-time.ts';

/** Clocks that all agree: whatever Redis says is acted upon. */
export const AGREEING_CLOCKS: ActingClock = { mayActAt: () => true, certainMs: (redisMs) => redisMs };
