import { arrivalsPerSecond, withArrivals } from '../domain/cadence/arrivals.ts';
import { LONGEST_WAIT_SECONDS } from '../domain/cadence/clamp.ts';
import { type Listing, NARROW_STATUSES } from '../domain/cadence/listing.ts';
import type { PlannedPoll } from '../domain/cadence/next-poll.ts';
import { planWallet, sweepEveryMs, type WalletPlan } from '../domain/cadence/wallet.ts';
import type { SubjectId } from '../domain/subject.ts';
import type { Reading } from '../pollers/reading.ts';
import { pollWallet } from '../pollers/wallet.ts';
import type { Registry } from '../store/registry.ts';
import type { PollStart } from '../store/subjects.ts';
import type { WalletFacts, WalletStore } from '../store/wallets.ts';
import type { UpstreamClient } from '../upstream/client.ts';
import { type PageTaken, takePage } from './take-page.ts';
import type { Walk, Walks } from './walks.ts';

/** What polling a wallet needs of the daemon. */
export type WalletParts = Parameters<typeof takePage>[0] & {
  client: UpstreamClient;
  registry: Registry;
  wallets: WalletStore;
  walks: Walks;
  /** The shortest time from one sweep of all pages of a wallet to the next, ms. */
  fullSweepEveryMs: number;
};

/** How long an observation about an upstream's pages that costs requests is believed. */
const BELIEVED_MS = 3_600_000;

/** A transfer that no listing has shown for so long is left to its own look-ups. */
const FORGOTTEN_AFTER_MS = 3_600_000;

const SHORTEST_MS = 50;

/** One page of a wallet that is asked for. */
type Page = { wallet: SubjectId; listing: Listing; cursor: string | null };

/**
 * Polls a wallet: asks for the listing that is due first, takes in what it shows, and follows it where it leads on.
 * Returns when the next listing is due. Throws UpstreamFailure, or the signal's reason.
 */
export async function pollWalletListing(
  parts: WalletParts,
  wallet: SubjectId,
  run: { start: PollStart; signal: AbortSignal; onReading: (reading: Reading) => void },
): Promise<PlannedPoll> {
  const { start } = run;
  const before = await planOf(parts, wallet, start.nowMs);
  const { listing } = before.plan;
  // Noted also when it fails: a listing that cannot be read must not keep the others from being asked for.
  const { reading, taken } = await takeListing(parts, { wallet, listing, cursor: null }, run).finally(() =>
    parts.wallets.note(wallet, { [`looked:${listing}`]: start.nowMs }),
  );
  if (listing === before.finder) await noteArrivals(parts, wallet, { ...before, start, taken });
  if (listing === 'head') await followHead(parts, wallet, { ...before, start, reading, taken });
  else await followNarrowed(parts, { wallet, listing }, { start, reading });
  const { plan } = await planOf(parts, wallet, start.nowMs);
  const afterMs = Math.min(LONGEST_WAIT_SECONDS * 1_000, Math.round(plan.dueMs - start.nowMs));
  return { afterMs: Math.max(SHORTEST_MS, afterMs), demand: plan.demand };
}

/** Asks for a page behind the first, and takes it in. Returns the cursor behind it, null where the walk is over. */
export async function pollWalkPage(
  parts: WalletParts,
  walk: Walk & { page: number; cursor: string },
  run: { start: PollStart; signal: AbortSignal; onReading: (reading: Reading) => void },
): Promise<void> {
  const { wallet, route, cursor, page } = walk;
  const { start } = run;
  const listing = narrowListing(route);
  const { reading, taken } = await takeListing(parts, { wallet, listing, cursor }, run);
  if (listing === 'head') await noteOrder(parts, wallet, { taken, nowMs: start.nowMs });
  const isOver = reading.nextCursor === null || (route === 'new' && !taken.allNew);
  if (!isOver) {
    const goesOn = await parts.walks.next(walk, {
      page,
      cursor: reading.nextCursor ?? '',
      nowMs: start.nowMs,
    });
    if (!goesOn) await breakWalk(parts, walk, start.nowMs);
    return;
  }
  await parts.walks.end(walk);
  const beganMs = Number(walk.id);
  if (route === 'all') await parts.wallets.note(wallet, { sweptAtMs: beganMs, pages: page });
  if (listing !== 'head') await lookUpThoseThatLeft(parts, { wallet, listing }, beganMs);
}

