import { hash } from 'node:crypto';
import { withArrivals } from '../../domain/cadence/arrivals.ts';
import { afterFitting, afterTooLarge, BLOCKED_MS, effectiveLimit } from '../../domain/cadence/pages.ts';
import type { Listing } from '../../domain/cadence/wait.ts';
import { type OpenTransfer, sweepEveryMs } from '../../domain/cadence/wallet.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import { parseClaimKey } from '../../domain/subjects/subscription.ts';
import type { EarlierPage, WalletPage } from '../../pollers/status.ts';
import type { PageFacts } from '../../store/observed.ts';
import type { PollStart } from '../../store/poll-start.ts';
import type { WalletFacts } from '../../store/wallets.ts';
import type { TooLarge } from '../../upstream/client/failure.ts';
import { type IngestedPage, unreadableMembers } from './ingest-page.ts';
import { followThoseThatLeft } from './left-transfers.ts';
import type { PollContext } from './poll-context.ts';
import { type Adapter, answered, failed, type Polled } from './poll-ends.ts';
import { type PollFailure, reportTooLarge } from './poll-failures.ts';
import { INGESTED_EVERY_MS, type SeenPage, type SeenRecord } from './seen-pages.ts';
import {
  comesNewestFirst,
  DOUBTED_AGAIN,
  ingest,
  listingOf,
  nextListing,
  noteLimit,
  noteOrder,
  noteSwept,
  type OversizedPoll,
  observedOf,
  openFindings,
  type PollFindings,
  paceOfSweep,
  planListing,
  READ_EVERY_MS,
  type Run,
  readByStatus,
  readPage,
  withNoted,
} from './wallet-plan.ts';

/** Polls wallets. A wallet is never over: it has no record of its own. */
export function walletAdapter(deps: PollContext): Adapter {
  return {
    isOver: async () => false,
    poll: (start, signal) => pollListing(deps, { start, signal }),
    failed: async (start, failure) => failed(failure, failedListing(deps, start, failure)),
  };
}

/** Polls a wallet's first due listing, ingests it, and begins sweeps. Throws UpstreamFailure, or the signal's reason. */
async function pollListing(deps: PollContext, run: Run): Promise<Polled> {
  const { start } = run;
  const { subject: wallet, facts, nowMs } = start;
  const findings = openFindings(start);
  const { model } = deps.learning;
  const before = planListing(model, start, { facts, open: [...findings.open.values()] });
  const listing = listingOf(start, before.plan);
  const limit = effectiveLimit(facts.limits[listing], nowMs);
  const status = listing === 'head' ? null : listing;
  const last = seenPage(deps, { start, findings, listing });
  const earlier = earlierPage(last, { start, findings, listing });
  const page = await readPage(deps, { wallet, status, cursor: null, limit, earlier }, run);
  if ('found' in page) return shrinkListing(deps, { start, findings }, { listing, limit, tooLarge: page });
  const { response, answeredMs } = page;
  noteLimit(findings, listing, afterFitting(facts.limits[listing], { limit, nowMs }));
  const content = response.isSame ? (last?.content ?? null) : (response.digests?.content ?? null);
  findings.facts[`polled:${listing}`] = nowMs;
  findings.facts[`virtual:${listing}`] = start.virtual;
  let ingested: IngestedPage | null = null;
  if (isUnchanged(deps, { start, findings, listing }, content)) {
    noteSeen(deps, { start, findings, listing }, { response, last, ingested });
    const shown = shownBefore(findings, facts, listing);
    const fromMs = facts.polled[listing]?.atMs ?? nowMs;
    for (const transfer of shown) deps.learning.sawOpen(transfer, { fromMs, nowMs });
    findings.shown.push(...shown.map(({ subject }) => subject));
  } else {
    const sinceMs = facts.headAnsweredAtMs;
    ingested = await ingest(
      deps,
      {
        response,
        answeredMs,
        atHead: listing === 'head',
        sinceMs,
        polledMs: facts.polled[listing]?.atMs ?? null,
      },
      { run, findings },
    );
    if (ingested === null) return answered(DOUBTED_AGAIN, observedOf(deps, start, findings, null));
    findings.facts[`ingested:${listing}`] = nowMs;
    if (listing === 'head') findings.facts.headAnsweredAtMs = answeredMs;
    const { isSettled, moves } = ingested;
    const records = noteSeen(deps, { start, findings, listing }, { response, last, ingested });
    const state = { isSettled, records, moves: facts.moves + moves };
    findings.facts[`same:${listing}`] = content === null ? '' : printOf(deps, start, { ...state, content });
  }
  if (listing === before.finder)
    noteArrivals(deps, { facts, listing, findings, nowMs, seen: ingested?.arrived ?? 0 });
  if (listing === 'head') await followHead(deps, { start, response, limit, ingested, findings });
  else if (ingested !== null) await followNarrowed(deps, { listing, start, response, limit, findings });
  const after = { facts: withNoted(facts, findings.facts), open: [...findings.open.values()] };
  return answered(nextListing(model, start, after), observedOf(deps, start, findings, ingested));
}

