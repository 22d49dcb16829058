import { hash } from 'node:crypto';
import { withArrivals } from '../../domain/cadence/arrivals.ts';
import type { Listing } from '../../domain/cadence/listing-choice.ts';
import { type OpenTransfer, sweepEveryMs } from '../../domain/cadence/wallet.ts';
import { coveredWait } from '../../domain/cadence/watched.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import type { Reading } from '../../pollers/reading.ts';
import { pollWallet } from '../../pollers/status.ts';
import type { Observed } from '../../store/observed.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { type NotedFacts, openText, type WalletFacts } from '../../store/wallets.ts';
import type { PollFailure } from './poll-failures.ts';
import type { PollParts } from './poll-parts.ts';
import { type Adapter, answered, failed, over, type Polled } from './polled.ts';
import { parseSweep, type Sweep, type SweepPage } from './sweeps.ts';
import { type PageTaken, takePage } from './take-page.ts';
import { reportUnreadable } from './unreadable.ts';
import {
  comesNewestFirst,
  coverMs,
  listingOf,
  narrowListing,
  nextListing,
  nextPage,
  planListing,
  withNoted,
} from './wallet-plan.ts';

/** A transfer that no listing has shown for so long is left to its own look-ups. */
const FORGOTTEN_AFTER_MS = 3_600_000;

/** An answer that says the same as the one before is taken in anew after this, so that what it shows is kept. */
const TAKEN_EVERY_MS = 600_000;

/** One page of a wallet that is asked for. */
type Page = { wallet: SubjectId; listing: Listing; cursor: string | null };

/** A poll under way. */
type Run = { start: PollStart; signal: AbortSignal };

/** What the poll has found out so far, to be noted with its end. */
type Draft = { facts: NotedFacts; open: Map<string, OpenTransfer>; ended: string[]; shown: string[] };

/** A page of a sweep that fails so often ends the sweep; the next one comes by itself. */
const PAGE_TRIES = 5;

/** Polls wallets. One is never over: it has no record of its own. */
export function walletAdapter(parts: PollParts): Adapter {
  return {
    isOver: async () => false,
    poll: (start, signal) => pollListing(parts, { start, signal }),
    failed: async (start, failure) => failed(failure, failedListing(parts, start, failure)),
  };
}

/** Polls the page of a wallet that a sweep reads next. */
export function pageAdapter(parts: PollParts, { member, subject, sweep: stored }: PollStart): Adapter {
  const sweep = parseSweep(subject, member.split(':')[1] ?? '', stored ?? {});
  return {
    isOver: async () => sweep === null,
    poll: async (start, signal) =>
      sweep === null ? over('ended') : pollPage(parts, sweep, { start, signal }),
    failed: async (start, failure) => {
      if (sweep === null) return failed(failure);
      // Any 400 on a cursor means that it has expired: the next poll of the first page begins the sweep anew.
      if (failure.code === 'invalid-request' || sweep.tries + 1 >= PAGE_TRIES) {
        await breakSweep(parts, sweep, start.nowMs);
        return over('failed');
      }
      if (failure.own) await parts.stores.sweeps.noteFailure(sweep);
      return failed(failure);
    },
  };
}

/**
 * Polls a wallet: asks for the listing that is due first, takes in what it shows, and follows it where it leads on. Throws
 * UpstreamFailure, or the signal's reason.
 */
