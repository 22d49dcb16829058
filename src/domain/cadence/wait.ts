import { binOf, type HazardCurve, upperEdge } from './hazard.ts';

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

/**
 * A transfer of a wallet that is under way, as the choice sees it. `status` is in lower case, `hazard` its present chance
 * of a change per second, `weight` what a second of delay is worth. `onHead`: the last look at the head showed it.
 */
export type UnderWay = { status: string; hazard: number; weight: number; limits: Limits; onHead: boolean };

/**
 * Which requests show a wallet's transfers. Each stands in exactly one place: a listing (what leaves a narrowed one is
 * looked up at once), or an exact poll of its own (`single`).
 */
type ListingChoice<T> = {
  listings: readonly { listing: Listing; members: readonly T[] }[];
  single: readonly T[];
};

/**
 * What a listing shows of transfers that are not known yet: new ones, at a weighted rate per second (`rate`), and such
 * as have been filled meanwhile, at a weighted rate that `fillRate` is approached by the longer nobody looks. With the
 * limits of a poll for them.
 */
export type Arrivals = { listing: Listing; rate: number; fillRate: number; limits: Limits };

/**
 * `arrivals`: which listings are polled for new transfers, whatever else they show. `narrows`: the upstream does
 * narrow pages to a status.
 */
type ChoiceSetting = { price: number; arrivals: readonly Arrivals[]; narrows: boolean };

/** What one request shows at most. */
const PAGE = 50;

/** Beyond so many statuses at once, which is unusual, choices would explode: the rest goes by the head, or alone. */
const MOST_STATUSES = 4;

/**
 * Chooses, by expected cost, how the transfers of a wallet are watched. A request that shows hazard H costs what its
 * delay and its price come to, `H/2r + c·r` per second at its best rate r: less than the sum of its parts, so what shares
 * a page stays together. A narrowed listing also costs a poll for each transfer that leaves it. Members are in order
 * of birth, oldest first.
 */
export function chooseListings<T extends UnderWay>(
  members: readonly T[],
  setting: ChoiceSetting,
): ListingChoice<T> {
  const byStatus = [...Map.groupBy(members, (member) => member.status)];
  const rest = byStatus.slice(MOST_STATUSES).flatMap(([, group]) => group);
  let drafts: Draft<T>[] = [{ head: rest.filter(isOnHead), narrowed: [], single: rest.filter(isOffHead) }];
  for (const [status, group] of byStatus.slice(0, MOST_STATUSES)) {
    const listing = setting.narrows ? NARROW_STATUSES.find((name) => name === status) : undefined;
    const asked = setting.arrivals.some((arrivals) => arrivals.listing === listing);
    drafts = drafts.flatMap((draft) => waysToWatch(draft, { group, listing, asked }));
  }
  const costs = drafts.map((draft) => costOf(draft, setting));
  const cheapest = drafts[costs.indexOf(Math.min(...costs))] ?? { head: [], narrowed: [], single: members };
  return { listings: listingsOf(cheapest, setting.arrivals), single: cheapest.single };
}

type Draft<T> = {
  head: readonly T[];
  narrowed: readonly { listing: Listing; members: readonly T[] }[];
  single: readonly T[];
};

/** All listings of a draft, with those that are polled for new transfers alone. */
function listingsOf<T>(draft: Draft<T>, arrivals: readonly Arrivals[]): ListingChoice<T>['listings'] {
  const chosen = [
    ...(draft.head.length > 0 ? [{ listing: HEAD, members: draft.head }] : []),
    ...draft.narrowed,
  ];
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

/** The ways in which the transfers in one status can be watched beside what is chosen already. */
function waysToWatch<T extends UnderWay>(
  draft: Draft<T>,
  { group, listing, asked }: { group: readonly T[]; listing: Listing | undefined; asked: boolean },
): Draft<T>[] {
  const { head, narrowed, single } = draft;
  const onHead = group.filter(isOnHead);
  const ways: Draft<T>[] = [{ ...draft, single: [...single, ...group] }];
  if (onHead.length > 0) {
    ways.push({ narrowed, head: [...head, ...onHead], single: [...single, ...group.filter(isOffHead)] });
  }
  if (listing !== undefined && (group.length > 1 || asked)) {
    ways.push({
      head,
      narrowed: [...narrowed, { listing, members: group.slice(-PAGE) }],
      single: [...single, ...group.slice(0, -PAGE)],
    });
  }
  return ways;
}

/** What a choice costs per second, in weighted seconds. */
function costOf(draft: Draft<UnderWay>, { price, arrivals }: ChoiceSetting): number {
  let cost = 0;
  for (const { listing, members } of listingsOf(draft, arrivals)) {
    const awaited = arrivals.find((one) => one.listing === listing);
    const limits = [...members, ...(awaited === undefined ? [] : [awaited])].map((one) => one.limits);
    const hazard = weightedHazard(members) + (awaited?.rate ?? 0) + (awaited?.fillRate ?? 0);
    cost += requestCost({ hazard, limits: tightest(limits), price });
    if (listing !== 'head') cost += price * members.reduce((sum, member) => sum + member.hazard, 0);
  }
  for (const { hazard, weight, limits } of draft.single) {
    cost += requestCost({ hazard: weight * hazard, limits, price });
  }
  return cost;
}

function weightedHazard(members: readonly UnderWay[]): number {
  return members.reduce((sum, { weight, hazard }) => sum + weight * hazard, 0);
}

/** The longest wait is left out: where it binds, it does so for whatever is chosen. */
function requestCost({ hazard, limits, price }: { hazard: number; limits: Limits; price: number }): number {
  const wanted = Math.sqrt(hazard / (2 * price));
  const rate = Math.min(1 / limits.leastSeconds, Math.max(1 / LONGEST_WAIT_SECONDS, wanted));
  return hazard / (2 * rate) + price * rate;
}

/** The statuses to which the interface can narrow a wallet's pages and in which a transfer is not at its end. */
export const NARROW_STATUSES = ['pending', 'filled', 'expired', 'refundable', 'failed'] as const;

/** What one request for a wallet lists: its first page (`head`), or the transfers in one status. */
export type Listing = 'head' | (typeof NARROW_STATUSES)[number];

export const LISTINGS: readonly Listing[] = ['head', ...NARROW_STATUSES];
