import type { Expectation } from './hazard.ts';
import type { Limits, StageLimits } from './wait.ts';

/**
 * What is waited for: the end of `pending` and of `filled` of a transfer, the next step of a gasless job (`gasless`) and
 * the publication of a funded vault (`vault`). Each is learned by itself.
 */
export const WATCHES = ['pending', 'filled', 'gasless', 'vault'] as const;

export type Watch = (typeof WATCHES)[number];

/** The number of leave the way of a watch instead of coming to its end, by age: expired, failed, refundable. */
export function failedOf(watch: Watch): `${Watch}-failed` {
  return `${watch}-failed`;
}

/**
 * What is learned: how long each watch takes, and how many fail meanwhile; how often new transfers come; how many
 * transfers are reported as overdue, and how many are paid back.
 */
export const STATISTICS = [...WATCHES, ...WATCHES.map(failedOf), 'arrivals', 'overdue', 'refunded'] as const;

export type Statistic = (typeof STATISTICS)[number];

/**
 * How a stage in which a transfer is under way is watched: what a second of delay of its end is worth, how often it is
 * looked at at least and at most, and what is expected of it before anything was seen on its route.
 */
type WatchRule = { weight: number; limits: StageLimits; expectation: Expectation };

export type WatchRules = { readonly [watch in Watch]: WatchRule };

/**
 * How a wallet is watched for new transfers; it does not age. `everySeconds`: how often one is expected to come, before
 * anything was seen of any wallet.
 */
export type ArrivalRule = { weight: number; limits: Limits; everySeconds: number };

/** The shortest and the longest wait between two polls of a wallet, or of something that is pending. Seconds. */
export type PollingLimits = { shortestSeconds: number; longestSeconds: number };

const POLLING_LIMITS: PollingLimits = { shortestSeconds: 1, longestSeconds: 30 };

/** What is filled, and what is in trouble, changes more slowly: it is polled no sooner than after so many shortest waits. */
const FILLED_FACTOR = 5;
const TROUBLE_FACTOR = 30;

/** The longest waits of what is pending and of what is filled when they are old. Seconds. */
const PENDING_AGED = 600;
const FILLED_LONGEST = 600;
const FILLED_AGED = 3_600;

/**
 * The rules, by what is waited for. A wrong guess that is too long costs little, one that is too short much, so medians
 * lean high; a fill matters more than a settlement, which takes many minutes anyway: were it worth more, wallets with
 * something filled would be polled for that, while transfers elsewhere are born.
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
 * How wallets are watched for new transfers. One that is expected too often costs little: it is learned within a minute
 * that there are fewer. Expected too rarely, all looks go to what is known, and new transfers are found late.
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
 * How a stage of a subject is polled. Where something is waited for that has a learned model (`watch`), by that; else as if changes
 * came at a constant rate, that at which the interval `everyMs` is right at a price of 1, and no sooner than after
 * `leastFactor` shortest waits. Tracking ends `finishAfterMs` after the subject came into the stage; null means never. `waiting` stages are
 * those in which a transfer is under way, for which `overdue` exists.
 */
export type Stage = { finishAfterMs: number | null; waiting: boolean } & (
  | { watch: Watch }
  | { watch: null; everyMs: number; leastFactor: number }
);

/** Under way, until what is waited for comes. */
export function underWay(watch: Watch): Stage {
  return { watch, finishAfterMs: null, waiting: true };
}

/** Nothing is waited for that has a model. */
export function idle(everySeconds: number, finishAfterMs: number | null, leastFactor = 1): Stage {
  return { watch: null, everyMs: everySeconds * SECOND, finishAfterMs, leastFactor, waiting: false };
}

/** Changes slowly, and somebody else has to act. */
export function trouble(finishAfterMs: number): Stage {
  return idle(60, finishAfterMs, TROUBLE_FACTOR);
}

/** Nothing comes after it. */
export const FINISHED: Stage = idle(60, 0);

/** Watched for as long as the config names it. The plan of a wallet says when (see `planWallet`). */
export const WATCHED: Stage = idle(5, null);

/** A word that stands in no table: looked at slowly, and not for ever. */
export const UNNAMED: Stage = idle(30, 30 * DAY, 5);

/** Not known to the upstream yet: soon, for it may be indexed at any moment. */
export const UNSEEN: Stage = idle(5, null, 2);

/** A stage without a model is polled every thirtieth of its age, up to this. */
const IDLE_SHARE = 30;
const IDLE_LONGEST_MS = 600_000;

/**
 * The interval, at a price of 1, of a stage without a model that has lasted so long, seconds: a thirtieth of its age, within
 * bounds. What the upstream has not shown ages from when it was named.
 */
export function stageInterval({ everyMs }: { everyMs: number }, ageSeconds: number): number {
  return Math.max(everyMs / SECOND, Math.min(IDLE_LONGEST_MS / SECOND, ageSeconds / IDLE_SHARE));
}
