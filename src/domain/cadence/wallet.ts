import type { SubjectId } from '../subjects/subject.ts';
import type { PlannedPoll } from './next-poll.ts';
import {
  type Arrivals,
  chooseListings,
  keepable,
  type Limits,
  type Listing,
  type Term,
  tightest,
  virtualSeconds,
} from './wait.ts';
import { type CadenceModel, watched } from './watched.ts';

/**
 * A transfer of a wallet that has not ended. `status` is in lower case, `route` as in `routeName`, `sinceMs` when it came into its status, `seenAtMs` when
 * an answer showed it last, `headAtMs` which poll of the head did so last; null when none did. Redis time.
 */
export type OpenTransfer = {
  subject: SubjectId;
  status: string;
  route: string;
  sinceMs: number;
  seenAtMs: number;
  headAtMs: number | null;
};

/** When each listing of a wallet was polled last: Redis time, ms, and the plan's virtual time, seconds. */
export type Polled = { readonly [listing in Listing]?: { atMs: number; virtual: number } };

/** The listing of a wallet that is polled next, and when. */
export type WalletPlan = PlannedPoll & { listing: Listing };

const PAGE = 50;

const HEAD_FIRST: WalletPlan = {
  listing: 'head',
  virtualSeconds: 0,
  restMs: 0,
  latestMs: null,
  alarmMs: null,
  unseen: false,
};

/**
 * No wallet waits longer than so many rounds of a plain loop over all of them, whatever else seems worth more: a wrong
 * estimate cannot make it much later than the loop. The rest of the budget goes to where more is expected. Beside what is
 * not wallets, the plan makes it a round less (see claim-polls). It is less where a round takes longer than transfers
 * usually do: what is known of them is over before it helps.
 */
function mostRounds(roundSeconds: number): number {
  return 1 + MORE_ROUNDS * Math.min(1, LONG_ROUND_SECONDS / roundSeconds);
}

const MORE_ROUNDS = 2;
const LONG_ROUND_SECONDS = 10;

/** The longest wait of the config holds down to so many rounds: what is overdue has half of the budget at most. */
const LEAST_ROUNDS = 2;

/** The place where a round takes less than a wallet is polled at most, it leaves polls to the other listings of its wallet all the same. */
const LEAST_LOOKS = 2;

/** The place where new transfers appear by chance alone, or after they have changed, they are looked for this much more rarely. */
const STRAY_FACTOR = 6;

/**
 * A listing that failed may be noted as polled at the end of its backoff. What lies further ahead was noted by a clock that
 * has gone back since.
 */
const MOST_AHEAD_MS = 300_000;

/** What a plan of a wallet is made from. */
export type WalletView = {
  open: readonly OpenTransfer[];
  polled: Polled;
  /** Which poll of the head was taken in last: what it showed, the head shows. */
  headTakenAtMs: number;
  nowMs: number;
  /** The wallet as a whole is not polled before this. */
  fromMs: number;
  /** The plan's virtual time, seconds. */
  virtual: number;
  price: number;
  /** The time that it takes to poll every wallet once, if the whole budget did nothing else. */
  roundSeconds: number;
  /** The upstream does narrow pages to a status. */
  narrows: boolean;
  /** The head shows all new transfers. */
  headFinds: boolean;
  /** The interval at which new transfers come. */
  arrivalsPerSecond: number;
  model: CadenceModel;
};

/**
 * Says what is asked for a wallet next, and when. Which listings are polled is chosen by expected cost; what none of them
 * shows is left to its own polls. New transfers are awaited on the head; where that does not show all of them, in the
 * listing of those that are pending, and more rarely among the others.
 */
export function planWallet(view: WalletView): WalletPlan {
  const { open, polled, nowMs, price, narrows, model } = view;
  const restMs = 1_000 * model.arrivals.limits.leastSeconds;
  // The head says how many pages there are and in which order, on which all else depends.
  if (polled.head === undefined) {
    return { ...HEAD_FIRST, latestMs: restMs };
  }
  const members = open
    .toSorted((a, b) => a.sinceMs - b.sinceMs)
    .map((transfer) => ({
      ...transfer,
      ...watched(transfer, { nowMs, model }),
      onHead: transfer.headAtMs !== null && transfer.headAtMs === view.headTakenAtMs,
    }));
  const arrivals = awaited(view);
  const plans = chooseListings(members, { price, arrivals, narrows }).listings.map(
    ({ listing, members: shown }) => {
      const news = arrivals.find((one) => one.listing === listing);
      // A listing that was never requested: whatever it would show was seen at least then.
      const seenAtMs = Math.min(...shown.map((transfer) => transfer.seenAtMs));
      const last = polled[listing];
      const polledMs = last?.atMs ?? (Number.isFinite(seenAtMs) && !news ? seenAtMs : 0);
      const atMs = polledMs - nowMs > MOST_AHEAD_MS ? nowMs : polledMs;
      const worth = virtualSeconds({
        terms: [
          ...shown.flatMap(({ term }) => (term === null ? [] : [term(atMs)])),
          ...(news === undefined ? [] : [unseenFills(news, model)]),
        ],
        constant: shown.reduce((sum, { constant }) => sum + constant, news?.rate ?? 0),
        price,
      });
      const limits = bounded(
        tightest([...shown, ...(news === undefined ? [] : [news])].map((one) => one.limits)),
        {
          roundSeconds: view.roundSeconds,
          finds: news !== undefined && news.limits === model.arrivals.limits,
        },
      );
      const pages = pagesOf(listing, open);
      // Never polled, it has waited since what it would show was seen.
      const virtual = last?.virtual ?? view.virtual - (nowMs - atMs) / 1_000 / Math.sqrt(price);
      return {
        listing,
        virtualSeconds: Math.min(view.virtual, virtual) + worth * pages - view.virtual,
        restMs: Math.max(0, atMs + 1_000 * limits.leastSeconds - nowMs),
        overdueMs: atMs + 1_000 * limits.mostSeconds * pages - nowMs,
      };
    },
  );
  const leastMs = Math.max(0, view.fromMs - nowMs);
  return firstOf(plans, { price, leastMs }) ?? { ...HEAD_FIRST, restMs, latestMs: restMs };
}