async function pollListing(parts: PollParts, run: Run): Promise<Polled> {
  const { start } = run;
  const { subject: wallet, facts, nowMs } = start;
  const draft = openDraft(start);
  const { model } = parts.learning;
  const before = planListing(model, start, { facts, open: [...draft.open.values()] });
  const listing = listingOf(start, before.plan);
  const { reading, answeredMs } = await readPage(parts, { wallet, listing, cursor: null }, run);
  const print = fingerprint(reading, start);
  draft.facts[`polled:${listing}`] = nowMs;
  draft.facts[`virtual:${listing}`] = start.virtual;
  let taken: PageTaken | null = null;
  if (saysTheSame(facts, { listing, print, nowMs }) && !isOutdated(draft, facts, listing)) {
    const shown = shownBefore(draft, facts, listing);
    const fromMs = facts.polled[listing]?.atMs ?? nowMs;
    for (const transfer of shown) parts.learning.sawOpen(transfer, { fromMs, nowMs });
    draft.shown.push(...shown.map(({ subject }) => subject));
  } else {
    const sinceMs = facts.headAnsweredAtMs;
    taken = await takeIn(parts, { reading, answeredMs, atHead: listing === 'head', sinceMs }, { run, draft });
    draft.facts[`taken:${listing}`] = nowMs;
    if (listing === 'head') draft.facts.headAnsweredAtMs = answeredMs;
    draft.facts[`same:${listing}`] = taken.quiet ? print : '';
  }
  if (listing === before.finder)
    noteArrivals(parts, { facts, listing, draft, nowMs, seen: taken?.arrived ?? 0 });
  if (listing === 'head') await followHead(parts, { start, reading, taken, draft });
  else if (taken !== null) await followNarrowed(parts, { listing, start, reading, draft });
  const after = { facts: withNoted(facts, draft.facts), open: [...draft.open.values()] };
  return answered(nextListing(model, start, after), observedOf(parts, start, draft, taken));
}

/**
 * What is noted of a wallet whose poll failed: the listing that it was to poll counts as polled, and where the failure is its
 * own it also waits, so that the others are asked for when the wallet itself is.
 */
function failedListing(parts: PollParts, start: PollStart, { own, afterMs }: PollFailure): Observed {
  const { open, facts, nowMs, virtual } = start;
  const listing = listingOf(start, planListing(parts.learning.model, start, { facts, open }).plan);
  return {
    ...observedOf(parts, start, openDraft(start), null),
    facts: {
      [`polled:${listing}`]: nowMs + (own ? Math.round(afterMs) : 0),
      [`virtual:${listing}`]: virtual,
    },
  };
}

/** Asks for the next page of a sweep, and takes it in. */
async function pollPage(parts: PollParts, sweep: SweepPage, run: Run): Promise<Polled> {
  const { wallet, scope, cursor, page } = sweep;
  const { start } = run;
  const listing = narrowListing(scope);
  const draft = openDraft(start);
  const { reading, answeredMs } = await readPage(parts, { wallet, listing, cursor }, run);
  const taken = await takeIn(
    parts,
    { reading, answeredMs, atHead: false, sinceMs: sweep.sinceMs },
    { run, draft },
  );
  if (listing === 'head') noteOrder(draft, { taken, nowMs: start.nowMs });
  const isOver = reading.nextCursor === null || (scope === 'new' && !taken.allMoved);
  if (!isOver) {
    const from = { page, cursor: reading.nextCursor ?? '', nowMs: start.nowMs };
    const goesOn =
      (await parts.stores.sweeps.isPresent(sweep)) && (await parts.stores.sweeps.next(sweep, from));
    if (goesOn) return answered(nextPage(scope), observedOf(parts, start, draft, taken));
    await breakSweep(parts, sweep, start.nowMs);
    return answered(null, observedOf(parts, start, draft, taken));
  }
  await parts.stores.sweeps.end(sweep);
  const beganMs = Number(sweep.id);
  if (scope === 'all') Object.assign(draft.facts, { sweptAtMs: beganMs, pages: page });
  if (listing !== 'head') await recheckThoseThatLeft(parts, { draft, listing, sinceMs: beganMs });
  return answered(null, observedOf(parts, start, draft, taken));
}

/** Ends a sweep that cannot go on. What it was to read is left to the next of its kind, and new transfers to a full sweep. */
async function breakSweep(
  { stores: { sweeps, wallets } }: Pick<PollParts, 'stores'>,
  sweep: Sweep,
  nowMs: number,
): Promise<void> {
  if (sweep.scope === 'new') await wallets.note(sweep.wallet, { missedAtMs: nowMs });
  await sweeps.end(sweep, 'broken');
}

function openDraft({ open, nowMs }: PollStart): Draft {
  const fresh = open.filter(({ seenAtMs }) => nowMs - seenAtMs < FORGOTTEN_AFTER_MS);
  return {
    facts: {},
    open: new Map(fresh.map((transfer) => [transfer.subject, transfer])),
    ended: open.filter((transfer) => !fresh.includes(transfer)).map(({ subject }) => subject),
    shown: [],
  };
}

