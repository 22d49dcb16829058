import type { SubjectId } from '../subject.ts';
import { type Clamp, clampAt, LONGEST_WAIT_SECONDS } from './clamp.ts';
import { type HazardCurve, rateAt } from './hazard.ts';
import { LEAST_FACTOR } from './interval.ts';
import { stageInterval, stageOf } from './stages.ts';
import type { Term } from './wait.ts';
import type { ArrivalRule, Watch, WatchRules } from './watch-rules.ts';

/**
 * What the cadence goes by: the rules of the config, the hazard of what is waited for on a route, and how many new
 * transfers are usual in a wallet per second.
 */
export type Law = {
  rules: WatchRules;
  arrivals: ArrivalRule;
  usualArrivals: number;
  curve: (route: string, watch: Watch) => HazardCurve;
  /** Of transfers on any route, the share that is filled by an age (see `endedShares`). */
  filledShares: readonly number[];
};

/** A subject in a stage; null as status for one not seen yet. `route` as in `routeName`. Redis time. */
export type StageSeen = { subject: SubjectId; status: string | null; route: string; sinceMs: number };

/**
 * What a look at a stage may bring. `hazard`: the present chance of a change per second; `term` makes the term of a look
 * whose last was at a moment; where no law is known it is null, and `constant` is the weighted rate of changes.
 */
export type Watched = {
  hazard: number;
  weight: number;
  clamp: Clamp;
  term: ((lookedAtMs: number) => Term) | null;
  constant: number;
};

/**
 * What a look at a stage may bring. A stage with an interval but no law is taken for one with a constant hazard: that at
 * which the interval is right at a price of 1. So all waits go with the square root of the price.
 */
export function watched(stage: StageSeen, now: { nowMs: number; price: number; law: Law }): Watched {
  const { subject, status, route, sinceMs } = stage;
  const { nowMs, price, law } = now;
  const ageSeconds = Math.max(0, nowMs - sinceMs) / 1_000;
  const { watch } = stageOf(subject, status);
  if (watch === null) {
    const everySeconds = stageInterval({ subject, status, ageMs: ageSeconds * 1_000 }) / 1_000;
    const rate = 2 / everySeconds ** 2;
    const clamp = { leastSeconds: everySeconds * LEAST_FACTOR, mostSeconds: LONGEST_WAIT_SECONDS };
    return { hazard: rate, weight: 1, clamp, term: null, constant: rate };
  }
  const { weight, limits } = law.rules[watch];
  const curve = law.curve(route, watch);
  return {
    hazard: rateAt(curve, ageSeconds),
    weight,
    clamp: clampAt(limits, { ageSeconds, price }),
    term: (lookedAtMs) => ({
      curve,
      ageSeconds: (lookedAtMs - sinceMs) / 1_000,
      weight,
      deadlineSeconds: null,
    }),
    constant: 0,
  };
}
