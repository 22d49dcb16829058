import type { SubjectId } from '../subjects/subject.ts';
import type { PlannedPoll } from './next-poll.ts';
import {
  type Arrivals,
  chooseListings,
  keepable,
  type Limits,
  type Listing,
  pagesOf,
  type Term,
  tightest,
  type UnderWay,
  virtualSeconds,
} from './wait.ts';
import { type CadenceModel, type ExpectedChanges, termsOf, watcher } from './watched.ts';

/**
 * An unfinished transfer as an answer shows it. `status` is in lower case, `route` as in `routeName`. Times are Redis time.
 * `sinceMs`: start of its status. `seenAtMs`: last answer that showed it.
 */
export type ShownTransfer = {
  subject: SubjectId;
  status: string;
  route: string;
  sinceMs: number;
  seenAtMs: number;
};

/** An unfinished transfer of a wallet. `headAtMs`: last poll of the head that showed it; null for none. */
export type OpenTransfer = ShownTransfer & { headAtMs: number | null };

/** Last poll of each listing of a wallet: Redis time, ms, and the plan's virtual time, seconds. */
export type LastPolls = { readonly [listing in Listing]?: { atMs: number; virtual: number } };

/** Next listing of a wallet to poll, and its time. */
export type WalletPlan = PlannedPoll & { listing: Listing };

const HEAD_FIRST: WalletPlan = {
  listing: 'head',
  virtualSeconds: 0,
  restMs: 0,
  latestMs: null,
  alarmMs: null,
  unseen: false,
};

/**
 * Most rounds of a plain loop over all wallets that any wallet waits: so a wrong estimate costs little against the
 * loop, and the rest of the budget goes where more is expected. Beside other subjects the plan makes it a round less
 * (see claim-polls). Long rounds lower it: they outlast the known transfers.
 */
function mostRounds(roundSeconds: number): number {
  return 1 + MORE_ROUNDS * Math.min(1, LONG_ROUND_SECONDS / roundSeconds);
}

const MORE_ROUNDS = 2;
const LONG_ROUND_SECONDS = 10;

/** The config's longest wait is at least this many rounds: overdue polls get at most half of the budget. */
const LEAST_ROUNDS = 2;

/** When a round is shorter than a wallet's shortest wait, a listing still leaves polls to the wallet's other listings. */
const LEAST_LISTINGS = 2;

/** Listings that show new transfers only by chance, or after a change, are polled this many times less often. */
const STRAY_FACTOR = 6;

/** A failed listing may be noted as polled at the end of its backoff. A later time came from a clock that has gone back. */
const MOST_AHEAD_MS = 300_000;

/** Most transfers of a listing whose chance of a change is followed through the wait; that of older ones counts as it is now. */
const MOST_TERMS = 50;

/**
 * Longest time from one reading of the pages of filled transfers to the next that their number makes: nobody waits for the second
 * of a settlement, and 50 records cost more CPU than one. It is shorter than the time for which pages spare transfers their own polls.
 */
const PAGES_APART_SECONDS = 20;

/** Input of a wallet's plan. */
export type WalletView = {
  open: readonly OpenTransfer[];
  polled: LastPolls;
  /** Last ingested poll of the head: the head shows what that poll showed. */
  headIngestedAtMs: number;
  nowMs: number;
  /** Earliest next poll of the wallet as a whole. */
  fromMs: number;
  /** Virtual time of the plan, seconds. */
  virtual: number;
  price: number;
  /** Time to poll every wallet once with the whole budget, seconds. */
  roundSeconds: number;
  narrows: boolean;
  /** True when the head shows all new transfers. */
  headFinds: boolean;
  arrivalsPerSecond: number;
  model: CadenceModel;
};

/** An open transfer in a plan, with the changes that are expected of it. */
type Member = UnderWay & ExpectedChanges & { seenAtMs: number };

/**
 * Plans the next request for a wallet. Listings are chosen by expected cost; other transfers get their own polls. New
 * ones are expected on the head; if it does not show all of them, among the pending ones, and rarely elsewhere.
 */
