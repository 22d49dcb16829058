import { ARRIVAL_RULE, WATCH_RULES, type Watch } from '../src/domain/cadence/watch-rules.ts';

/** The shortest duration that a config takes. */
const LEAST_SECONDS = 0.05;

/**
 * The `polling` section of a config with the usual rules, for an upstream whose time runs so many times as fast. Prices
 * shrink with it, and where a longest wait begins to stretch is a price: so longest waits shrink with the root alone.
 */
export function pollingAt(timeScale: number): object {
  const scaled = (seconds: number): string => duration(seconds / timeScale);
  const longest = (seconds: number): string => duration(seconds / Math.sqrt(timeScale));
  const watch = (name: Watch): object => {
    const { limits, expectation } = WATCH_RULES[name];
    return {
      shortestWait: scaled(limits.leastSeconds),
      longestWait: longest(limits.mostSeconds),
      agedWait: longest(limits.agedSeconds),
      median: scaled(expectation.medianSeconds),
    };
  };
  const { limits, everySeconds } = ARRIVAL_RULE;
  return {
    fullSweepEvery: scaled(300),
    watch: { pending: watch('pending'), filled: watch('filled') },
    newTransfers: {
      shortestWait: scaled(limits.leastSeconds),
      longestWait: longest(limits.mostSeconds),
      every: scaled(everySeconds),
    },
  };
}

function duration(seconds: number): string {
  return `${Math.round(1_000 * Math.max(LEAST_SECONDS, seconds))}ms`;
}
