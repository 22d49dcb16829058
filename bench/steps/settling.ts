import type { Steering } from '../cadence/simulate.ts';

/** A sudden change: when, of what, the budget from then on (requests per second), and when the next one comes. */
export type Step = {
  at: number;
  of: 'load' | 'budget';
  name: string;
  budgetPerSecond: number;
  until: number;
};

/** A run with the steps, and one on the same transfers that always had the budget to which a step leads. */
export type Pair = { steerings: readonly Steering[]; control: readonly Steering[] };

/**
 * How a step went, in seconds after it: when the price had settled, and when the queue was short (null: never); and by
 * which share the rate of looking was off at most once it should have settled (null: nothing to compare it with).
 */
export type Settling = {
  settledSeconds: number | null;
  shortSeconds: number | null;
  laterOff: number | null;
};

/** Within so many seconds the price has to settle. */
export const MOST_SECONDS = 30;

/** What settled means; printed with the table. */
export const SETTLED =
  'A price has settled after a step in budget when the rate of looking to which it leads (1/√price) is within 20 % of\n' +
  'that of a run that always had this budget, at the same moment; after a step in load, for which there is no such run,\n' +
  'when the queue is short: the look that is due longest waits 5 s at most for its turn. In both cases at least 70 % of\n' +
  'the budget is used, and all holds for a minute. Each a mean over all runs (of rates the geometric one) and 10 s.';

const TOLERANCE = 0.2;
const SHORT_SECONDS = 5;
const LEAST_USED = 0.7;
const RECENT_SECONDS = 10;
const HOLDS_SECONDS = 60;
const LOOKED_AT_SECONDS = 150;

/** Says when the price has settled after a step. All runs are steered every second from 0 on. */
export function settling(pairs: readonly Pair[], step: Step): Settling {
  const { at: from, budgetPerSecond, of } = step;
  const until = Math.min(step.until, from + LOOKED_AT_SECONDS);
  const moments = Array.from({ length: until - from - 1 }, (_, index) => {
    const at = from + 1 + index;
    // What was before the step says nothing about what came after it.
    const recent = { from: Math.max(from + 1, at - RECENT_SECONDS + 1), to: at + 1 };
    const spans = pairs.flatMap(({ steerings }) => steerings.slice(recent.from, recent.to));
    return {
      off: Math.expm1(Math.abs(mean(pairs.map((pair) => rateOff(pair, recent))))),
      isShort: mean(spans.map(({ behindSeconds }) => behindSeconds)) <= SHORT_SECONDS,
      isUsed: mean(spans.map(({ served }) => served)) >= LEAST_USED * budgetPerSecond,
    };
  });
  const isBudget = of === 'budget';
  return {
    settledSeconds: holdsAfter(
      moments.map(({ off, isShort, isUsed }) => isUsed && (isBudget ? off <= TOLERANCE : isShort)),
    ),
    shortSeconds: holdsAfter(moments.map(({ isShort }) => isShort)),
    laterOff: isBudget ? Math.max(...moments.slice(MOST_SECONDS).map(({ off }) => off)) : null,
  };
}

/** After how many seconds something begins to hold for a minute, or to the end; null when it never does. */
function holdsAfter(holds: readonly boolean[]): number | null {
  const index = holds.findIndex((_, at) => holds.slice(at, at + HOLDS_SECONDS).every((one) => one));
  return index === -1 ? null : index + 1;
}

/** The mean logarithm of the rate to which a price leads, over the control's. */
function rateOff({ steerings, control }: Pair, span: { from: number; to: number }): number {
  return mean(
    steerings
      .slice(span.from, span.to)
      .map(({ at, price }) => Math.log((control[at]?.price ?? Number.NaN) / price) / 2),
  );
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
