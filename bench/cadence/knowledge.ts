import { weightAt } from '../../src/domain/cadence/decay.ts';
import { type Expectation, expectedHazard, type HazardCurve } from '../../src/domain/cadence/hazard.ts';
import {
  emptyTally,
  type Increment,
  type Interval,
  increments,
  learnedHazard,
  type Tally,
  withIncrements,
} from '../../src/domain/cadence/learning.ts';
import { ROUTES, routeAt } from './workload.ts';

/** The stages in which something is waited for. */
export type StageName = 'pending' | 'filled';

/** What the cadence knows about the stages of each route, and may learn. */
export type Knowledge = {
  curve: (route: number, stage: StageName) => HazardCurve;
  learn: (seen: { route: number; stage: StageName; interval: Interval }) => void;
  /** Adds what was seen to the tallies and takes it into the curves, as a process does every few seconds. */
  refresh: (at: number) => void;
};

/** The truth about a route's stage. */
export function truth(route: number, stage: StageName): Expectation {
  const { fill, settlement } = routeAt(route);
  return stage === 'pending' ? fill : settlement;
}

/** Knows the truth from the start, and has nothing to learn: the limit of what the law can reach. */
export function omniscience(): Knowledge {
  const curves = ROUTES.map((_, route) => ({
    pending: expectedHazard(truth(route, 'pending')),
    filled: expectedHazard(truth(route, 'filled')),
  }));
  return { curve: (route, stage) => curves[route]?.[stage] ?? [], learn: () => {}, refresh: () => {} };
}

const CLOCK = { landmarkMs: 0, halfLifeMs: 86_400_000 };

/** Begins with an expectation and learns from what looks show. */
export function apprenticeship(expectation: (route: number, stage: StageName) => Expectation): Knowledge {
  const routes = ROUTES.map((_, route) => ({
    pending: beginStage(expectation(route, 'pending')),
    filled: beginStage(expectation(route, 'filled')),
  }));
  const stageOf = (route: number, stage: StageName): StageKnowledge => {
    const known = routes[route];
    if (known === undefined) throw new Error(`no route ${route}; there are ${routes.length}`);
    return known[stage];
  };
  return {
    curve: (route, stage) => stageOf(route, stage).curve,
    learn: ({ route, stage, interval }) => {
      const known = stageOf(route, stage);
      known.seen.push(...increments(known.curve, interval));
    },
    refresh: (at) => {
      const weight = weightAt(at * 1_000, CLOCK);
      for (const known of routes.flatMap((route) => [route.pending, route.filled])) {
        known.tally = withIncrements(known.tally, known.seen, weight);
        known.seen = [];
        known.curve = learnedHazard(known.expectation, known.tally, weight);
      }
    },
  };
}

type StageKnowledge = { expectation: Expectation; tally: Tally; curve: HazardCurve; seen: Increment[] };

function beginStage(expectation: Expectation): StageKnowledge {
  return { expectation, tally: emptyTally(), curve: expectedHazard(expectation), seen: [] };
}
