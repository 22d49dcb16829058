import { stageOf } from '../subjects/record.ts';
import type { SubjectId } from '../subjects/subject.ts';
import { type HazardCurve, rateAt } from './hazard.ts';
import { keepable, type Limits, LONGEST_WAIT_SECONDS, limitsAt, type Term } from './wait.ts';
import { type ArrivalRule, stageInterval, type Watch, type WatchRules } from './watch-rules.ts';

/**
 * What the cadence goes by: the rules of the config, the hazard of what is waited for on a route, and how many new
 * transfers are usual in a wallet per second.
 */
export type CadenceModel = {
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
 * What a poll of a stage may bring. `hazard`: the present chance of a change per second; `term` makes the term of a poll
 * whose last was at a moment; where no model is known it is null, and `constant` is the weighted rate of changes.
 */
export type Watched = {
  hazard: number;
  weight: number;
  limits: Limits;
  term: ((polledAtMs: number) => Term) | null;
  constant: number;
};

/** A stage without a model is polled at most so much more often than its interval says, and at least so much more rarely. */
const LEAST_SHARE = 0.2;
const MOST_FACTOR = 6;

/**
 * The wait after which what a page has just shown would be worth a poll of its own, at a price of 1, by its present
 * hazard, and its longest wait: for when pages do not show it any more.
 */
export function coveredWait(
  stage: StageSeen,
  now: { nowMs: number; model: CadenceModel },
): { virtualSeconds: number; latestMs: number } {
  const { weight, hazard, limits } = watched(stage, now);
  return {
    virtualSeconds: Math.min(LONGEST_WAIT_SECONDS, Math.sqrt(2 / (weight * hazard))),
    latestMs: Math.round(1_000 * limits.mostSeconds),
  };
}

/**
 * What a poll of a stage may bring. A stage with an interval but no model is taken for one with a constant hazard: that at
 * which the interval is right at a price of 1. So all waits go with the square root of the price.
 */
export function watched(stage: StageSeen, now: { nowMs: number; model: CadenceModel }): Watched {
  const { subject, status, route, sinceMs } = stage;
  const { nowMs, model } = now;
  const ageSeconds = Math.max(0, nowMs - sinceMs) / 1_000;
  const known = stageOf(subject, status);
  if (known.watch === null) {
    const everySeconds = stageInterval(known, ageSeconds);
    const rate = 2 / everySeconds ** 2;
    const { leastSeconds, mostSeconds } = model.rules.pending.limits;
    const limits = keepable({
      leastSeconds: Math.max(known.leastFactor * leastSeconds, LEAST_SHARE * everySeconds),
      mostSeconds: Math.max(mostSeconds, MOST_FACTOR * everySeconds),
    });
    return { hazard: rate, weight: 1, limits, term: null, constant: rate };
  }
  const { weight, limits } = model.rules[known.watch];
  const curve = model.curve(route, known.watch);
  return {
    hazard: rateAt(curve, ageSeconds),
    weight,
    limits: limitsAt(limits, ageSeconds),
    term: (polledAtMs) => ({ curve, ageSeconds: (polledAtMs - sinceMs) / 1_000, weight }),
    constant: 0,
  };
}
