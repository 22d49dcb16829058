import type { Expectation } from './hazard.ts';
import type { Limits, StageLimits } from './wait.ts';

/**
 * Changes that the planner waits for: a transfer leaves `pending` or `filled`, a gasless job takes its next step (`gasless`), a
 * funded vault is published (`vault`). The time until each is learned separately (docs/glossary.md: learned, stage).
 */
export const WATCHES = ['pending', 'filled', 'gasless', 'vault'] as const;

export type Watch = (typeof WATCHES)[number];

/** Name of the statistic of failures by age. A stage fails when it ends in `expired`, `failed` or `refundable`. */
export function failedOf(watch: Watch): `${Watch}-failed` {
  return `${watch}-failed`;
}

/** Learned statistics: durations and failures of each watch, arrivals of new transfers, counts of overdue and refunded ones. */
export const STATISTICS = [...WATCHES, ...WATCHES.map(failedOf), 'arrivals', 'overdue', 'refunded'] as const;

export type Statistic = (typeof STATISTICS)[number];

/**
 * Rule of a stage in which a transfer is under way. `weight`: cost of a second between the end of the stage and its detection;
 * `limits`: shortest and longest waits between polls; `expectation`: assumed durations until a pair of chains has observations.
 */
type WatchRule = { weight: number; limits: StageLimits; expectation: Expectation };

export type WatchRules = { readonly [watch in Watch]: WatchRule };

/** Rule for new transfers of a wallet, whatever its age. `everySeconds`: assumed interval until there are observations. */
export type ArrivalRule = { weight: number; limits: Limits; everySeconds: number };

/** Shortest and longest wait between two polls of a wallet, or of a pending subject. Seconds. */
export type PollingLimits = { shortestSeconds: number; longestSeconds: number };

const POLLING_LIMITS: PollingLimits = { shortestSeconds: 1, longestSeconds: 30 };

/** Filled transfers, and those that need an action (see `trouble`), change slowly: factors of their shortest waits. */
const FILLED_FACTOR = 5;
const TROUBLE_FACTOR = 30;

/** Longest waits of old pending subjects and of filled ones. Seconds. */
const PENDING_AGED = 600;
const FILLED_LONGEST = 600;
const FILLED_AGED = 3_600;

/**
 * Rules by awaited change. The medians are rather too long: a short one would cost much more. A fill weighs more than a
 * settlement, which takes minutes in any case; with equal weights filled transfers would delay the polls of new ones.
 */
export function watchRules({ shortestSeconds, longestSeconds }: PollingLimits): WatchRules {
  const limits: StageLimits = {
    leastSeconds: shortestSeconds,
    mostSeconds: longestSeconds,
    agedSeconds: Math.max(longestSeconds, PENDING_AGED),
  };
  return {
    pending: { weight: 1, limits, expectation: { medianSeconds: 40, sigma: 0.8, neverShare: 0.03 } },
    filled: {
      weight: 0.05,
      limits: {
        leastSeconds: FILLED_FACTOR * shortestSeconds,
        mostSeconds: Math.max(longestSeconds, FILLED_LONGEST),
        agedSeconds: Math.max(longestSeconds, FILLED_AGED),
      },
      expectation: { medianSeconds: 900, sigma: 1, neverShare: 0.01 },
    },
    gasless: { weight: 1, limits, expectation: { medianSeconds: 20, sigma: 1, neverShare: 0.03 } },
    vault: { weight: 1, limits, expectation: { medianSeconds: 40, sigma: 1, neverShare: 0.03 } },
  };
}

export const WATCH_RULES: WatchRules = watchRules(POLLING_LIMITS);

/**
 * Rule for new transfers of wallets. Observations correct a rate that is too high within a minute. With one that is too low,
 * all polls go to known transfers, and new ones are found late.
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
 * Polling of a stage. With `watch`: by the learned durations. Without: about every `everyMs` at a price of 1
 * (docs/glossary.md: price), and at least `leastFactor` times the shortest wait apart. Tracking ends `finishAfterMs` after the
 * stage began; null means never. `waiting`: a transfer is under way, and can be reported as overdue.
 */
export type StageRule = { finishAfterMs: number | null; waiting: boolean } & (
  | { watch: Watch }
  | { watch: null; everyMs: number; leastFactor: number }
);

/** Stage of a transfer under way, until the awaited change comes. */
export function underWay(watch: Watch): StageRule {
  return { watch, finishAfterMs: null, waiting: true };
}

/** Stage that no statistic is learned for. */
export function idle(everySeconds: number, finishAfterMs: number | null, leastFactor = 1): StageRule {
  return { watch: null, everyMs: everySeconds * SECOND, finishAfterMs, leastFactor, waiting: false };
}

/** Stage of a transfer that needs an action of a person, such as a refund. It changes slowly. */
export function trouble(finishAfterMs: number): StageRule {
  return idle(60, finishAfterMs, TROUBLE_FACTOR);
}

export const FINISHED: StageRule = idle(60, 0);

/** Stage of a wallet: it lasts as long as the wallet is subscribed. `planWallet` sets the times. */
export const WATCHED: StageRule = idle(5, null);

/** Stage of a status that this program does not know. */
export const UNKNOWN_STATUS: StageRule = idle(30, 30 * DAY, 5);

/** Stage before the upstream knows the subject. It may appear at any time. */
export const UNSEEN: StageRule = idle(5, null, 2);

/** A stage without `watch` is polled at intervals of a thirtieth of its age, up to this. */
const IDLE_SHARE = 30;
const IDLE_LONGEST_MS = 600_000;

/**
 * Interval of polls at a price of 1 in a stage without `watch`, seconds: a thirtieth of the age, within bounds. The age of a
 * subject that the upstream does not know counts from its first subscription.
 */
export function stageInterval({ everyMs }: { everyMs: number }, ageSeconds: number): number {
  return Math.max(everyMs / SECOND, Math.min(IDLE_LONGEST_MS / SECOND, ageSeconds / IDLE_SHARE));
}
