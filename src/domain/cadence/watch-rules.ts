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
export type WatchRule = { weight: number; limits: StageLimits; expectation: Expectation };

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
export const TROUBLE_FACTOR = 30;

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
