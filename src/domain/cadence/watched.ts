import { stageOf } from '../subjects/record.ts';
import type { SubjectId } from '../subjects/subject.ts';
import { type HazardCurve, rateAt } from './hazard.ts';
import { keepable, type Limits, LONGEST_WAIT_SECONDS, limitsAt, type Term } from './wait.ts';
import { type ArrivalRule, stageInterval, type Watch, type WatchRules } from './watch-rules.ts';

/** Model of the cadence: rules of the config, hazards by route, and the usual new transfers of a wallet per second. */
export type CadenceModel = {
  rules: WatchRules;
  arrivals: ArrivalRule;
  usualArrivals: number;
  curve: (route: string, watch: Watch) => HazardCurve;
  /** Share of transfers on any route that are filled by an age (see `endedShares`). */
  filledShares: readonly number[];
};

/** A subject in a stage; null as status until it is seen. `route` as in `routeName`. Redis time. */
export type StageSeen = { subject: SubjectId; status: string | null; route: string; sinceMs: number };

/**
 * Possible changes that a poll may find. `hazard`: present chance of a change per second. `term` makes the term for
 * the time of the last poll; null without a model, when `constant` is the weighted rate of changes.
 */
export type ExpectedChanges = {
  hazard: number;
  weight: number;
  limits: Limits;
  term: ((polledAtMs: number) => Term) | null;
  constant: number;
};

/** Bounds of the wait of a stage without a model, as factors of its interval. */
const LEAST_SHARE = 0.2;
const MOST_FACTOR = 6;

/**
 * Wait after which a subject just shown by a page would be worth its own poll, at a price of 1 and its present
 * hazard; and its longest wait. For the time when pages no longer show it.
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
 * Possible changes that a poll of a stage may find. A stage with an interval but no model gets the constant hazard
 * for which the interval is right at a price of 1. So all waits scale with the square root of the price.
 */
export function watched(stage: StageSeen, now: { nowMs: number; model: CadenceModel }): ExpectedChanges {
  const { subject, status, route, sinceMs } = stage;
  const { nowMs, model } = now;
  const ageSeconds = Math.max(0, nowMs - sinceMs) / 1_000;
  const rule = stageOf(subject, status);
  if (rule.watch === null) {
    const everySeconds = stageInterval(rule, ageSeconds);
    const rate = 2 / everySeconds ** 2;
    const { leastSeconds, mostSeconds } = model.rules.pending.limits;
    const limits = keepable({
      leastSeconds: Math.max(rule.leastFactor * leastSeconds, LEAST_SHARE * everySeconds),
      mostSeconds: Math.max(mostSeconds, MOST_FACTOR * everySeconds),
    });
    return { hazard: rate, weight: 1, limits, term: null, constant: rate };
  }
  const { weight, limits } = model.rules[rule.watch];
  const curve = model.curve(route, rule.watch);
  return {
    hazard: rateAt(curve, ageSeconds),
    weight,
    limits: limitsAt(limits, ageSeconds),
    term: (polledAtMs) => ({ curve, ageSeconds: (polledAtMs - sinceMs) / 1_000, weight }),
    constant: 0,
  };
}