/** Asks for a page. `answeredMs` is when its answer came (Redis time). */
async function readPage(
  parts: PollParts,
  { wallet, listing, cursor }: Page,
  run: Run,
): Promise<{ reading: Reading; answeredMs: number }> {
  const address = wallet.slice('wallet:'.length);
  const status = listing === 'head' ? null : listing;
  const askedAt = performance.now();
  const reading = await pollWallet(parts.client, { address, status, cursor }, run.signal);
  reportUnreadable(parts, wallet, reading);
  return { reading, answeredMs: run.start.nowMs + Math.round(performance.now() - askedAt) };
}

/** Takes in what a page shows, and notes it. */
async function takeIn(
  parts: PollParts,
  page: { reading: Reading; answeredMs: number; atHead: boolean; sinceMs: number },
  { run, draft }: { run: Run; draft: Draft },
): Promise<PageTaken> {
  const { start } = run;
  const { atHead, ...read } = page;
  const taken = await takePage(parts, { ...read, start });
  for (const transfer of taken.open) {
    const headAtMs = atHead ? start.nowMs : (draft.open.get(transfer.subject)?.headAtMs ?? null);
    draft.open.set(transfer.subject, { ...transfer, headAtMs });
    draft.shown.push(transfer.subject);
  }
  for (const subject of taken.ended) {
    draft.open.delete(subject);
    draft.ended.push(subject);
  }
  return taken;
}

/** What tells one answer from another: all that it says, in its order, and who wants to hear of it. */
function fingerprint(reading: Reading, { claims }: PollStart): string {
  const raw = JSON.stringify([
    reading.records.map((record) => record.raw),
    reading.nextCursor,
    reading.unreadable.length,
    claims.map(({ root, atMs }) => [root, atMs]),
  ]);
  return hash('sha256', raw).slice(0, 32);
}

/** Whether an answer says just what the one before it said, of which nothing was new. */
function saysTheSame(
  facts: WalletFacts,
  answer: { listing: Listing; print: string; nowMs: number },
): boolean {
  const { listing, print, nowMs } = answer;
  const takenMs = nowMs - (facts.takenAtMs[listing] ?? 0);
  return facts.same[listing] === print && takenMs >= 0 && takenMs < TAKEN_EVERY_MS;
}

/** Whether something else has shown a transfer since that belongs to a listing of one status: it has to tell where that is. */
function isOutdated({ open }: Draft, facts: WalletFacts, listing: Listing): boolean {
  const takenAtMs = facts.takenAtMs[listing] ?? 0;
  return open.values().some(({ status, seenAtMs }) => status === listing && seenAtMs > takenAtMs);
}

/** The transfers that a listing showed when its answer was taken in last. */
function shownBefore({ open }: Draft, facts: WalletFacts, listing: Listing): OpenTransfer[] {
  const takenAtMs = facts.takenAtMs[listing] ?? 0;
  return [...open.values()].filter(({ headAtMs, status, seenAtMs }) =>
    listing === 'head' ? headAtMs === takenAtMs : status === listing && seenAtMs === takenAtMs,
  );
}

/** Reads on behind the head where there is reason to: pages that were not read for long, or a head of news only. */
async function followHead(
  parts: PollParts,
  head: { start: PollStart; reading: Reading; taken: PageTaken | null; draft: Draft },
): Promise<void> {
  const { start, taken, reading, draft } = head;
  const { subject: wallet, facts, nowMs } = start;
  if (taken !== null) noteOrder(draft, { taken, nowMs });
  if (reading.nextCursor === null) {
    Object.assign(draft.facts, { sweptAtMs: nowMs, pages: 1 });
    return;
  }
  const { nextCursor: cursor } = reading;
  const allMoved = taken?.allMoved ?? false;
  const newestFirst = taken?.order !== 'other' && comesNewestFirst(facts, nowMs);
  const everyMs = sweepEveryMs({ leastMs: parts.rules.fullSweepEveryMs, pages: facts.pages, newestFirst });
  // Only a full sweep that begins later reads the past for who has just subscribed, and new transfers that were left unread.
  const owedMs = Math.max(...start.claims.map(({ atMs }) => atMs), facts.missedAtMs);
  const isOwed = facts.sweptAtMs < owedMs || (allMoved && !newestFirst);
  const isDue = isOwed || nowMs - facts.sweptAtMs >= everyMs;
  const scope = isDue ? 'all' : allMoved ? 'new' : null;
  if (scope === null) return;
  if (await parts.stores.sweeps.mayBegin({ wallet, scope }, nowMs)) {
    return parts.stores.sweeps.begin({ wallet, scope }, { cursor, nowMs, sinceMs: facts.headAnsweredAtMs });
  }
  // The sweep that is under way began at an earlier head: it does not read what lies between that one and this.
  if (allMoved) draft.facts.missedAtMs = nowMs;
}

