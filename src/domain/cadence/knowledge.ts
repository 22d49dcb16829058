import { ANY_ROUTE } from '../transfers/transfer.ts';
import { type DecayClock, usualArrivals, weightAt } from './arrivals.ts';
import type { StageEnds } from './expected.ts';
import {
  type Expectation,
  endedShares,
  expectedHazard,
  type HazardCurve,
  quantileSeconds,
} from './hazard.ts';
import {
  emptyTally,
  learnedHazard,
  NO_HAZARD,
  PRIOR_TRANSFERS,
  type Tally,
  updatedHazard,
} from './learning.ts';
import {
  type ArrivalRule,
  failedOf,
  type Statistic,
  WATCHES,
  type Watch,
  type WatchRules,
} from './watch-rules.ts';

export const LEARNED_HALF_LIFE_MS = 86_400_000;

/** Observations of all processes of one stage on one route, or of new transfers. */
export type StoredTally = { route: string; statistic: Statistic; tally: Tally; landmarkMs: number };

/** Learned hazard of one stage on one route. `observations`: decayed number of observed ends. */
export type LearnedStage = { route: string; watch: Watch; observations: number; curve: HazardCurve };

/** Learned rate of new transfers: their decayed number, and the usual number of a wallet per second. */
export type LearnedArrivals = { observations: number; usualPerSecond: number };

/** All learned values. */
export type Knowledge = {
  curve: (route: string, watch: Watch) => HazardCurve;
  /** Seconds by which 99 of 100 stages that ever end have ended; null without enough observations or a quote's estimate. */
  p99Seconds: (route: string, watch: Watch) => number | null;
  /** Ends of a stage on a route, usual or failed; null without enough observations. */
  ends: (route: string, watch: Watch) => StageEnds | null;
  failed: (route: string, watch: Watch) => HazardCurve;
  /** Decayed count of a statistic on a route. */
  counted: (route: string, statistic: Statistic) => number;
  stages: readonly LearnedStage[];
  /** Delivery times that quotes estimate: route -> seconds. */
  estimates: ReadonlyMap<string, number>;
  arrivals: LearnedArrivals;
  /** Share of transfers on any route that are filled by an age (see `endedShares`). */
  filledShares: readonly number[];
};

/** Weight of the expectation: a route with fewer observations uses the values of all routes. */
export const ENOUGH_OF_A_ROUTE = 20;

/** The expectation leans to long times, for the planner's sake. For reported times it counts like this few transfers. */
const FEW_TRANSFERS = 4;

const ENOUGH_FOR_P99 = 50;

/** Rules that learning begins with. */
export type LearningRules = { rules: WatchRules; arrivals: ArrivalRule };

/** Initial values of knowledge. `estimates`: route -> quotes' estimate of the delivery time, seconds. */
type KnowledgeRules = LearningRules & {
  nowMs: number;
  estimates?: ReadonlyMap<string, number>;
};

/** Solvers' estimates assume that all goes well: too short a guess costs more than too long a one. */
const ESTIMATE_FACTOR = 1.5;
const ESTIMATE_SIGMA = 1;

function estimated(usual: Expectation, seconds: number): Expectation {
  const sigma = Math.max(usual.sigma, ESTIMATE_SIGMA);
  return { ...usual, medianSeconds: ESTIMATE_FACTOR * Math.max(1, seconds), sigma };
}

/** Quotes' estimate for a route; the longest from its source when the destination is unknown. */
function estimateOf(estimates: ReadonlyMap<string, number>, route: string): number | null {
  const exact = estimates.get(route);
  if (exact !== undefined || !route.endsWith(':*')) return exact ?? null;
  const from = [...estimates].filter(([name]) => name.startsWith(route.slice(0, -1)));
  return from.length === 0 ? null : Math.max(...from.map(([, seconds]) => seconds));
}