/**
 * Observation of a failed poll of a wallet. Its listing counts as polled. Where the failure is its own the listing also waits,
 * so that the others are requested when the wallet itself is.
 */
function failedListing(deps: PollContext, start: PollStart, { own, afterMs }: PollFailure): PageFacts {
  const { open, facts, nowMs, virtual } = start;
  const listing = listingOf(
    start,
    planListing(deps.learning.model, start, { facts, open: open.transfers }).plan,
  );
  return {
    ...observedOf(deps, start, openFindings(start), null),
    facts: {
      [`polled:${listing}`]: nowMs + (own ? Math.round(afterMs) : 0),
      [`virtual:${listing}`]: virtual,
    },
  };
}

/** Requests the first page of a listing again with a smaller limit; where that was 1, reports its record instead. */
async function shrinkListing(
  deps: PollContext,
  { start, findings }: OversizedPoll,
  { listing, limit, tooLarge }: { listing: Listing; limit: number; tooLarge: TooLarge },
): Promise<Polled> {
  const { subject: wallet, facts, nowMs, virtual } = start;
  const state = afterTooLarge(limit, nowMs);
  noteLimit(findings, listing, state);
  if (state.limit === 0) {
    findings.facts[`polled:${listing}`] = nowMs + BLOCKED_MS;
    findings.facts[`virtual:${listing}`] = virtual;
    await reportTooLarge(deps, wallet, tooLarge);
    if (listing === 'head') await readByStatus(deps, start);
  }
  const after = { facts: withNoted(facts, findings.facts), open: [...findings.open.values()] };
  return answered(nextListing(deps.learning.model, start, after), observedOf(deps, start, findings, null));
}

/** A listing of a wallet, with the start and the findings of its poll. */
type ListingPoll = { start: PollStart; findings: PollFindings; listing: Listing };

/**
 * Hash of a page and of all on which the result of its ingestion depends: its content, its subscribers with the times that
 * they wish for, the data's epoch, the
 * number of commits about the wallet's transfers, and which of its records were settled: another process may have found others.
 */
function printOf(
  { stores: { subjects } }: PollContext,
  { claims, subscribedAt, subscriptions }: PollStart,
  page: { content: string; isSettled: boolean; records: ReadonlyMap<string, unknown> | null; moves: number },
): string {
  const { content, isSettled, records, moves } = page;
  const { epoch } = subjects.epoch.begun;
  const settled = isSettled ? 'all' : [...(records?.keys() ?? [])].sort();
  const subscribers = claims.map(({ key, atMs }) => {
    const { overdueAfterMs = null, warnBeforeMs = null } =
      subscriptions.get(parseClaimKey(key).subscription) ?? {};
    return [key, atMs, subscribedAt.get(key) ?? '', overdueAfterMs, warnBeforeMs];
  });
  return hash('sha256', JSON.stringify([content, settled, moves, epoch, subscribers])).slice(0, 32);
}

/** The page that this process ingested last; null where another process has ingested another one, or a transfer has moved on. */
function seenPage(deps: PollContext, { start, listing }: ListingPoll): SeenPage | null {
  const { subject, facts } = start;
  const page = deps.pages.get(subject, listing);
  if (page === null) return null;
  return facts.same[listing] === printOf(deps, start, { ...page, moves: facts.moves }) ? page : null;
}

