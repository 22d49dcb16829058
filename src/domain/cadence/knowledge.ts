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

/** What was seen counts half after this. */
export const LEARNED_HALF_LIFE_MS = 86_400_000;

/** What all processes have seen of one stage on one route, or of the arrivals of new transfers. */
export type StoredTally = { route: string; statistic: Statistic; tally: Tally; landmarkMs: number };

/** What is known of one stage on one route. `observations` counts ends that were seen, decayed. */
export type LearnedStage = { route: string; watch: Watch; observations: number; curve: HazardCurve };

/** The interval at which new transfers come: how many were seen, decayed, and how many are usual in a wallet per second. */
export type LearnedArrivals = { observations: number; usualPerSecond: number };

/** All that is known: the curve of a stage on a route, and what was learned for it. */
export type Knowledge = {
  curve: (route: string, watch: Watch) => HazardCurve;
  /** After how many seconds 99 of 100 that ever end have ended; null while too little was seen and no quote said it. */
  p99Seconds: (route: string, watch: Watch) => number | null;
  /** How a stage ends on a route, as usual or failed; null while too little was seen. */
  ends: (route: string, watch: Watch) => StageEnds | null;
  /** The hazard that a stage fails. */
  failed: (route: string, watch: Watch) => HazardCurve;
  /** The number of were counted on a route, decayed. */
  counted: (route: string, statistic: Statistic) => number;
  stages: readonly LearnedStage[];
  /** The time that quotes say that a delivery takes: route -> seconds. */
  estimates: ReadonlyMap<string, number>;
  arrivals: LearnedArrivals;
  /** Of transfers on any route, the share that is filled by an age (see `endedShares`). */
  filledShares: readonly number[];
};

/** A route of which less was seen goes by what was learned on all of them: so much does the expectation weigh. */
export const ENOUGH_OF_A_ROUTE = 20;

/**
 * What is expected before anything was seen leans to long times, for the planner's sake. Where times are reported, it counts
 * like so few transfers.
 */
const FEW_TRANSFERS = 4;

/** So many ends have to be seen before their 99th percentile means something. */
const ENOUGH_FOR_P99 = 50;

/** What knowledge begins from. `estimates`: route -> how long quotes say that a delivery takes, seconds. */
export type KnowledgeRules = {
  rules: WatchRules;
  arrivals: ArrivalRule;
  nowMs: number;
  estimates?: ReadonlyMap<string, number>;
};

/** Solvers say how long it takes when all goes well: a guess that is too short costs more than one that is too long. */
const ESTIMATE_FACTOR = 1.5;
const ESTIMATE_SIGMA = 1;

/** What is expected of a stage of which a quote says how long it takes. */
function estimated(usual: Expectation, seconds: number): Expectation {
  const sigma = Math.max(usual.sigma, ESTIMATE_SIGMA);
  return { ...usual, medianSeconds: ESTIMATE_FACTOR * Math.max(1, seconds), sigma };
}

/** What quotes say of a route; of one whose destination is not known, the longest from its source. */
function estimateOf(estimates: ReadonlyMap<string, number>, route: string): number | null {
  const exact = estimates.get(route);
  if (exact !== undefined || !route.endsWith(':*')) return exact ?? null;
  const from = [...estimates].filter(([name]) => name.startsWith(route.slice(0, -1)));
  return from.length === 0 ? null : Math.max(...from.map(([, seconds]) => seconds));
}

/** What follows from the tallies for the present moment. */
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
    // Until enough was seen anywhere, what the quotes of the route say is worth more than the little.
    const isLittle = (any?.observations ?? 0) < ENOUGH_OF_A_ROUTE;
    return isLittle && estimate(route, watch) !== null ? own : any;
  };
  const fromQuotes = new Map<string, HazardCurve>();
  const curve = (route: string, watch: Watch): HazardCurve => {
    const learned = best(route, watch)?.curve;
    if (learned !== undefined) return learned;
    if (estimate(route, watch) === null) return expected.get(watch) ?? [];
    const known = fromQuotes.get(route) ?? expectedHazard(expectation(route, watch));
    fromQuotes.set(route, known);
    return known;
  };
  const known = new Map<string, StageEnds>();
  /** What was seen of all routes is what is expected of one, and is itself taken nearly as it was seen. */
  const endsOf = (route: string, watch: Watch): StageEnds => {
    const name = nameOf(route, watch);
    const found = known.get(name);
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
    known.set(name, made);
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
      const known = best(route, watch);
      if (known !== undefined && known.observations >= ENOUGH_FOR_P99)
        return quantileSeconds(known.curve, 0.99);
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

/** The sums of a tally as they count at a moment: what was added earlier has decayed. */
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
