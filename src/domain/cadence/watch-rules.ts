import type { StageLimits } from './clamp.ts';
import type { Expectation } from './hazard.ts';

/**
 * How a stage in which a transfer is under way is watched: what a second of delay of its end is worth, how often it is
 * looked at at least and at most, and what is expected of it before anything was seen on its route.
 */
export type WatchRule = { weight: number; limits: StageLimits; expectation: Expectation };

/**
 * The rules, by status. A wrong guess that is too long costs little, one that is too short much, so medians lean high;
 * a fill matters more than a settlement.
 */
export const WATCH_RULES = {
  pending: {
    weight: 1,
    limits: { leastSeconds: 0.5, mostSeconds: 30 },
    expectation: { medianSeconds: 40, sigma: 0.8, neverShare: 0.03 },
  },
  filled: {
    weight: 0.25,
    limits: { leastSeconds: 0.5, mostSeconds: 600 },
    expectation: { medianSeconds: 900, sigma: 1, neverShare: 0.01 },
  },
} as const satisfies { [status: string]: WatchRule };
