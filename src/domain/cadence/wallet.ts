import type { SubjectId } from '../subject.ts';
import { clampForArrivals, tightest } from './clamp.ts';
import type { Listing } from './listing.ts';
import { type Arrivals, chooseListings } from './listing-choice.ts';
import { plannedDemand } from './price.ts';
import { type Term, waitSeconds } from './wait.ts';
import { type Law, watched } from './watched.ts';

/**
 * A transfer of a wallet that has not ended. `status` is in lower case, `route` as in `routeName`, `sinceMs` when it came into its status, `seenAtMs` when
 * an answer showed it last, `headAtMs` which look at the head did so last; null when none did. Redis time.
 */
export type OpenTransfer = {
  subject: SubjectId;
  status: string;
  route: string;
  sinceMs: number;
  seenAtMs: number;
  headAtMs: number | null;
};

/** When each listing of a wallet was looked at last (Redis time, ms). */
export type Looks = { readonly [listing in Listing]?: number };

/** The listing of a wallet that is due first, and what all its listings add to the demand (see `plannedDemand`). */
export type WalletPlan = { listing: Listing; dueMs: number; demand: number };

const PAGE = 50;

/** Where new transfers appear by chance alone, or after they have changed, they are looked for this much more rarely. */
const STRAY_FACTOR = 6;

/**
 * Says what is asked for a wallet next, and when. Which listings are looked at is chosen by expected cost; what none of
 * them shows is left to its own look-ups. New transfers are awaited on the head; where that does not show all of them
 * (`headFinds`), in the listing of those that are pending, and more rarely among the others. `narrows`: the upstream
 * does narrow pages to a status. `arrivalsPerSecond`: how often new transfers come.
 */
export function planWallet(input: {
  open: readonly OpenTransfer[];
  looks: Looks;
  nowMs: number;
  price: number;
  narrows: boolean;
  headFinds: boolean;
  arrivalsPerSecond: number;
  law: Law;
}): WalletPlan {
  const { open, looks, nowMs, price, narrows, law } = input;
  // The head says how many pages there are and in which order, on which all else depends.
  if (looks.head === undefined) return { listing: 'head', dueMs: nowMs, demand: 0 };
  const members = open
    .toSorted((a, b) => a.sinceMs - b.sinceMs)
    .map((transfer) => ({
      ...transfer,
      ...watched(transfer, { nowMs, price, law }),
      onHead: looks.head !== undefined && transfer.headAtMs === looks.head,
    }));
  const arrivals = awaited(input);
  let first: { listing: Listing; dueMs: number } = { listing: 'head', dueMs: Number.POSITIVE_INFINITY };
  let demand = 0;
  for (const { listing, members: shown } of chooseListings(members, { price, arrivals, narrows }).listings) {
    const news = arrivals.find((one) => one.listing === listing);
    // A listing that was never asked for: whatever it would show was seen at least then.
    const seenAtMs = Math.min(...shown.map((transfer) => transfer.seenAtMs));
    const lookedAtMs = looks[listing] ?? (Number.isFinite(seenAtMs) && !news ? seenAtMs : 0);
    const wait = waitSeconds({
      terms: [
        ...shown.flatMap(({ term }) => (term === null ? [] : [term(lookedAtMs)])),
        ...(news === undefined ? [] : [unseenFills(news, law)]),
      ],
      arrivals: shown.reduce((sum, { constant }) => sum + constant, news?.rate ?? 0),
      price,
      clamp: tightest([...shown, ...(news === undefined ? [] : [news])].map(({ clamp }) => clamp)),
    });
    demand += plannedDemand({ price, waitSeconds: wait });
    const dueMs = lookedAtMs + wait * pagesOf(listing, open) * 1_000;
    if (dueMs < first.dueMs) first = { listing, dueMs };
  }
  return { ...first, demand };
}

/** A listing shows everything in its status, also what the head shows: each page is a request. */
function pagesOf(listing: Listing, open: readonly OpenTransfer[]): number {
  if (listing === 'head') return 1;
  return Math.ceil(Math.max(1, open.filter(({ status }) => status === listing).length) / PAGE);
}

/** What a look may bring of transfers that were born since the last one: some have had the time to be filled. */
function unseenFills({ fillRate }: Arrivals, law: Law): Term {
  return { curve: law.filledShares, ageSeconds: 0, weight: fillRate, deadlineSeconds: null };
}

/** Where new transfers are awaited, and how often. */
function awaited(input: {
  price: number;
  narrows: boolean;
  headFinds: boolean;
  arrivalsPerSecond: number;
  law: Law;
}): Arrivals[] {
  const { weight, limits } = input.law.arrivals;
  const rate = weight * input.arrivalsPerSecond;
  const fillRate = input.law.rules.pending.weight * input.arrivalsPerSecond;
  const clamp = clampForArrivals(limits, input.price);
  if (input.headFinds || !input.narrows) {
    return [{ listing: 'head', rate, fillRate, clamp }];
  }
  const rarely = {
    rate: rate / STRAY_FACTOR ** 2,
    fillRate: fillRate / STRAY_FACTOR ** 2,
    clamp: { leastSeconds: clamp.leastSeconds, mostSeconds: clamp.mostSeconds * STRAY_FACTOR },
  };
  return [
    { listing: 'pending', rate, fillRate: 0, clamp },
    { listing: 'filled', ...rarely },
    { listing: 'head', ...rarely },
  ];
}

/** No wallet is followed further than this many pages: 100,000 transfers. */
export const MOST_PAGES = 2_000;

/**
 * How long after one sweep of all pages the next begins, ms. While new transfers are seen to come first, a sweep only
 * confirms that, and costs a page a minute; else it is what finds them, and costs a page in ten seconds.
 */
export function sweepEveryMs(sweep: { leastMs: number; pages: number; newestFirst: boolean }): number {
  return Math.max(sweep.leastMs, sweep.pages * (sweep.newestFirst ? 60_000 : 10_000));
}

/** What a page tells of the order in which an upstream lists transfers. */
export type Order = 'newest-first' | 'other' | 'unclear';

/** So many times in a row do not descend by chance. */
const ENOUGH = 10;

/**
 * Reads the order off a page: by creation or by last change, whichever, new transfers come first. `isNew`: it was not
 * known before; `updatedAt` in Unix seconds. A new transfer behind a known one that has not changed since is a
 * contradiction.
 */
export function orderOf(page: readonly { isNew: boolean; updatedAt: number | null }[]): Order {
  let oldestKnown = Number.POSITIVE_INFINITY;
  let isBehind = false;
  for (const { isNew, updatedAt } of page) {
    if (isNew && oldestKnown < (updatedAt ?? 0)) return 'other';
    if (isNew && oldestKnown < Number.POSITIVE_INFINITY) isBehind = true;
    if (!isNew) oldestKnown = Math.min(oldestKnown, updatedAt ?? Number.POSITIVE_INFINITY);
  }
  const leads = page[0]?.isNew === true && page.at(-1)?.isNew === false && !isBehind;
  const times = page.map(({ updatedAt }) => updatedAt ?? 0);
  const descends = times.every((time, index) => index === 0 || time <= (times[index - 1] ?? 0));
  const spans = (times[0] ?? 0) > (times.at(-1) ?? 0);
  return leads || (descends && spans && times.length >= ENOUGH) ? 'newest-first' : 'unclear';
}
