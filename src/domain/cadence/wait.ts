import { binOf, upperEdge } from './ages.ts';
import type { HazardCurve } from './hazard.ts';

/**
 * One change that a poll may bring: its hazard, the age of its stage at the last poll (negative: not begun yet), and what
 * a second of delay of it is worth.
 */
export type Term = { curve: HazardCurve; ageSeconds: number; weight: number };

/**
 * Everything that decides a wait: what a poll may bring, changes that come at a constant rate (weight per second), and the
 * price of a request in weighted seconds of delay.
 */
export type Prospect = { terms: readonly Term[]; constant: number; price: number };

/** Ages are sums of fractions: a step towards an edge of a bin is never too small to arrive. */
const LEAST_STEP_SECONDS = 1e-6;

/**
 * After how long a poll is worth its request, seconds: the wait over which `sqrt(Σ w·h / 2c)` sums to 1 (Keller 1974), at
 * most `LONGEST_WAIT_SECONDS`. Exact, as the hazard is constant within each bin.
 */
export function waitSeconds({ terms, constant, price }: Prospect): number {
  const bins = terms.map((term) => binOf(term.ageSeconds));
  const need = Math.sqrt(2 * price);
  let sum = 0;
  let waited = 0;
  while (waited < LONGEST_WAIT_SECONDS) {
    let hazard = constant;
    let step = LONGEST_WAIT_SECONDS - waited;
    for (let index = 0; index < terms.length; index++) {
      const term = terms[index];
      if (term === undefined) break;
      const age = term.ageSeconds + waited;
      if (age < 0) {
        step = Math.min(step, -age);
        continue;
      }
      let bin = bins[index] ?? 0;
      while (age >= upperEdge(bin)) bin++;
      bins[index] = bin;
      hazard += term.weight * (term.curve[bin] ?? 0);
      step = Math.min(step, upperEdge(bin) - age);
    }
    step = Math.max(step, LEAST_STEP_SECONDS);
    const rate = Math.sqrt(Math.max(0, hazard));
    if (sum + rate * step >= need) return waited + (need - sum) / rate;
    sum += rate * step;
    waited += step;
  }
  return LONGEST_WAIT_SECONDS;
}

/** The same wait in virtual time, which runs with the inverse of the square root of the price: seconds at a price of 1. */
export function virtualSeconds(prospect: Prospect): number {
  return waitSeconds(prospect) / Math.sqrt(prospect.price);
}

/**
 * The interval at which a stage may be polled, in seconds: `leastSeconds` is the shortest wait between two polls, which is polite
 * to the upstream; `mostSeconds` the longest while the stage is young, `agedSeconds` when it is old.
 */
export type StageLimits = { leastSeconds: number; mostSeconds: number; agedSeconds: number };

/** The shortest and the longest wait between two polls, seconds. */
export type Limits = { leastSeconds: number; mostSeconds: number };

/** Nothing is planned further ahead. */
export const LONGEST_WAIT_SECONDS = 7_200;

/** A stage that has lasted long is polled at least every tenth of its age: delay stays small beside what was waited. */
const SHARE_OF_AGE = 0.1;

/**
 * The limits of a stage at an age. The longest wait bounds what a wrong estimate can cost; it grows with age, so that
 * transfers that never fill do not eat the budget.
 */
export function limitsAt(limits: StageLimits, ageSeconds: number): Limits {
  const agedSeconds = Math.min(limits.agedSeconds, SHARE_OF_AGE * ageSeconds);
  return keepable({ ...limits, mostSeconds: Math.max(limits.mostSeconds, agedSeconds) });
}

/** Limits that can be stored, whatever they were made from: nothing rests beyond all plans, or is overdue before it is allowed. */
export function keepable(limits: Limits): Limits {
  const leastSeconds = Math.min(LONGEST_WAIT_SECONDS, limits.leastSeconds);
  return { leastSeconds, mostSeconds: Math.max(leastSeconds, limits.mostSeconds) };
}

/** The limits of a poll that shows several stages: as often as the most pressing of them wants. */
export function tightest(limits: readonly Limits[]): Limits {
  return {
    leastSeconds: Math.min(...limits.map(({ leastSeconds }) => leastSeconds)),
    mostSeconds: Math.min(...limits.map(({ mostSeconds }) => mostSeconds)),
  };
}
