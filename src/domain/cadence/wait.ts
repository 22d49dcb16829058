import { binOf, type HazardCurve, upperEdge } from './hazard.ts';

/** A possible change. `ageSeconds`: age at the last poll (negative: not begun); `weight`: cost of a second of delay. */
export type Term = { curve: HazardCurve; ageSeconds: number; weight: number };

/** Input of a wait. `constant`: weighted rate of other changes per second; `price`: of a request, weighted seconds of delay. */
export type Prospect = { terms: readonly Term[]; constant: number; price: number };

/** Ages are sums of fractions: this step is large enough to reach the edge of a bin. */
const LEAST_STEP_SECONDS = 1e-6;

/**
 * Time after which a poll is worth its request, seconds: the wait over which `sqrt(Σ w·h / 2c)` sums to 1 (Keller
 * 1974), at most `LONGEST_WAIT_SECONDS`. Exact, since the hazard is constant within each bin.
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

/** The same wait in virtual time, which runs with the inverse square root of the price: seconds at a price of 1. */
export function virtualSeconds(prospect: Prospect): number {
  return waitSeconds(prospect) / Math.sqrt(prospect.price);
}

/**
 * Bounds of the polling interval of a stage, seconds. `leastSeconds`: shortest wait, to spare the upstream;
 * `mostSeconds`: longest wait of a young stage, `agedSeconds` of an old one.
 */
export type StageLimits = { leastSeconds: number; mostSeconds: number; agedSeconds: number };

export type Limits = { leastSeconds: number; mostSeconds: number };

export const LONGEST_WAIT_SECONDS = 7_200;

/** An old stage is polled at least every tenth of its age: the delay stays small beside the waiting time. */
const SHARE_OF_AGE = 0.1;

/** Limits of a stage at an age. The longest wait bounds the cost of a wrong estimate; it grows with age to save budget. */
export function limitsAt(limits: StageLimits, ageSeconds: number): Limits {
  const agedSeconds = Math.min(limits.agedSeconds, SHARE_OF_AGE * ageSeconds);
  return keepable({ ...limits, mostSeconds: Math.max(limits.mostSeconds, agedSeconds) });
}

/** Age up to which a stage has the limits of a young one, seconds. */
export function youngSeconds({ mostSeconds }: StageLimits): number {
  return mostSeconds / SHARE_OF_AGE;
}

/** Limits within the bounds of a plan, with the longest wait at least as long as the shortest. */
export function keepable(limits: Limits): Limits {
  const leastSeconds = Math.min(LONGEST_WAIT_SECONDS, limits.leastSeconds);
  return { leastSeconds, mostSeconds: Math.max(leastSeconds, limits.mostSeconds) };
}

/** Limits of a poll that shows several stages: the shortest of each. */
export function tightest(limits: readonly Limits[]): Limits {
  return {
    leastSeconds: Math.min(...limits.map(({ leastSeconds }) => leastSeconds)),
    mostSeconds: Math.min(...limits.map(({ mostSeconds }) => mostSeconds)),
  };
}

/**
 * A transfer of a wallet that is under way. `status` is in lower case, `hazard` its present chance of a change per
 * second, `weight` the cost of a second of delay. `onHead`: the last poll of the head showed it.
 */
export type UnderWay = { status: string; hazard: number; weight: number; limits: Limits; onHead: boolean };

/**
 * Requests that show a wallet's transfers. Each transfer is in exactly one place: a listing (one that leaves a
 * narrowed listing is polled at once), or an exact poll of its own (`single`).
 */
type ListingChoice<T> = {
  listings: readonly { listing: Listing; members: readonly T[] }[];
  single: readonly T[];
};

/**
 * Unknown transfers that a listing may show, with the limits of a poll for them. `rate`: weighted rate of new
 * transfers per second. `fillRate`: weighted rate of fills, which is approached as the time without a poll grows.
 */
export type Arrivals = { listing: Listing; rate: number; fillRate: number; limits: Limits };

/** `arrivals`: listings polled for new transfers in any case. `narrows`: the upstream narrows pages to a status. */
type ChoiceSetting = { price: number; arrivals: readonly Arrivals[]; narrows: boolean };

const PAGE = 50;

/** Most statuses to narrow by: more combinations would cost too much time. The rest goes to the head, or alone. */
const MOST_STATUSES = 4;

/**
 * Chooses, by expected cost, the requests for a wallet's transfers; `members` are oldest first. A request that shows
 * hazard H costs `H/2r + c·r` per second at its best rate r. That is less than the sum of its parts, so transfers
 * that share a page stay together. A narrowed listing costs a request for each of its pages, and a poll for each transfer
 * that leaves it.
 */
