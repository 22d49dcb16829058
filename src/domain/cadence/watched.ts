import { type Kind, kindOf } from '../subjects/kinds.ts';
import { stageOf } from '../subjects/record.ts';
import type { SubjectId } from '../subjects/subject.ts';
import { type HazardCurve, rateAt } from './hazard.ts';
import { keepable, type Limits, LONGEST_WAIT_SECONDS, limitsAt, type Term, youngSeconds } from './wait.ts';
import {
  type ArrivalRule,
  type StageRule,
  stageInterval,
  type Watch,
  type WatchRules,
} from './watch-rules.ts';

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
 * Possible changes that a poll may find. `hazard`: present chance of a change per second; `curve`: that of each age since
 * `sinceMs`; null without a model, when `constant` is the weighted rate of changes.
 */
export type ExpectedChanges = {
  hazard: number;
  weight: number;
  limits: Limits;
  curve: HazardCurve | null;
  sinceMs: number;
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

/** Possible changes that a poll of a stage may find. */
export function watched(stage: StageSeen, now: { nowMs: number; model: CadenceModel }): ExpectedChanges {
  return watcher(now)(stage);
}

/** What the stages of one kind, status and route share. `young`: the limits of those that are young. */
type RoutedStage =
  | { learned: null; rule: Extract<StageRule, { watch: null }> }
  | { learned: HazardCurve; watch: Watch; young: Limits };

/**
 * Returns the function that finds the possible changes of stages at one time. It looks up once what stages share: a wallet may
 * have a thousand transfers. A stage with an interval but no model gets the constant hazard for which the interval is right at
 * a price of 1. So all waits scale with the square root of the price.
 */
export function watcher({ nowMs, model }: { nowMs: number; model: CadenceModel }): Watcher {
  const routed = new Map<Kind, Map<string | null, Map<string, RoutedStage>>>();
  const stageFor = ({ subject, status, route }: StageSeen): RoutedStage => {
    const kind = kindOf(subject);
    const byStatus = routed.get(kind) ?? new Map<string | null, Map<string, RoutedStage>>();
    const byRoute = byStatus.get(status) ?? new Map<string, RoutedStage>();
    const known = byRoute.get(route);
    if (known !== undefined) return known;
    const rule = stageOf(subject, status);
    const stage: RoutedStage =
      rule.watch === null
        ? { learned: null, rule }
        : {
            learned: model.curve(route, rule.watch),
            watch: rule.watch,
            young: limitsAt(model.rules[rule.watch].limits, 0),
          };
    routed.set(kind, byStatus.set(status, byRoute.set(route, stage)));
    return stage;
  };
  return (seen) => {
    const stage = stageFor(seen);
    const { sinceMs } = seen;
    const ageSeconds = Math.max(0, nowMs - sinceMs) / 1_000;
    if (stage.learned === null) {
      const everySeconds = stageInterval(stage.rule, ageSeconds);
      const rate = 2 / everySeconds ** 2;
      const { leastSeconds, mostSeconds } = model.rules.pending.limits;
      const limits = keepable({
        leastSeconds: Math.max(stage.rule.leastFactor * leastSeconds, LEAST_SHARE * everySeconds),
        mostSeconds: Math.max(mostSeconds, MOST_FACTOR * everySeconds),
      });
      return { hazard: rate, weight: 1, limits, curve: null, sinceMs, constant: rate };
    }
    const { learned: curve, watch, young } = stage;
    const { weight, limits } = model.rules[watch];
    return {
      hazard: rateAt(curve, ageSeconds),
      weight,
      limits: ageSeconds <= youngSeconds(limits) ? young : limitsAt(limits, ageSeconds),
      curve,
      sinceMs,
      constant: 0,
    };
  };
}

type Watcher = (stage: StageSeen) => ExpectedChanges;

/** The possible change of a stage since its last poll; none without a model. */
export function termsOf({ curve, weight, sinceMs }: ExpectedChanges, polledAtMs: number): Term[] {
  return curve === null ? [] : [{ curve, ageSeconds: (polledAtMs - sinceMs) / 1_000, weight }];
}
