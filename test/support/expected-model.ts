import { endedShares, expectedHazard } from '../../src/domain/cadence/hazard.ts';
import { ARRIVAL_RULE, WATCH_RULES } from '../../src/domain/cadence/watch-rules.ts';
import type { CadenceModel } from '../../src/domain/cadence/watched.ts';

/** The model of the defaults, before anything was learned. */
export const EXPECTED_MODEL: CadenceModel = {
  rules: WATCH_RULES,
  arrivals: ARRIVAL_RULE,
  usualArrivals: 1 / ARRIVAL_RULE.everySeconds,
  curve: (_route, watch) => expectedHazard(WATCH_RULES[watch].expectation),
  filledShares: endedShares(expectedHazard(WATCH_RULES.pending.expectation)),
};