export function planWallet(view: WalletView): WalletPlan {
  const { open, polled, nowMs, price, narrows, model } = view;
  const restMs = 1_000 * model.arrivals.limits.leastSeconds;
  // The head shows the number of pages and their order, on which all else depends.
  if (polled.head === undefined) {
    return { ...HEAD_FIRST, latestMs: restMs };
  }
  const changesOf = watcher({ nowMs, model });
  const members = open
    .toSorted((a, b) => a.sinceMs - b.sinceMs)
    .map((transfer): Member => {
      const { status, seenAtMs, headAtMs } = transfer;
      const { hazard, weight, limits, curve, sinceMs, constant } = changesOf(transfer);
      const onHead = headAtMs !== null && headAtMs === view.headIngestedAtMs;
      return { status, seenAtMs, onHead, hazard, weight, limits, curve, sinceMs, constant };
    });
  const numbers = new Map<string, number>();
  for (const { status } of members) numbers.set(status, (numbers.get(status) ?? 0) + 1);
  const arrivals = awaited(view);
  const plans = chooseListings(members, { price, arrivals, narrows }).listings.map(
    ({ listing, members: shown }) => {
      const news = arrivals.find((one) => one.listing === listing);
      // A listing that was never requested: its transfers were all seen by this time.
      const seenAtMs = Math.min(...shown.map((transfer) => transfer.seenAtMs));
      const last = polled[listing];
      const polledMs = last?.atMs ?? (Number.isFinite(seenAtMs) && !news ? seenAtMs : 0);
      const atMs = polledMs - nowMs > MOST_AHEAD_MS ? nowMs : polledMs;
      const pages = listing === 'head' ? 1 : pagesOf(numbers.get(listing) ?? 0);
      // The chance of the older ones changes slowly: the time for a plan grows only in proportion to their number.
      const [older, newest] = [shown.slice(0, -MOST_TERMS), shown.slice(-MOST_TERMS)];
      const worth =
        Math.sqrt(pages) *
        virtualSeconds({
          terms: [
            ...newest.flatMap((member) => termsOf(member, atMs)),
            ...(news === undefined ? [] : [unseenFills(news, model)]),
          ],
          constant:
            (news?.rate ?? 0) +
            newest.reduce((sum, { constant }) => sum + constant, 0) +
            older.reduce((sum, { weight, hazard }) => sum + weight * hazard, 0),
          price: price * pages,
        });
      const limits = bounded(
        tightest([...shown, ...(news === undefined ? [] : [news])].map((one) => one.limits)),
        {
          roundSeconds: view.roundSeconds,
          finds: news !== undefined && news.limits === model.arrivals.limits,
        },
      );
      const apart = listing === 'filled' ? Math.min(pages * limits.leastSeconds, PAGES_APART_SECONDS) : 0;
      const leastSeconds = Math.max(limits.leastSeconds, apart);
      // A listing that was never polled has waited since its transfers were seen.
      const virtual = last?.virtual ?? view.virtual - (nowMs - atMs) / 1_000 / Math.sqrt(price);
      return {
        listing,
        virtualSeconds: Math.min(view.virtual, virtual) + worth - view.virtual,
        restMs: Math.max(0, atMs + 1_000 * leastSeconds - nowMs),
        overdueMs: atMs + 1_000 * limits.mostSeconds * pages - nowMs,
      };
    },
  );
  const leastMs = Math.max(0, view.fromMs - nowMs);
  return firstOf(plans, { price, leastMs }) ?? { ...HEAD_FIRST, restMs, latestMs: restMs };
}

/** Longest wait of a listing, by rounds over all wallets; one that finds new transfers waits no longer than they allow. */
function bounded(
  { leastSeconds, mostSeconds }: Limits,
  { roundSeconds, finds }: { roundSeconds: number; finds: boolean },
): Limits {
  const rounds = Math.max(LEAST_LISTINGS * leastSeconds, mostRounds(roundSeconds) * roundSeconds);
  if (!finds) return { leastSeconds, mostSeconds: Math.max(mostSeconds, rounds) };
  const fitting = Math.max(mostSeconds, LEAST_ROUNDS * roundSeconds);
  return { leastSeconds, mostSeconds: Math.max(leastSeconds, Math.min(fitting, rounds)) };
}

/**
 * Plan of one listing, all from now on: virtual time at which it is worth its request, time at which it is allowed,
 * and time at which it is overdue, negative when it is overdue already.
 */
type ListingPlan = { listing: Listing; virtualSeconds: number; restMs: number; overdueMs: number };

/**
 * Chooses among the first allowed listings: the one overdue longest, else the one worth its request first. The wallet
 * rests for `leastMs`. It is overdue, or worth a request, as soon as one allowed listing is, at the present price.
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

function unseenFills({ fillRate }: Arrivals, model: CadenceModel): Term {
  return { curve: model.filledShares, ageSeconds: 0, weight: fillRate };
}

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

/** Most pages followed of a wallet: 100,000 transfers. */
export const MOST_PAGES = 2_000;

/**
 * Interval between sweeps of all pages, ms. While new transfers come first, a sweep only confirms that and costs a
 * page a minute. Else it finds them, and costs a page in ten seconds.
 */
export function sweepEveryMs(sweep: { leastMs: number; pages: number; newestFirst: boolean }): number {
  return Math.max(sweep.leastMs, sweep.pages * (sweep.newestFirst ? 60_000 : 10_000));
}

/** Order in which an upstream lists transfers. */
export type Order = 'newest-first' | 'other' | 'unclear';

/** Fewest different times in a row that do not descend by chance. Equal times fit any order. */
const ENOUGH = 10;

/**
 * Determines the order of a page; created or changed, new transfers come first. `isNew`: not known before;
 * `updatedAt` in Unix seconds. A new transfer behind a known one unchanged since is a contradiction.
 */
export function orderOf(page: readonly { isNew: boolean; updatedAt: number | null }[]): Order {
  let oldestStored = Number.POSITIVE_INFINITY;
  let isBehind = false;
  for (const { isNew, updatedAt } of page) {
    if (isNew && oldestStored < (updatedAt ?? 0)) return 'other';
    if (isNew && oldestStored < Number.POSITIVE_INFINITY) isBehind = true;
    if (!isNew) oldestStored = Math.min(oldestStored, updatedAt ?? Number.POSITIVE_INFINITY);
  }
  const leads = page[0]?.isNew === true && page.at(-1)?.isNew === false && !isBehind;
  const times = page.map(({ updatedAt }) => updatedAt ?? 0);
  const descends = times.every((time, index) => index === 0 || time <= (times[index - 1] ?? 0));
  const isEvidence = descends && new Set(times).size >= ENOUGH;
  return leads || isEvidence ? 'newest-first' : 'unclear';
}
