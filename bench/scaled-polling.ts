import { ARRIVAL_RULE, WATCH_RULES, type Watch } from '../src/domain/cadence/watch-rules.ts';

/** The shortest duration that a config takes. */
const LEAST_SECONDS = 0.05;

/**
 * The `polling` section of a config with the usual rules, for an upstream whose time runs so many times as fast: all times
 * are as much shorter, and a second of delay is worth as much more, so that prices mean what they usually mean.
 */
export function pollingAt(timeScale: number): object {
  const scaled = (seconds: number): string =>
    `${Math.round(1_000 * Math.max(LEAST_SECONDS, seconds / timeScale))}ms`;
  const watch = (name: Watch): object => {
    const { weight, limits, expectation } = WATCH_RULES[name];
    return {
      weight: weight * timeScale,
      shortestWait: scaled(limits.leastSeconds),
      longestWait: scaled(limits.mostSeconds),
      agedWait: scaled(limits.agedSeconds),
      median: scaled(expectation.medianSeconds),
    };
  };
  const { weight, limits, everySeconds } = ARRIVAL_RULE;
  return {
    fullSweepEvery: scaled(300),
    watch: { pending: watch('pending'), filled: watch('filled') },
    newTransfers: {
      weight: weight * timeScale,
      shortestWait: scaled(limits.leastSeconds),
      longestWait: scaled(limits.mostSeconds),
      every: scaled(everySeconds),
    },
  };
}