/** Ends a walk that cannot go on. What it was to read is left to the next of its kind, and new transfers to a sweep. */
export async function breakWalk(
  parts: Pick<WalletParts, 'walks' | 'wallets'>,
  walk: Walk,
  nowMs: number,
): Promise<void> {
  if (walk.route === 'new') await parts.wallets.note(walk.wallet, { missedAtMs: nowMs });
  await parts.walks.end(walk, 'broken');
}

/** What is asked for next, by all that is known of the wallet, and in which listing new transfers appear (`finder`). */
async function planOf(
  parts: WalletParts,
  wallet: SubjectId,
  nowMs: number,
): Promise<{ plan: WalletPlan; facts: WalletFacts; finder: Listing }> {
  const facts = await parts.wallets.facts(wallet);
  const all = await parts.wallets.open(wallet);
  const open = all.filter(({ seenAtMs }) => nowMs - seenAtMs < FORGOTTEN_AFTER_MS);
  if (open.length < all.length) {
    const forgotten = all.filter((transfer) => !open.includes(transfer)).map(({ subject }) => subject);
    await parts.wallets.sight(wallet, { open: [], ended: forgotten, headAtMs: null });
  }
  const narrows = nowMs - facts.unnarrowedAtMs > BELIEVED_MS;
  const { looks } = facts;
  const headFinds = facts.pages === 1 || comesNewestFirst(facts, nowMs);
  const { law } = parts.learning;
  const plan = planWallet({
    open,
    looks,
    nowMs,
    price: parts.pricing.price(wallet),
    narrows,
    headFinds,
    arrivalsPerSecond: arrivalsPerSecond(facts.arrivals, { usualPerSecond: law.usualArrivals, nowMs }),
    law,
  });
  return { plan, facts, finder: headFinds || !narrows ? 'head' : 'pending' };
}

async function takeListing(
  parts: WalletParts,
  { wallet, listing, cursor }: Page,
  run: { start: PollStart; signal: AbortSignal; onReading: (reading: Reading) => void },
): Promise<{ reading: Reading; taken: PageTaken }> {
  const { start } = run;
  const address = wallet.slice('wallet:'.length);
  const status = listing === 'head' ? null : listing;
  const askedAt = performance.now();
  const reading = await pollWallet(parts.client, { address, status, cursor }, run.signal);
  const answeredMs = start.nowMs + Math.round(performance.now() - askedAt);
  run.onReading(reading);
  const roots = start.claims.map((claim) => claim.root);
  const subscriptions = await parts.registry.subscriptions(roots);
  const taken = await takePage(parts, { reading, answeredMs, start, subscriptions });
  const headAtMs = listing === 'head' && cursor === null ? start.nowMs : null;
  await parts.wallets.sight(wallet, { ...taken, headAtMs });
  return { reading, taken };
}

/** Reads on behind the head where there is reason to: pages that were not read for long, or a head of new ones only. */
async function followHead(
  parts: WalletParts,
  wallet: SubjectId,
  head: { facts: WalletFacts; start: PollStart; reading: Reading; taken: PageTaken },
): Promise<void> {
  const { facts, taken, reading } = head;
  const { nowMs } = head.start;
  await noteOrder(parts, wallet, { taken, nowMs });
  if (reading.nextCursor === null) return parts.wallets.note(wallet, { sweptAtMs: nowMs, pages: 1 });
  const { nextCursor: cursor } = reading;
  const newestFirst = taken.order !== 'other' && comesNewestFirst(facts, nowMs);
  const everyMs = sweepEveryMs({ leastMs: parts.fullSweepEveryMs, pages: facts.pages, newestFirst });
  // Only a sweep that begins later reads the past for who has just subscribed, and new transfers that were left unread.
  const owedMs = Math.max(...head.start.claims.map(({ atMs }) => atMs), facts.missedAtMs);
  const isOwed = facts.sweptAtMs < owedMs || (taken.allNew && !newestFirst);
  const isDue = isOwed || nowMs - facts.sweptAtMs >= everyMs;
  const route = isDue ? 'all' : taken.allNew ? 'new' : null;
  if (route === null) return;
  if (await parts.walks.mayBegin({ wallet, route }, nowMs)) {
    return parts.walks.begin({ wallet, route }, { cursor, nowMs });
  }
  // The walk that is under way began at an earlier head: it does not read what lies between that one and this.
  if (taken.allNew) await parts.wallets.note(wallet, { missedAtMs: nowMs });
}

