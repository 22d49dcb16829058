import type { SubjectId } from '../subject.ts';
import { stageInterval } from './next-poll.ts';

/** The statuses to which the interface can narrow a wallet's pages and in which a transfer is not at its end. */
export const NARROW_STATUSES = ['pending', 'filled', 'expired', 'refundable', 'failed'] as const;

/** What one request for a wallet lists: its first page (`head`), or the transfers in one status. */
export type Listing = 'head' | (typeof NARROW_STATUSES)[number];

export const LISTINGS: readonly Listing[] = ['head', ...NARROW_STATUSES];

/**
 * A transfer of a wallet that has not ended. `status` is in lower case, `sinceMs` when it came into it, `seenAtMs` when
 * an answer showed it last, `headAtMs` which look at the head did so last; null when none did. Redis time.
 */
export type OpenTransfer = {
  subject: SubjectId;
  status: string;
  sinceMs: number;
  seenAtMs: number;
  headAtMs: number | null;
};

/** When each listing of a wallet was looked at last (Redis time, ms). */
export type Looks = { readonly [listing in Listing]?: number };

/** The listing of a wallet that is due first, and the rate of requests for it, per ms, at an unstretched price. */
export type WalletPlan = { listing: Listing; dueMs: number; perMs: number };

const PAGE = 50;
const HEAD_EVERY_MS = 5_000;

/** The head of a wallet whose new transfers come anywhere shows some of them by chance. */
const STRAY_EVERY_MS = 30_000;

/** The listings in which a new transfer appears: soon in one, or in the other if it was filled before. */
const ARRIVALS_EVERY_MS: { readonly [listing in Listing]?: number } = { pending: 5_000, filled: 30_000 };

/**
 * Says what is asked for a wallet next, and when. The head shows new transfers and, while the newest come first, those
 * under way; whatever the last head did not show is looked at through the listing of its status where that takes fewer
 * requests than single look-ups. Where the head does not show all new transfers (`headFinds`), the listings find them.
 * `narrows`: the upstream does narrow pages to a status.
 */
export function planWallet(input: {
  open: readonly OpenTransfer[];
  looks: Looks;
  nowMs: number;
  stretch: number;
  narrows: boolean;
  headFinds: boolean;
}): WalletPlan {
  const { open, looks, nowMs, stretch, narrows, headFinds } = input;
  const everyMs = ({ subject, status, sinceMs }: OpenTransfer): number =>
    stageInterval({ subject, status, ageMs: nowMs - sinceMs, named: true });
  const headAtMs = looks.head ?? 0;
  const onHead = open.filter((transfer) => transfer.headAtMs === headAtMs);
  const finds = headFinds || !narrows;
  const headEveryMs = Math.min(finds ? HEAD_EVERY_MS : STRAY_EVERY_MS, ...onHead.map(everyMs));
  let plan: WalletPlan = { listing: 'head', dueMs: headAtMs + headEveryMs * stretch, perMs: 1 / headEveryMs };
  if (!narrows) return plan;
  const hidden = open.filter((transfer) => transfer.headAtMs !== headAtMs);
  let { perMs } = plan;
  for (const listing of NARROW_STATUSES) {
    const listed = hidden.filter(({ status }) => status === listing);
    const intervals = listed.map(everyMs);
    const arrivalsMs = headFinds ? undefined : ARRIVALS_EVERY_MS[listing];
    if (intervals.length === 0 && arrivalsMs === undefined) continue;
    const shortestMs = Math.min(...intervals, arrivalsMs ?? Number.POSITIVE_INFINITY);
    // A listing shows everything in its status, also what the head shows.
    const pages = Math.ceil(Math.max(1, open.filter(({ status }) => status === listing).length) / PAGE);
    const single = intervals.reduce((sum, intervalMs) => sum + 1 / intervalMs, 0);
    if (listing !== 'pending' && arrivalsMs === undefined && pages / shortestMs >= single) continue;
    perMs += pages / shortestMs;
    const dueMs = (looks[listing] ?? 0) + shortestMs * stretch * pages;
    if (dueMs < plan.dueMs) plan = { ...plan, listing, dueMs };
  }
  return { ...plan, perMs };
}

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
