import type { StageLimits } from './clamp.ts';
import type { Expectation } from './hazard.ts';

/**
 * What is waited for: the end of `pending` and of `filled` of a transfer, the next step of a gasless job (`gasless`) and
 * the publication of a funded vault (`vault`). Each is learned by itself.
 */
export const WATCHES = ['pending', 'filled', 'gasless', 'vault'] as const;

export type Watch = (typeof WATCHES)[number];

/** What is learned: how long each watch takes, and how often new transfers come. */
export const LESSONS = [...WATCHES, 'arrivals'] as const;

export type Lesson = (typeof LESSONS)[number];

/**
 * How a stage in which a transfer is under way is watched: what a second of delay of its end is worth, how often it is
 * looked at at least and at most, and what is expected of it before anything was seen on its route.
 */
export type WatchRule = { weight: number; limits: StageLimits; expectation: Expectation };

export type WatchRules = { readonly [watch in Watch]: WatchRule };

/**
 * The rules, by what is waited for. A wrong guess that is too long costs little, one that is too short much, so medians
 * lean high; a fill matters more than a settlement.
 */
export const WATCH_RULES: WatchRules = {
  pending: {
    weight: 1,
    limits: { leastSeconds: 0.5, mostSeconds: 30, agedSeconds: 600 },
    expectation: { medianSeconds: 40, sigma: 0.8, neverShare: 0.03 },
  },
  filled: {
    weight: 0.25,
    limits: { leastSeconds: 0.5, mostSeconds: 600, agedSeconds: 3_600 },
    expectation: { medianSeconds: 900, sigma: 1, neverShare: 0.01 },
  },
  gasless: {
    weight: 1,
    limits: { leastSeconds: 0.5, mostSeconds: 30, agedSeconds: 600 },
    expectation: { medianSeconds: 20, sigma: 1, neverShare: 0.03 },
  },
  vault: {
    weight: 1,
    limits: { leastSeconds: 0.5, mostSeconds: 30, agedSeconds: 600 },
    expectation: { medianSeconds: 40, sigma: 1, neverShare: 0.03 },
  },
};

/**
 * How a wallet is watched for new transfers; it does not age. `everySeconds`: how often one is expected to come, before
 * anything was seen of any wallet.
 */
export type ArrivalRule = { weight: number; limits: Omit<StageLimits, 'agedSeconds'>; everySeconds: number };

export const ARRIVAL_RULE: ArrivalRule = {
  weight: 0.25,
  limits: { leastSeconds: 0.5, mostSeconds: 30 },
  everySeconds: 6 * 3_600,
};