/** Notes how many new transfers came since the last poll of the listing in which they appear. */
function noteArrivals(
  parts: PollParts,
  poll: { facts: WalletFacts; listing: Listing; draft: Draft; nowMs: number; seen: number },
): void {
  const { facts, listing, draft, nowMs, seen } = poll;
  const last = facts.polled[listing];
  // The first poll shows what there was before.
  if (last === undefined) return;
  const arrived = { seen, watchedSeconds: Math.max(0, nowMs - last.atMs) / 1_000 };
  parts.learning.sawArrivals(arrived);
  const tally = withArrivals(facts.arrivals, { ...arrived, nowMs });
  Object.assign(draft.facts, {
    'arrivals:seen': tally.seen,
    'arrivals:watchedSeconds': tally.watchedSeconds,
    'arrivals:atMs': tally.atMs,
  });
}

/** Notes the order in which a page lists transfers, where it tells. */
function noteOrder(draft: Draft, { taken, nowMs }: { taken: PageTaken; nowMs: number }): void {
  if (taken.order === 'newest-first') draft.facts.orderAtMs = nowMs;
  if (taken.order === 'other') draft.facts.disorderAtMs = nowMs;
}

/** Reads on behind the first page of the transfers in one status; at its end, looks up those that are not there any more. */
async function followNarrowed(
  parts: PollParts,
  first: { listing: Listing; start: PollStart; reading: Reading; draft: Draft },
): Promise<void> {
  const { listing, start, reading, draft } = first;
  const { subject: wallet, nowMs } = start;
  // By what the page says and not by what is known: a page that is a moment behind has been narrowed all the same.
  const strange = reading.records.filter(({ status }) => status.toLowerCase() !== listing).length;
  if (strange > reading.records.length / 2) {
    draft.facts.unnarrowedAtMs = nowMs;
    return;
  }
  if (reading.nextCursor === null) {
    return recheckThoseThatLeft(parts, { draft, listing, sinceMs: nowMs });
  }
  if (!(await parts.stores.sweeps.mayBegin({ wallet, scope: listing }, nowMs))) return;
  await parts.stores.sweeps.begin(
    { wallet, scope: listing },
    { cursor: reading.nextCursor, nowMs, sinceMs: nowMs },
  );
}

/** A transfer that was in a status, and is not listed there since a moment, has most likely moved on. */
async function recheckThoseThatLeft(
  parts: PollParts,
  { draft, listing, sinceMs }: { draft: Draft; listing: Listing; sinceMs: number },
): Promise<void> {
  const left = [...draft.open.values()].filter(
    ({ status, seenAtMs }) => status === listing && seenAtMs < sinceMs,
  );
  if (left.length > 0) await parts.stores.plan.recheck(left.map(({ subject }) => subject));
}

function observedOf(
  { learning: { model } }: PollParts,
  start: PollStart,
  draft: Draft,
  taken: PageTaken | null,
): Observed {
  const { nowMs } = start;
  const changed = taken?.open ?? [];
  return {
    facts: Object.fromEntries(
      Object.entries(draft.facts).flatMap(([fact, value]) => (value === undefined ? [] : [[fact, value]])),
    ),
    open: Object.fromEntries(
      changed.flatMap(({ subject }) => {
        const transfer = draft.open.get(subject);
        return transfer === undefined ? [] : [[subject, openText(transfer)]];
      }),
    ),
    ended: draft.ended,
    shown: draft.shown,
    covered:
      taken?.covered ??
      draft.shown.flatMap((subject) => {
        const transfer = draft.open.get(subject);
        if (transfer === undefined) return [];
        return [{ subject, alarmMs: null, ...coveredWait(transfer, { nowMs, model }) }];
      }),
    coverMs: coverMs(start),
  };
}
