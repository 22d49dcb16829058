import { usualArrivals } from './arrivals.ts';
import { type DecayClock, weightAt } from './decay.ts';
import {
  type Expectation,
  endedShares,
  expectedHazard,
  type HazardCurve,
  quantileSeconds,
} from './hazard.ts';
import { learnedHazard, type Tally } from './learning.ts';
import { ANY_ROUTE } from './route-name.ts';
import { type ArrivalRule, type Statistic, WATCHES, type Watch, type WatchRules } from './watch-rules.ts';

/** What was seen counts half after this. */
export const LEARNED_HALF_LIFE_MS = 86_400_000;

/** What all processes have seen of one stage on one route, or of the arrivals of new transfers. */
export type StoredTally = { route: string; statistic: Statistic; tally: Tally; landmarkMs: number };

/** What is known of one stage on one route. `observations` counts ends that were seen, decayed. */
export type LearnedStage = { route: string; watch: Watch; observations: number; curve: HazardCurve };

/** How often new transfers come: how many were seen, decayed, and how many are usual in a wallet per second. */
export type LearnedArrivals = { observations: number; usualPerSecond: number };

/** All that is known: the curve of a stage on a route, and what was learned for it. */
export type Knowledge = {
  curve: (route: string, watch: Watch) => HazardCurve;
  /** After how many seconds 99 of 100 that ever end have ended; null while too little was seen and no quote said it. */
  p99Seconds: (route: string, watch: Watch) => number | null;
  stages: readonly LearnedStage[];
  arrivals: LearnedArrivals;
  /** Of transfers on any route, the share that is filled by an age (see `endedShares`). */
  filledShares: readonly number[];
};

/** A route of which less was seen goes by what was learned on all of them: so much does the expectation weigh. */
const ENOUGH_OF_A_ROUTE = 20;

/** So many ends have to be seen before their 99th percentile means something. */
const ENOUGH_FOR_P99 = 50;

/** What knowledge begins from. `estimates`: route -> how long quotes say that a delivery takes, seconds. */
type Rules = {
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
  { rules, arrivals, nowMs, estimates = new Map() }: Rules,
): Knowledge {
  const estimate = (route: string, watch: Watch): number | null =>
    watch === 'pending' ? estimateOf(estimates, route) : null;
  const expectation = (route: string, watch: Watch): Expectation => {
    const seconds = estimate(route, watch);
    return seconds === null ? rules[watch].expectation : estimated(rules[watch].expectation, seconds);
  };
  const expected = new Map(WATCHES.map((watch) => [watch, expectedHazard(rules[watch].expectation)]));
  const stages: LearnedStage[] = [];
  const arrived = { seen: 0, watchedSeconds: 0 };
  for (const { route, statistic, tally, landmarkMs } of stored) {
    const clock: DecayClock = { landmarkMs, halfLifeMs: LEARNED_HALF_LIFE_MS };
    const weight = weightAt(Math.max(nowMs, landmarkMs), clock);
    const observations = sum(tally.ended) / weight;
    if (statistic === 'arrivals') {
      arrived.seen += observations;
      arrived.watchedSeconds += sum(tally.watchedSeconds) / weight;
    } else {
      const curve = learnedHazard(expectation(route, statistic), tally, weight);
      stages.push({ route, watch: statistic, observations, curve });
    }
  }
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
  return {
    curve,
    filledShares: endedShares(curve(ANY_ROUTE, 'pending')),
    p99Seconds: (route, watch) => {
      const known = best(route, watch);
      if (known !== undefined && known.observations >= ENOUGH_FOR_P99)
        return quantileSeconds(known.curve, 0.99);
      return estimate(route, watch) === null ? null : quantileSeconds(curve(route, watch), 0.99);
    },
    stages,
    arrivals: {
      observations: arrived.seen,
      usualPerSecond: usualArrivals(arrived, arrivals.everySeconds),
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function nameOf(route: string, watch: Watch): string {
  return `${route}|${watch}`;
}
