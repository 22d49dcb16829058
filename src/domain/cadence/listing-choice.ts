import { type Limits, LONGEST_WAIT_SECONDS, tightest } from './wait.ts';

/**
 * A transfer of a wallet that is under way, as the choice sees it. `status` is in lower case, `hazard` its present chance
 * of a change per second, `weight` what a second of delay is worth. `onHead`: the last look at the head showed it.
 */
export type UnderWay = { status: string; hazard: number; weight: number; limits: Limits; onHead: boolean };

/**
 * Which requests show a wallet's transfers. Each stands in exactly one place: a listing (what leaves a narrowed one is
 * looked up at once), or an exact poll of its own (`single`).
 */
export type ListingChoice<T> = {
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
export type ChoiceSetting = { price: number; arrivals: readonly Arrivals[]; narrows: boolean };

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