export function chooseListings<T extends UnderWay>(
  members: readonly T[],
  setting: ChoiceSetting,
): ListingChoice<T> {
  const byStatus = [...Map.groupBy(members, (member) => member.status)];
  const rest = byStatus.slice(MOST_STATUSES).flatMap(([, group]) => group);
  let plans: WatchPlan<T>[] = [{ head: rest.filter(isOnHead), narrowed: [], single: rest.filter(isOffHead) }];
  for (const [status, group] of byStatus.slice(0, MOST_STATUSES)) {
    const listing = setting.narrows ? NARROW_STATUSES.find((name) => name === status) : undefined;
    const isArriving = setting.arrivals.some((arrivals) => arrivals.listing === listing);
    plans = plans.flatMap((plan) => waysToWatch(plan, { group, listing, isArriving }));
  }
  const costs = plans.map((plan) => costOf(plan, setting));
  const cheapest = plans[costs.indexOf(Math.min(...costs))] ?? { head: [], narrowed: [], single: members };
  return { listings: listingsOf(cheapest, setting.arrivals), single: cheapest.single };
}

type WatchPlan<T> = {
  head: readonly T[];
  narrowed: readonly { listing: Listing; members: readonly T[] }[];
  single: readonly T[];
};

/** All listings of a plan, including those polled only for new transfers. */
function listingsOf<T>(plan: WatchPlan<T>, arrivals: readonly Arrivals[]): ListingChoice<T>['listings'] {
  const chosen = [...(plan.head.length > 0 ? [{ listing: HEAD, members: plan.head }] : []), ...plan.narrowed];
  const others = arrivals.filter(({ listing }) => chosen.every((one) => one.listing !== listing));
  return [...chosen, ...others.map(({ listing }) => ({ listing, members: [] }))];
}

const HEAD: Listing = 'head';

function isOnHead(member: UnderWay): boolean {
  return member.onHead;
}

function isOffHead(member: UnderWay): boolean {
  return !member.onHead;
}

/** Possible requests for the transfers in one status, in addition to the chosen ones. */
function waysToWatch<T extends UnderWay>(
  plan: WatchPlan<T>,
  { group, listing, isArriving }: { group: readonly T[]; listing: Listing | undefined; isArriving: boolean },
): WatchPlan<T>[] {
  const { head, narrowed, single } = plan;
  const onHead = group.filter(isOnHead);
  const ways: WatchPlan<T>[] = [{ ...plan, single: [...single, ...group] }];
  if (onHead.length > 0) {
    ways.push({ narrowed, head: [...head, ...onHead], single: [...single, ...group.filter(isOffHead)] });
  }
  if (listing !== undefined && (group.length > 1 || isArriving)) {
    ways.push({
      head,
      narrowed: [...narrowed, { listing, members: group }],
      single,
    });
  }
  return ways;
}

function costOf(plan: WatchPlan<UnderWay>, { price, arrivals }: ChoiceSetting): number {
  let cost = 0;
  for (const { listing, members } of listingsOf(plan, arrivals)) {
    const awaited = arrivals.find((one) => one.listing === listing);
    const limits = [...members, ...(awaited === undefined ? [] : [awaited])].map((one) => one.limits);
    const hazard = weightedHazard(members) + (awaited?.rate ?? 0) + (awaited?.fillRate ?? 0);
    const pages = listing === 'head' ? 1 : pagesOf(members.length);
    cost += requestCost({ hazard, limits: tightest(limits), price: price * pages });
    if (listing !== 'head') cost += price * members.reduce((sum, member) => sum + member.hazard, 0);
  }
  for (const { hazard, weight, limits } of plan.single) {
    cost += requestCost({ hazard: weight * hazard, limits, price });
  }
  return cost;
}

/** Number of requests that show so many transfers in one status, a page each. */
export function pagesOf(transfers: number): number {
  return Math.max(1, Math.ceil(transfers / PAGE));
}

function weightedHazard(members: readonly UnderWay[]): number {
  return members.reduce((sum, { weight, hazard }) => sum + weight * hazard, 0);
}

/** The longest wait is ignored: it binds equally for every choice. */
function requestCost({ hazard, limits, price }: { hazard: number; limits: Limits; price: number }): number {
  const wanted = Math.sqrt(hazard / (2 * price));
  const rate = Math.min(1 / limits.leastSeconds, Math.max(1 / LONGEST_WAIT_SECONDS, wanted));
  return hazard / (2 * rate) + price * rate;
}

/** Statuses of unfinished transfers to which the interface can narrow a wallet's pages. */
export const NARROW_STATUSES = ['pending', 'filled', 'expired', 'refundable', 'failed'] as const;

/** Listing of one request for a wallet: its first page (`head`), or the transfers in one status. */
export type Listing = 'head' | (typeof NARROW_STATUSES)[number];

export const LISTINGS: readonly Listing[] = ['head', ...NARROW_STATUSES];
