import type { Expectation } from './hazard.ts';
import type { Limits, StageLimits } from './wait.ts';

/**
 * Awaited changes: the end of `pending` and of `filled` of a transfer, the next step of a gasless job (`gasless`) and
 * the publication of a funded vault (`vault`). Each is learned separately.
 */
export const WATCHES = ['pending', 'filled', 'gasless', 'vault'] as const;

export type Watch = (typeof WATCHES)[number];

/** Name of the statistic of failures by age: stages that end in expired, failed or refundable. */
export function failedOf(watch: Watch): `${Watch}-failed` {
  return `${watch}-failed`;
}

/** Learned statistics: durations and failures of each watch, rate of new transfers, counts of overdue and refunded ones. */
export const STATISTICS = [...WATCHES, ...WATCHES.map(failedOf), 'arrivals', 'overdue', 'refunded'] as const;

export type Statistic = (typeof STATISTICS)[number];

/**
 * Rule of a stage in which a transfer is under way. `weight`: cost of a second of delay of its end; `limits`:
 * shortest and longest waits; `expectation`: used until the route has observations.
 */
type WatchRule = { weight: number; limits: StageLimits; expectation: Expectation };

export type WatchRules = { readonly [watch in Watch]: WatchRule };

/** Rule for new transfers of a wallet; it does not age. `everySeconds`: expected interval before any observation. */
export type ArrivalRule = { weight: number; limits: Limits; everySeconds: number };

/** Shortest and longest wait between two polls of a wallet, or of a pending subject. Seconds. */
export type PollingLimits = { shortestSeconds: number; longestSeconds: number };

const POLLING_LIMITS: PollingLimits = { shortestSeconds: 1, longestSeconds: 30 };

/** Filled and troubled subjects change more slowly: their shortest waits are this many times longer. */
const FILLED_FACTOR = 5;
const TROUBLE_FACTOR = 30;

/** Longest waits of old pending subjects and of filled ones. Seconds. */
const PENDING_AGED = 600;
const FILLED_LONGEST = 600;
const FILLED_AGED = 3_600;

/**
 * Rules by awaited change. Medians lean high: an estimate that is too long costs little, one too short much. A fill
 * weighs more than a settlement, which takes minutes anyway; else filled transfers would take polls from new ones.
 */
export function watchRules({ shortestSeconds, longestSeconds }: PollingLimits): WatchRules {
  const underWay: StageLimits = {
    leastSeconds: shortestSeconds,
    mostSeconds: longestSeconds,
    agedSeconds: Math.max(longestSeconds, PENDING_AGED),
  };
  return {
    pending: {
      weight: 1,
      limits: underWay,
      expectation: { medianSeconds: 40, sigma: 0.8, neverShare: 0.03 },
    },
    filled: {
      weight: 0.05,
      limits: {
        leastSeconds: FILLED_FACTOR * shortestSeconds,
        mostSeconds: Math.max(longestSeconds, FILLED_LONGEST),
        agedSeconds: Math.max(longestSeconds, FILLED_AGED),
      },
      expectation: { medianSeconds: 900, sigma: 1, neverShare: 0.01 },
    },
    gasless: {
      weight: 1,
      limits: underWay,
      expectation: { medianSeconds: 20, sigma: 1, neverShare: 0.03 },
    },
    vault: {
      weight: 1,
      limits: underWay,
      expectation: { medianSeconds: 40, sigma: 1, neverShare: 0.03 },
    },
  };
}

export const WATCH_RULES: WatchRules = watchRules(POLLING_LIMITS);

/**
 * Rule for new transfers of wallets. Too high an expectation costs little: it is corrected within a minute. With too
 * low a one, all polls go to known transfers, and new ones are found late.
 */
export function arrivalRule({ shortestSeconds, longestSeconds }: PollingLimits): ArrivalRule {
  return {
    weight: 0.6,
    limits: { leastSeconds: shortestSeconds, mostSeconds: longestSeconds },
    everySeconds: 120,
  };
}

export const ARRIVAL_RULE: ArrivalRule = arrivalRule(POLLING_LIMITS);

const SECOND = 1_000;
const DAY = 86_400 * SECOND;

/**
 * Polling of a stage: by the learned model of `watch`; else as for a constant rate at which `everyMs` is right at a
 * price of 1, no sooner than `leastFactor` shortest waits. Tracking ends `finishAfterMs` after the stage began; null
 * means never. `waiting`: a transfer is under way, for which `overdue` exists.
 */
export type StageRule = { finishAfterMs: number | null; waiting: boolean } & (
  | { watch: Watch }
  | { watch: null; everyMs: number; leastFactor: number }
);

/** Stage of a transfer under way, until the awaited change comes. */
export function underWay(watch: Watch): StageRule {
  return { watch, finishAfterMs: null, waiting: true };
}

/** Stage without a model. */
export function idle(everySeconds: number, finishAfterMs: number | null, leastFactor = 1): StageRule {
  return { watch: null, everyMs: everySeconds * SECOND, finishAfterMs, leastFactor, waiting: false };
}

/** Stage that changes slowly and needs action by somebody else. */
export function trouble(finishAfterMs: number): StageRule {
  return idle(60, finishAfterMs, TROUBLE_FACTOR);
}

export const FINISHED: StageRule = idle(60, 0);

/** Stage that lasts as long as the config names the subject. The wallet's plan sets the times (see `planWallet`). */
export const WATCHED: StageRule = idle(5, null);

/** Stage of an unknown status: polled slowly, and not for ever. */
export const UNNAMED: StageRule = idle(30, 30 * DAY, 5);

/** Stage before the upstream knows the subject: polled soon, since it may be indexed at any time. */
export const UNSEEN: StageRule = idle(5, null, 2);

/** A stage without a model is polled every thirtieth of its age, up to this. */
const IDLE_SHARE = 30;
const IDLE_LONGEST_MS = 600_000;

/**
 * Interval, at a price of 1, of a stage without a model at an age, seconds: a thirtieth of the age, within bounds. A
 * subject that the upstream has not shown ages from the time when it was named.
 */
export function stageInterval({ everyMs }: { everyMs: number }, ageSeconds: number): number {
  return Math.max(everyMs / SECOND, Math.min(IDLE_LONGEST_MS / SECOND, ageSeconds / IDLE_SHARE));
}