/** Returns the content of a page that need not be read again: all of it while it may count as unchanged, else records that do. */
function earlierPage(page: SeenPage | null, poll: ListingPoll): EarlierPage {
  const { start, findings } = poll;
  const { nowMs } = start;
  return {
    body: page?.isSettled && mayBeUnchanged(poll) ? page.body : null,
    nextCursor: page?.nextCursor ?? null,
    find: (digest) => {
      const record = page?.records.get(digest);
      if (record === undefined || !isRecent(record.readAtMs, nowMs)) return null;
      // Without its entry among the open transfers, that would have to be made anew.
      return record.isOpen && !findings.open.has(record.subject) ? null : record;
    },
  };
}

/** Stores the page for the next poll, and returns its records that would change nothing if they were ingested again. */
function noteSeen(
  { pages }: PollContext,
  { start, findings, listing }: ListingPoll,
  read: { response: WalletPage; last: SeenPage | null; ingested: IngestedPage | null },
): SeenPage['records'] | null {
  const { response, last, ingested } = read;
  const { subject: wallet, facts, nowMs } = start;
  if (response.isSame) return null;
  if (response.digests === null) {
    pages.remove(wallet, listing);
    return null;
  }
  const readAtMs = ingested === null ? (facts.ingestedAtMs[listing] ?? 0) - INGESTED_EVERY_MS : nowMs;
  const records = new Map<string, SeenRecord>();
  const shownOnce = new Set<SubjectId>();
  for (const [subject, shown] of Map.groupBy(response.results, (one) => one.subject))
    if (shown.length === 1) shownOnce.add(subject);
  for (const { digest, record, subject, status, updatedAt } of response.results) {
    // Of two records of a subject, one is behind the other.
    if (!shownOnce.has(subject)) continue;
    const before = record === null ? last?.records.get(digest) : undefined;
    const isSettled = ingested === null || record === null || ingested.settled.has(subject);
    if (!isSettled || (record !== null && unreadableMembers(record).length > 0)) continue;
    const isOpen = findings.open.has(subject);
    records.set(digest, before ?? { subject, status, updatedAt, isOpen, readAtMs });
  }
  const isWhole = records.size === response.results.length && response.unreadable.length === 0;
  const { body, content } = response.digests;
  pages.set(wallet, listing, {
    body: isWhole && (response.reserved ?? []).length === 0 ? body : null,
    content,
    isSettled: ingested?.isSettled ?? true,
    nextCursor: response.nextCursor,
    records,
    atMs: nowMs,
  });
  return records;
}

function isRecent(ingestedAtMs: number, nowMs: number): boolean {
  const agoMs = nowMs - ingestedAtMs;
  return agoMs >= 0 && agoMs < INGESTED_EVERY_MS;
}

function isUnchanged(deps: PollContext, poll: ListingPoll, content: string | null): boolean {
  const { facts } = poll.start;
  if (content === null || !mayBeUnchanged(poll)) return false;
  const print = printOf(deps, poll.start, { content, isSettled: true, records: null, moves: facts.moves });
  return facts.same[poll.listing] === print;
}

function mayBeUnchanged({ start: { facts, nowMs }, findings, listing }: ListingPoll): boolean {
  return isRecent(facts.ingestedAtMs[listing] ?? 0, nowMs) && !isOutdated(findings, facts, listing);
}

/** True when another answer has since shown a transfer of a one-status listing: the listing must be ingested to locate it. */
function isOutdated({ open }: PollFindings, facts: WalletFacts, listing: Listing): boolean {
  const ingestedAtMs = facts.ingestedAtMs[listing] ?? 0;
  return open.values().some(({ status, seenAtMs }) => status === listing && seenAtMs > ingestedAtMs);
}

function shownBefore({ open }: PollFindings, facts: WalletFacts, listing: Listing): OpenTransfer[] {
  const ingestedAtMs = facts.ingestedAtMs[listing] ?? 0;
  return [...open.values()].filter(({ headAtMs, status, seenAtMs }) =>
    listing === 'head' ? headAtMs === ingestedAtMs : status === listing && seenAtMs === ingestedAtMs,
  );
}

