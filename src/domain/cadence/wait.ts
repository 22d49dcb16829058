import { binOf, upperEdge } from './ages.ts';
import type { Clamp } from './clamp.ts';
import type { HazardCurve } from './hazard.ts';

/**
 * One change that a look may bring: its hazard, the age of its stage at the last look (negative: not begun yet), what
 * a second of delay of it is worth, and at what age it comes for certain if it has not come before (null: at none).
 */
export type Term = { curve: HazardCurve; ageSeconds: number; weight: number; deadlineSeconds: number | null };

/**
 * Everything that decides a wait: what a look may bring, changes that come at a constant rate (new transfers of a
 * wallet; weight per second), the price of a request in weighted seconds of delay, and the clamp.
 */
export type Look = { terms: readonly Term[]; arrivals: number; price: number; clamp: Clamp };

/** A look at a deadline comes so long after it, for clocks differ and the upstream needs a moment. */
const AFTER_DEADLINE_SECONDS = 0.5;

/** Ages are sums of fractions: a step towards an edge of a bin is never too small to arrive. */
const LEAST_STEP_SECONDS = 1e-6;

/**
 * How long after the last look the next one is due, seconds: the wait over which `sqrt(Σ w·h / 2c)` sums to 1 (Keller
 * 1974), within the clamp, and never past a deadline. Exact, as the hazard is constant within each bin.
 */
export function waitSeconds(look: Look): number {
  const { terms, clamp } = look;
  const mostSeconds = Math.max(clamp.leastSeconds, Math.min(clamp.mostSeconds, ...terms.map(untilDeadline)));
  const bins = terms.map((term) => binOf(term.ageSeconds));
  const need = Math.sqrt(2 * look.price);
  let sum = 0;
  let waited = 0;
  while (waited < mostSeconds) {
    let hazard = look.arrivals;
    let step = mostSeconds - waited;
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
    if (sum + rate * step >= need) {
      return Math.min(mostSeconds, Math.max(clamp.leastSeconds, waited + (need - sum) / rate));
    }
    sum += rate * step;
    waited += step;
  }
  return mostSeconds;
}

/** Seconds from the last look to the moment at which a deadline can be seen to have passed. */
function untilDeadline({ ageSeconds, deadlineSeconds }: Term): number {
  if (deadlineSeconds === null || deadlineSeconds <= ageSeconds) return Number.POSITIVE_INFINITY;
  return deadlineSeconds - ageSeconds + AFTER_DEADLINE_SECONDS;
}
