import { type DecayClock, usualArrivals, weightAt } from '../../src/domain/cadence/arrivals.ts';
import {
  AGE_BINS,
  boundedRate,
  endedShares,
  expectedHazard,
  type HazardCurve,
  lowerEdge,
  stillOpen,
  upperEdge,
} from '../../src/domain/cadence/hazard.ts';
import {
  type Knowledge,
  knowledgeOf,
  LEARNED_HALF_LIFE_MS,
  type StoredTally,
} from '../../src/domain/cadence/knowledge.ts';
import { emptyTally, type Increment, type Interval, increments } from '../../src/domain/cadence/learning.ts';
import {
  ARRIVAL_RULE,
  type Statistic,
  WATCH_RULES,
  type Watch,
} from '../../src/domain/cadence/watch-rules.ts';
import type { CadenceModel } from '../../src/domain/cadence/watched.ts';
import { ANY_ROUTE } from '../../src/domain/transfers/transfer.ts';
import { withIncrements } from '../../test/support/tally.ts';
import { type Load, ROUTES } from './workload.ts';

/** Expectations of a run, and its learning. */
export type Teacher = {
  model: CadenceModel;
  saw: (route: string, watch: Watch, interval: Interval) => void;
  sawArrivals: (arrived: { seen: number; watchedSeconds: number }) => void;
  /** Applies the values learned by `nowMs`. */
  refresh: (nowMs: number) => void;
};

/** Learns in memory as the daemon does in Redis, by the same functions. */
export function apprentice(startMs: number): Teacher {
  const stored = new Map<string, StoredTally>();
  const clock: DecayClock = { landmarkMs: startMs, halfLifeMs: LEARNED_HALF_LIFE_MS };
  const given = { rules: WATCH_RULES, arrivals: ARRIVAL_RULE };
  let knowledge: Knowledge = knowledgeOf([], { ...given, nowMs: startMs });
  let weight = 1;
  const add = (route: string, statistic: Statistic, seen: readonly Increment[]): void => {
    const name = `${route}:${statistic}`;
    const learned = stored.get(name) ?? { route, statistic, tally: emptyTally(), landmarkMs: startMs };
    stored.set(name, { ...learned, tally: withIncrements(learned.tally, seen, weight) });
  };
  const teacher: Teacher = {
    model: modelOf(knowledge),
    saw: (route, watch, interval) => {
      const seen = increments(knowledge.curve(route, watch), interval);
      add(route, watch, seen);
      if (route !== ANY_ROUTE) add(ANY_ROUTE, watch, increments(knowledge.curve(ANY_ROUTE, watch), interval));
    },
    sawArrivals: ({ seen, watchedSeconds }) => {
      add(ANY_ROUTE, 'arrivals', [{ bin: 0, ended: seen, watchedSeconds }]);
    },
    refresh: (nowMs) => {
      weight = weightAt(nowMs, clock);
      knowledge = knowledgeOf([...stored.values()], { ...given, nowMs });
      teacher.model = modelOf(knowledge);
    },
  };
  return teacher;
}

function modelOf({ curve, filledShares, arrivals }: Knowledge): CadenceModel {
  return {
    rules: WATCH_RULES,
    arrivals: ARRIVAL_RULE,
    usualArrivals: arrivals.usualPerSecond,
    curve,
    filledShares,
  };
}

/** Knows the truth from the beginning, and learns nothing. */
export function sage(load: Load): Teacher {
  const curves = new Map<string, HazardCurve>();
  for (const { name, fill, settlement } of ROUTES) {
    curves.set(`${name}:pending`, expectedHazard(fill));
    curves.set(`${name}:filled`, expectedHazard(settlement));
  }
  const mixture = AGE_BINS.map((_, bin) => {
    const open = (age: number): number =>
      ROUTES.reduce((sum, { share, fill }) => sum + share * stillOpen(fill, age), 0);
    const to = Math.min(upperEdge(bin), 2 * lowerEdge(bin) || upperEdge(bin));
    return boundedRate(Math.log(open(lowerEdge(bin)) / open(to)) / (to - lowerEdge(bin)));
  });
  const perSecond = load.perSecond / load.wallets;
  return {
    model: {
      rules: WATCH_RULES,
      arrivals: ARRIVAL_RULE,
      usualArrivals: usualArrivals({ seen: perSecond * 1e9, watchedSeconds: 1e9 }, ARRIVAL_RULE.everySeconds),
      curve: (route, watch) => curves.get(`${route}:${watch}`) ?? mixture,
      filledShares: endedShares(mixture),
    },
    saw: () => undefined,
    sawArrivals: () => undefined,
    refresh: () => undefined,
  };
}
