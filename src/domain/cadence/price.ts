/**
 * The price of a request on one surface of the upstream, and what steers it.
 *
 * `price` is in weighted seconds of delay: a look is worth it that saves as much. `correction` is what has been learned
 * about demand that no plan shows; `demand` (see `plannedDemand`; null before the first measurement), `busy` (share of
 * the budget), `unplannedPerSecond` and `behindRequests` are running means; `penalty` is above 1 for a while after the
 * upstream asked us to slow down.
 */
export type PriceState = {
  atMs: number;
  price: number;
  correction: number;
  demand: number | null;
  busy: number;
  unplannedPerSecond: number;
  behindRequests: number;
  penalty: number;
};

/**
 * What was measured since the price was last steered. `demand` is the sum over all planned looks of
 * `plannedDemand(...)`, `planned` their number; `served` requests were made, `unplanned` of them exact look-ups, pages of
 * sweeps and the like; `behindSeconds` is for how long the look that has been due longest has waited.
 */
export type Measured = {
  nowMs: number;
  budgetPerSecond: number;
  demand: number;
  planned: number;
  served: number;
  unplanned: number;
  behindSeconds: number;
  pushedBack: boolean;
};

/** The share of the budget that the price aims at: the rest keeps the queue short. */
const AIM = 0.97;

/** A random stream of looks has a few requests waiting at that share; more than this means that the price is wrong. */
const BEHIND_REQUESTS = 4;

const LATENESS_SHARE = 0.05;
const MEAN_SECONDS = 10;
const PENALTY_FACTOR = 4;
const MOST_PENALTY = 64;
const PENALTY_HALF_LIFE_SECONDS = 30;
const CALM = 1.1;
/** Nobody is in such a hurry that a request which saves less than 10 ms is worth it, however idle the budget. */
const LEAST_PRICE = 0.01;
const MOST_PRICE = 1e9;

/** The price before anything is planned. */
export function firstPrice(nowMs: number): PriceState {
  return {
    atMs: nowMs,
    price: 1,
    correction: 1,
    demand: null,
    busy: AIM,
    unplannedPerSecond: 0,
    behindRequests: BEHIND_REQUESTS,
    penalty: 1,
  };
}

/** What a planned look adds to the demand: the rate at which it would be wanted at a price of 1, per second. */
export function plannedDemand(plan: { price: number; waitSeconds: number }): number {
  return Math.sqrt(plan.price) / plan.waitSeconds;
}

/**
 * The next price. As every rate of looking goes with `1 / sqrt(price)`, the price at which all plans together fit the
 * budget follows from their demand at once; what plans do not show (looks brought forward, clamps) is corrected slowly,
 * by how busy the budget is and how far behind the queue. The slower subjects come round, the slower the correction, or
 * it would chase its own echo.
 */
export function steer(state: PriceState, measured: Measured): PriceState {
  const { nowMs, budgetPerSecond } = measured;
  const seconds = Math.max(0, (nowMs - state.atMs) / 1_000);
  if (seconds === 0) return state;
  const toward = 1 - Math.exp(-seconds / MEAN_SECONDS);
  const served = measured.served / seconds;
  const busy = mix(state.busy, served / budgetPerSecond, toward);
  const unplannedPerSecond = mix(state.unplannedPerSecond, measured.unplanned / seconds, toward);
  const behindRequests = mix(state.behindRequests, measured.behindSeconds * budgetPerSecond, toward);
  const penalty = steerPenalty(state.penalty, { seconds, pushedBack: measured.pushedBack });

  const roundSeconds = measured.planned / budgetPerSecond;
  const demand = mix(
    state.demand ?? measured.demand,
    measured.demand,
    1 - Math.exp((-8 * seconds) / roundSeconds),
  );
  const slowness = Math.max(2 * MEAN_SECONDS, 1.5 * roundSeconds);
  const late = bounded((behindRequests - BEHIND_REQUESTS) / 6, { least: -0.5, most: 8 });
  const error = busy - AIM + LATENESS_SHARE * late;
  // A pause, and the calm after it, tell nothing about demand.
  const step = penalty > CALM ? 0 : Math.min(1, seconds / slowness);
  const correction = bounded(state.correction * Math.exp(step * error), { least: 0.5, most: 2 });

  const forPlans = Math.max(0.2 * budgetPerSecond, AIM * budgetPerSecond - unplannedPerSecond);
  const root = (correction * demand) / forPlans;
  const price = bounded(penalty * root * root, { least: LEAST_PRICE, most: MOST_PRICE });
  return { atMs: nowMs, price, correction, demand, busy, unplannedPerSecond, behindRequests, penalty };
}

function steerPenalty(penalty: number, since: { seconds: number; pushedBack: boolean }): number {
  const faded = 1 + (penalty - 1) * 2 ** (-since.seconds / PENALTY_HALF_LIFE_SECONDS);
  return since.pushedBack ? Math.min(MOST_PENALTY, faded * PENALTY_FACTOR) : faded;
}

function mix(from: number, to: number, share: number): number {
  return from + (to - from) * share;
}

function bounded(value: number, bounds: { least: number; most: number }): number {
  return Math.min(bounds.most, Math.max(bounds.least, value));
}