/** The longest wait of a listing, by rounds over all wallets: where it finds new transfers, it waits no longer than those. */
function bounded(
  { leastSeconds, mostSeconds }: Limits,
  { roundSeconds, finds }: { roundSeconds: number; finds: boolean },
): Limits {
  const rounds = Math.max(LEAST_LOOKS * leastSeconds, mostRounds(roundSeconds) * roundSeconds);
  if (!finds) return { leastSeconds, mostSeconds: Math.max(mostSeconds, rounds) };
  const fitting = Math.max(mostSeconds, LEAST_ROUNDS * roundSeconds);
  return { leastSeconds, mostSeconds: Math.max(leastSeconds, Math.min(fitting, rounds)) };
}

/**
 * One listing in the plan of its wallet, all from now on: when it is worth its request (virtual time), when it is allowed,
 * and when it is overdue, below 0 where it has been for so long.
 */
type ListingPlan = { listing: Listing; virtualSeconds: number; restMs: number; overdueMs: number };

/**
 * Of the listings that are allowed first, the one that is overdue longest, or else is worth its request first. The wallet
 * as a whole rests for `leastMs`; it is overdue as soon as one of them is, and worth a request as soon as one is that is
 * allowed by then, as the price is now.
 */
function firstOf(
  plans: readonly ListingPlan[],
  { price, leastMs }: { price: number; leastMs: number },
): WalletPlan | undefined {
  const restMs = Math.max(leastMs, Math.min(...plans.map((plan) => plan.restMs)));
  const allowed = plans.filter((plan) => plan.restMs <= restMs);
  const overdue = allowed.filter(({ overdueMs }) => overdueMs <= restMs);
  const [first] =
    overdue.length > 0
      ? overdue.toSorted((a, b) => a.overdueMs - b.overdueMs)
      : allowed.toSorted((a, b) => a.virtualSeconds - b.virtualSeconds);
  if (first === undefined) return undefined;
  const worth = plans.map((plan) =>
    Math.max(plan.virtualSeconds, Math.max(0, plan.restMs - restMs) / 1_000 / Math.sqrt(price)),
  );
  return {
    listing: first.listing,
    virtualSeconds: Math.min(first.virtualSeconds, ...worth),
    restMs,
    latestMs: Math.max(restMs, Math.min(...plans.map((plan) => plan.overdueMs))),
    alarmMs: null,
    unseen: false,
  };
}

/** A listing shows everything in its status, also what the head shows: each page is a request. */
function pagesOf(listing: Listing, open: readonly OpenTransfer[]): number {
  if (listing === 'head') return 1;
  return Math.ceil(Math.max(1, open.filter(({ status }) => status === listing).length) / PAGE);
}

/** What a poll may bring of transfers that were born since the last one: some have had the time to be filled. */
function unseenFills({ fillRate }: Arrivals, model: CadenceModel): Term {
  return { curve: model.filledShares, ageSeconds: 0, weight: fillRate };
}

/** The place where new transfers are awaited, and how often. */
function awaited(view: WalletView): Arrivals[] {
  const { weight, limits } = view.model.arrivals;
  const rate = weight * view.arrivalsPerSecond;
  const fillRate = view.model.rules.pending.weight * view.arrivalsPerSecond;
  if (view.headFinds || !view.narrows) return [{ listing: 'head', rate, fillRate, limits }];
  const rarely = {
    rate: rate / STRAY_FACTOR ** 2,
    fillRate: fillRate / STRAY_FACTOR ** 2,
    limits: keepable({
      leastSeconds: limits.leastSeconds * STRAY_FACTOR,
      mostSeconds: limits.mostSeconds * STRAY_FACTOR,
    }),
  };
  return [
    { listing: 'pending', rate, fillRate: 0, limits },
    { listing: 'filled', ...rarely },
    { listing: 'head', ...rarely },
  ];
}

/** No wallet is followed further than this many pages: 100,000 transfers. */
export const MOST_PAGES = 2_000;

/**
 * The time that after one sweep of all pages the next begins, ms. While new transfers are seen to come first, a sweep only
 * confirms that, and costs a page a minute; else it is what finds them, and costs a page in ten seconds.
 */
export function sweepEveryMs(sweep: { leastMs: number; pages: number; newestFirst: boolean }): number {
  return Math.max(sweep.leastMs, sweep.pages * (sweep.newestFirst ? 60_000 : 10_000));
}

/** What a page tells of the order in which an upstream lists transfers. */
export type Order = 'newest-first' | 'other' | 'unclear';

/** So many different times in a row do not descend by chance. Equal times fit any order. */
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
  const isEvidence = descends && new Set(times).size >= ENOUGH;
  return leads || isEvidence ? 'newest-first' : 'unclear';
}
