import { type DecayClock, weightAt } from './decay.ts';
import { expectedHazard, type HazardCurve, quantileSeconds } from './hazard.ts';
import { learnedHazard, type Tally } from './learning.ts';
import { ANY_ROUTE } from './route-name.ts';
import { WATCHES, type Watch, type WatchRules } from './watch-rules.ts';

/** What was seen counts half after this. */
export const LEARNED_HALF_LIFE_MS = 86_400_000;

/** What all processes have seen of one stage on one route. */
export type StoredTally = { route: string; watch: Watch; tally: Tally; landmarkMs: number };

/** What is known of one stage on one route. `observations` counts ends that were seen, decayed. */
export type LearnedStage = { route: string; watch: Watch; observations: number; curve: HazardCurve };

/** All that is known: the curve of a stage on a route, and what was learned for it. */
export type Knowledge = {
  curve: (route: string, watch: Watch) => HazardCurve;
  /** After how many seconds 99 of 100 that ever end have ended; null while too little was seen. */
  p99Seconds: (route: string, watch: Watch) => number | null;
  stages: readonly LearnedStage[];
};

/** A route of which less was seen goes by what was learned on all of them: so much does the expectation weigh. */
const ENOUGH_OF_A_ROUTE = 20;

/** So many ends have to be seen before their 99th percentile means something. */
const ENOUGH_FOR_P99 = 50;

/** What follows from the tallies for the present moment. */
export function knowledgeOf(
  stored: readonly StoredTally[],
  { rules, nowMs }: { rules: WatchRules; nowMs: number },
): Knowledge {
  const expected = new Map(WATCHES.map((watch) => [watch, expectedHazard(rules[watch].expectation)]));
  const stages = stored.map(({ route, watch, tally, landmarkMs }): LearnedStage => {
    const clock: DecayClock = { landmarkMs, halfLifeMs: LEARNED_HALF_LIFE_MS };
    const weight = weightAt(Math.max(nowMs, landmarkMs), clock);
    const observations = tally.ended.reduce((sum, ended) => sum + ended, 0) / weight;
    return { route, watch, observations, curve: learnedHazard(rules[watch].expectation, tally, weight) };
  });
  const byName = new Map(stages.map((stage) => [nameOf(stage.route, stage.watch), stage]));
  const best = (route: string, watch: Watch): LearnedStage | undefined => {
    const own = byName.get(nameOf(route, watch));
    return own !== undefined && own.observations >= ENOUGH_OF_A_ROUTE
      ? own
      : byName.get(nameOf(ANY_ROUTE, watch));
  };
  return {
    curve: (route, watch) => best(route, watch)?.curve ?? expected.get(watch) ?? [],
    p99Seconds: (route, watch) => {
      const known = best(route, watch);
      return known === undefined || known.observations < ENOUGH_FOR_P99
        ? null
        : quantileSeconds(known.curve, 0.99);
    },
    stages,
  };
}

function nameOf(route: string, watch: Watch): string {
  return `${route}|${watch}`;
}