/** Begins a sweep behind the head where its pages were not read for long, or where all of the head is new. */
async function followHead(
  deps: PollContext,
  head: {
    start: PollStart;
    response: WalletPage;
    limit: number;
    ingested: IngestedPage | null;
    findings: PollFindings;
  },
): Promise<void> {
  const { start, ingested, response, limit, findings } = head;
  const { subject: wallet, facts, nowMs } = start;
  const isPartial = response.unreadable.length > 0;
  if (ingested !== null) noteOrder(findings, { ingested, nowMs });
  if (response.nextCursor === null) {
    await noteSwept(deps, head, { sweptAtMs: nowMs, pages: 1 });
    if (!isPartial) findings.facts.readAtMs = nowMs - READ_EVERY_MS;
    return;
  }
  if (facts.sweptAtMs === 0) await deps.stores.wallets.noteUnswept(wallet, 'sweeping');
  const { nextCursor: cursor } = response;
  const allMoved = ingested?.allMoved ?? false;
  const newestFirst = ingested?.order !== 'other' && comesNewestFirst(facts, nowMs);
  const everyMs = sweepEveryMs({ leastMs: deps.rules.fullSweepEveryMs, pages: facts.pages, newestFirst });
  // Only a later full sweep reads the past for a new subscription, and new transfers that were not read.
  const owedMs = Math.max(...start.claims.map(({ atMs }) => atMs), facts.missedAtMs);
  const isOwed = facts.sweptAtMs < owedMs || (allMoved && !newestFirst);
  const isDue = isOwed || nowMs - facts.sweptAtMs >= everyMs;
  const scope = isDue ? 'all' : allMoved ? 'new' : null;
  if (scope === null) return;
  if (await deps.stores.sweeps.mayBegin({ wallet, scope }, nowMs)) {
    const pace = scope === 'all' ? await paceOfSweep(deps, start, scope) : 'patient';
    const from = {
      cursor,
      limit,
      nowMs,
      sinceMs: facts.headAnsweredAtMs,
      isHurried: pace === 'hurried',
      isPartial,
    };
    if (pace !== null) return deps.stores.sweeps.begin({ wallet, scope }, from);
  }
  // The sweep under way began at an earlier head: it does not read what lies between that head and this one.
  if (allMoved) findings.facts.missedAtMs = nowMs;
}

function noteArrivals(
  deps: PollContext,
  poll: { facts: WalletFacts; listing: Listing; findings: PollFindings; nowMs: number; seen: number },
): void {
  const { facts, listing, findings, nowMs, seen } = poll;
  const last = facts.polled[listing];
  // The first poll shows earlier transfers.
  if (last === undefined) return;
  const arrived = { seen, watchedSeconds: Math.max(0, nowMs - last.atMs) / 1_000 };
  deps.learning.sawArrivals(arrived);
  const tally = withArrivals(facts.arrivals, { ...arrived, nowMs });
  Object.assign(findings.facts, {
    'arrivals:seen': tally.seen,
    'arrivals:watchedSeconds': tally.watchedSeconds,
    'arrivals:atMs': tally.atMs,
  });
}

/** Reads on behind the first page of the transfers in one status. At its end, polls the transfers that have moved on. */
async function followNarrowed(
  deps: PollContext,
  first: {
    listing: Listing;
    start: PollStart;
    response: WalletPage;
    limit: number;
    findings: PollFindings;
  },
): Promise<void> {
  const { listing, start, response, limit, findings } = first;
  const { subject: wallet, nowMs } = start;
  // By the page and not by the snapshot: a page that is slightly behind has been narrowed all the same.
  const strange = response.results.filter(({ status }) => status.toLowerCase() !== listing).length;
  if (strange > response.results.length / 2) {
    findings.facts.unnarrowedAtMs = nowMs;
    return;
  }
  if (response.nextCursor === null) {
    return followThoseThatLeft(deps, first, { status: listing, sinceMs: nowMs });
  }
  if (!(await deps.stores.sweeps.mayBegin({ wallet, scope: listing }, nowMs))) return;
  await deps.stores.sweeps.begin(
    { wallet, scope: listing },
    { cursor: response.nextCursor, limit, nowMs, sinceMs: nowMs },
  );
}