/** Derives the knowledge of the present time from the tallies. */
export function knowledgeOf(
  stored: readonly StoredTally[],
  { rules, arrivals, nowMs, estimates = new Map() }: KnowledgeRules,
): Knowledge {
  const estimate = (route: string, watch: Watch): number | null =>
    watch === 'pending' ? estimateOf(estimates, route) : null;
  const expectation = (route: string, watch: Watch): Expectation => {
    const seconds = estimate(route, watch);
    return seconds === null ? rules[watch].expectation : estimated(rules[watch].expectation, seconds);
  };
  const expected = new Map(WATCHES.map((watch) => [watch, expectedHazard(rules[watch].expectation)]));
  const tallies = new Map(stored.map((one) => [nameOf(one.route, one.statistic), atPresent(one, nowMs)]));
  const tallyOf = (route: string, statistic: Statistic): Tally =>
    tallies.get(nameOf(route, statistic)) ?? emptyTally();
  const counted = (route: string, statistic: Statistic): number => sum(tallyOf(route, statistic).ended);
  const stages = stored.flatMap(({ route, statistic }): LearnedStage[] => {
    const watch = WATCHES.find((one) => one === statistic);
    if (watch === undefined) return [];
    const curve = learnedHazard(expectation(route, watch), tallyOf(route, watch), 1);
    return [{ route, watch, observations: counted(route, watch), curve }];
  });
  const { ended, watchedSeconds } = tallyOf(ANY_ROUTE, 'arrivals');
  const arrived = { seen: sum(ended), watchedSeconds: sum(watchedSeconds) };
  const byName = new Map(stages.map((stage) => [nameOf(stage.route, stage.watch), stage]));
  const best = (route: string, watch: Watch): LearnedStage | undefined => {
    const own = byName.get(nameOf(route, watch));
    if (own !== undefined && own.observations >= ENOUGH_OF_A_ROUTE) return own;
    const any = byName.get(nameOf(ANY_ROUTE, watch));
    // Until enough was seen anywhere, the quotes of the route are worth more than few observations.
    const isLittle = (any?.observations ?? 0) < ENOUGH_OF_A_ROUTE;
    return isLittle && estimate(route, watch) !== null ? own : any;
  };
  const fromQuotes = new Map<string, HazardCurve>();
  const curve = (route: string, watch: Watch): HazardCurve => {
    const learned = best(route, watch)?.curve;
    if (learned !== undefined) return learned;
    if (estimate(route, watch) === null) return expected.get(watch) ?? [];
    const hazard = fromQuotes.get(route) ?? expectedHazard(expectation(route, watch));
    fromQuotes.set(route, hazard);
    return hazard;
  };
  const cached = new Map<string, StageEnds>();
  /** The ends of all routes are the prior of one route; they themselves are used nearly as observed. */
  const endsOf = (route: string, watch: Watch): StageEnds => {
    const name = nameOf(route, watch);
    const found = cached.get(name);
    if (found !== undefined) return found;
    const isAny = route === ANY_ROUTE;
    const before = isAny ? { usual: expected.get(watch) ?? [], failed: NO_HAZARD } : endsOf(ANY_ROUTE, watch);
    const transfers = isAny ? FEW_TRANSFERS : PRIOR_TRANSFERS;
    const reached = rules[watch].expectation;
    const seen = tallyOf(route, watch);
    const failed = { ...seen, ended: tallyOf(route, failedOf(watch)).ended };
    const made = {
      usual: updatedHazard({ curve: before.usual, reached, transfers }, seen),
      failed: updatedHazard({ curve: before.failed, reached, transfers }, failed),
    };
    cached.set(name, made);
    return made;
  };
  return {
    curve,
    counted,
    failed: (route, watch) => endsOf(route, watch).failed,
    ends: (route, watch) => {
      const seen = Math.max(counted(route, watch), counted(ANY_ROUTE, watch));
      return seen < ENOUGH_OF_A_ROUTE ? null : endsOf(route, watch);
    },
    filledShares: endedShares(curve(ANY_ROUTE, 'pending')),
    p99Seconds: (route, watch) => {
      const learned = best(route, watch);
      if (learned !== undefined && learned.observations >= ENOUGH_FOR_P99)
        return quantileSeconds(learned.curve, 0.99);
      return estimate(route, watch) === null ? null : quantileSeconds(curve(route, watch), 0.99);
    },
    stages,
    estimates,
    arrivals: {
      observations: arrived.seen,
      usualPerSecond: usualArrivals(arrived, arrivals.everySeconds),
    },
  };
}

function atPresent({ tally, landmarkMs }: StoredTally, nowMs: number): Tally {
  const clock: DecayClock = { landmarkMs, halfLifeMs: LEARNED_HALF_LIFE_MS };
  const weight = weightAt(Math.max(nowMs, landmarkMs), clock);
  const decayed = (sums: readonly number[]): number[] => sums.map((one) => one / weight);
  return { ended: decayed(tally.ended), watchedSeconds: decayed(tally.watchedSeconds) };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function nameOf(route: string, statistic: Statistic): string {
  return `${route}|${statistic}`;
}