/** Notes how many new transfers came since the last look at the listing in which they appear. */
async function noteArrivals(
  parts: WalletParts,
  wallet: SubjectId,
  look: { facts: WalletFacts; finder: Listing; start: PollStart; taken: PageTaken },
): Promise<void> {
  const { nowMs } = look.start;
  const { arrivals, looks } = look.facts;
  const lastMs = looks[look.finder];
  // The first look shows what there was before.
  if (lastMs === undefined) return;
  const watchedSeconds = Math.max(0, nowMs - lastMs) / 1_000;
  const arrived = { seen: look.taken.arrived, watchedSeconds };
  parts.learning.sawArrivals(arrived);
  const tally = withArrivals(arrivals, { ...arrived, nowMs });
  await parts.wallets.note(wallet, {
    'arrivals:seen': tally.seen,
    'arrivals:watchedSeconds': tally.watchedSeconds,
    'arrivals:atMs': tally.atMs,
  });
}

/** Notes the order in which a page lists transfers, where it tells. */
async function noteOrder(
  parts: WalletParts,
  wallet: SubjectId,
  { taken, nowMs }: { taken: PageTaken; nowMs: number },
): Promise<void> {
  if (taken.order === 'newest-first') await parts.wallets.note(wallet, { orderAtMs: nowMs });
  if (taken.order === 'other') await parts.wallets.note(wallet, { disorderAtMs: nowMs });
}

/** Whether new transfers come first: it was seen, and nothing contradicted it of late. */
function comesNewestFirst({ orderAtMs, disorderAtMs }: WalletFacts, nowMs: number): boolean {
  return orderAtMs > 0 && nowMs - disorderAtMs > BELIEVED_MS;
}

/** Reads on behind the first page of the transfers in one status; at its end, looks up those that are not there any more. */
async function followNarrowed(
  parts: WalletParts,
  { wallet, listing }: { wallet: SubjectId; listing: Listing },
  first: { start: PollStart; reading: Reading },
): Promise<void> {
  const { start, reading } = first;
  // By what the page says and not by what is known: a page that is a moment behind has been narrowed all the same.
  const strange = reading.records.filter(({ status }) => status.toLowerCase() !== listing).length;
  if (strange > reading.records.length / 2) {
    await parts.wallets.note(wallet, { unnarrowedAtMs: start.nowMs });
    return;
  }
  if (reading.nextCursor === null) return lookUpThoseThatLeft(parts, { wallet, listing }, start.nowMs);
  if (!(await parts.walks.mayBegin({ wallet, route: listing }, start.nowMs))) return;
  await parts.walks.begin({ wallet, route: listing }, { cursor: reading.nextCursor, nowMs: start.nowMs });
}

/** A transfer that was in a status, and is not listed there since a moment, has most likely moved on. */
async function lookUpThoseThatLeft(
  parts: WalletParts,
  { wallet, listing }: { wallet: SubjectId; listing: Listing },
  sinceMs: number,
): Promise<void> {
  for (const { subject, status, seenAtMs } of await parts.wallets.open(wallet)) {
    if (status === listing && seenAtMs < sinceMs) await parts.queues.lookAgain(subject);
  }
}

function narrowListing(route: string): Listing {
  return NARROW_STATUSES.find((status) => status === route) ?? 'head';
}
