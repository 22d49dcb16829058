import { hash } from 'node:crypto';
import { withArrivals } from '../../domain/cadence/arrivals.ts';
import type { PlannedPoll } from '../../domain/cadence/next-poll.ts';
import {
  afterFitting,
  afterTooLarge,
  BLOCKED_MS,
  effectiveLimit,
  PAGE_LIMIT,
  type PageLimit,
} from '../../domain/cadence/pages.ts';
import type { Listing } from '../../domain/cadence/wait.ts';
import { type OpenTransfer, sweepEveryMs } from '../../domain/cadence/wallet.ts';
import { coveredWait } from '../../domain/cadence/watched.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import type { Reading } from '../../pollers/reading.ts';
import { pollWallet } from '../../pollers/status.ts';
import type { Observed } from '../../store/observed.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { type NotedFacts, openText, type WalletFacts } from '../../store/wallets.ts';
import { type TooLarge, UpstreamFailure } from '../../upstream/client/failure.ts';
import type { PollContext } from './poll-context.ts';
import type { PollFailure } from './poll-failures.ts';
import { type Adapter, AT_ONCE, answered, failed, over, type Polled } from './polled.ts';
import { INSTEAD_OF_ALL, isFull, parseSweep, type Sweep, type SweepPage, statusOf } from './sweeps.ts';
import { type PageTaken, reportTooLarge, reportUnreadable, takePage } from './take-page.ts';
import {
  comesNewestFirst,
  coverMs,
  listingOf,
  narrowsPages,
  nextListing,
  nextPage,
  noteDeadCursor,
  PAGE_AT_ONCE,
  paceOfSweep,
  planListing,
  withNoted,
} from './wallet-plan.ts';

/** A transfer that no listing has shown for so long is left to its own polls. */
const FORGOTTEN_AFTER_MS = 3_600_000;

/** An answer that says the same as the one before is taken in anew after this, so that it is known what was shown. */
const TAKEN_EVERY_MS = 600_000;

/** One page of a wallet that is requested: of its transfers in one status, or of all (`null`). */
type Page = { wallet: SubjectId; status: string | null; cursor: string | null; limit: number };

/** A page as it was answered. `answeredMs` is when its answer came (Redis time). */
type ReadPage = { reading: Reading; answeredMs: number };

type Run = { start: PollStart; signal: AbortSignal };

/** What the poll has found out so far, to be noted with its end. */
type Draft = { facts: NotedFacts; open: Map<string, OpenTransfer>; ended: string[]; shown: string[] };

/** A page that waits until it is known what of it is history is read again so soon: more responses say what the time is. */
const DOUBTED_AGAIN: PlannedPoll = { ...AT_ONCE, restMs: 2_000, latestMs: 10_000 };

/** A page of a sweep that fails so often ends the sweep; the next one comes by itself. */
const PAGE_TRIES = 5;

/** Polls wallets. One is never over: it has no record of its own. */
export function walletAdapter(parts: PollContext): Adapter {
  return {
    isOver: async () => false,
    poll: (start, signal) => pollListing(parts, { start, signal }),
    failed: async (start, failure) => failed(failure, failedListing(parts, start, failure)),
  };
}

/** Polls the page of a wallet that a sweep reads next. */
export function pageAdapter(parts: PollContext, { member, subject, sweep: stored }: PollStart): Adapter {
  const sweep = parseSweep(subject, member.split(':')[1] ?? '', stored ?? {});
  return {
    isOver: async () => sweep === null,
    poll: async (start, signal) =>
      sweep === null ? over('ended') : pollPage(parts, sweep, { start, signal }),
    failed: async (start, failure) => {
      if (sweep === null) return failed(failure);
      if (failure.code === 'invalid-request' || sweep.tries + 1 >= PAGE_TRIES) {
        // The cursor came with a larger limit, which it may be bound to.
        if (sweep.cursor !== null && sweep.limit < sweep.cursorLimit) {
          await parts.stores.sweeps.restart(sweep, start.nowMs);
          return { ...answered(PAGE_AT_ONCE), outcome: 'failed' };
        }
        // Any other 400 on a cursor means that it has expired: the next poll of the first page begins the sweep anew.
        const isExpired = failure.code === 'invalid-request' && sweep.cursor !== null;
        if (isExpired && isFull(sweep.scope)) await noteDeadCursor(parts, sweep, start);
        await breakSweep(parts, sweep, start.nowMs);
        return over('failed');
      }
      if (failure.own) await parts.stores.sweeps.noteFailure(sweep);
      return failed(failure);
    },
  };
}

/**
 * Polls a wallet: requests the listing that is due first, takes in what it shows, and follows it where it leads on. Throws
 * UpstreamFailure, or the signal's reason.
 */
async function pollListing(parts: PollContext, run: Run): Promise<Polled> {
  const { start } = run;
  const { subject: wallet, facts, nowMs } = start;
  const draft = openDraft(start);
  const { model } = parts.learning;
  const before = planListing(model, start, { facts, open: [...draft.open.values()] });
  const listing = listingOf(start, before.plan);
  const limit = effectiveLimit(facts.limits[listing], nowMs);
  const status = listing === 'head' ? null : listing;
  const page = await readPage(parts, { wallet, status, cursor: null, limit }, run);
  if ('found' in page) return shrinkListing(parts, { start, draft }, { listing, limit, tooLarge: page });
  const { reading, answeredMs } = page;
  noteLimit(draft, listing, afterFitting(facts.limits[listing], { limit, nowMs }));
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
    if (taken === null) return answered(DOUBTED_AGAIN, observedOf(parts, start, draft, null));
    draft.facts[`taken:${listing}`] = nowMs;
    if (listing === 'head') draft.facts.headAnsweredAtMs = answeredMs;
    draft.facts[`same:${listing}`] = taken.quiet ? print : '';
  }
  if (listing === before.finder)
    noteArrivals(parts, { facts, listing, draft, nowMs, seen: taken?.arrived ?? 0 });
  if (listing === 'head') await followHead(parts, { start, reading, limit, taken, draft });
  else if (taken !== null) await followNarrowed(parts, { listing, start, reading, limit, draft });
  const after = { facts: withNoted(facts, draft.facts), open: [...draft.open.values()] };
  return answered(nextListing(model, start, after), observedOf(parts, start, draft, taken));
}

/**
 * What is noted of a wallet whose poll failed: the listing that it was to poll counts as polled, and where the failure is its
 * own it also waits, so that the others are requested when the wallet itself is.
 */
function failedListing(parts: PollContext, start: PollStart, { own, afterMs }: PollFailure): Observed {
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
async function pollPage(parts: PollContext, sweep: SweepPage, run: Run): Promise<Polled> {
  const { wallet, scope, cursor, page, limit } = sweep;
  const { start } = run;
  const status = statusOf(scope);
  const draft = openDraft(start);
  const answer = await readPage(parts, { wallet, status, cursor, limit }, run);
  if ('found' in answer) return shrinkSweep(parts, { start, draft }, { sweep, tooLarge: answer });
  const { reading, answeredMs } = answer;
  const taken = await takeIn(
    parts,
    { reading, answeredMs, atHead: false, sinceMs: sweep.sinceMs },
    { run, draft },
  );
  if (taken === null) return answered(DOUBTED_AGAIN, observedOf(parts, start, draft, null));
  if (status === null) noteOrder(draft, { taken, nowMs: start.nowMs });
  const isPartial = sweep.isPartial || reading.unreadable.length > 0;
  if (isPartial && !sweep.isPartial) await parts.stores.sweeps.notePartial(sweep);
  const isOver = reading.nextCursor === null || (scope === 'new' && !taken.allMoved);
  if (!isOver) {
    const acceptedMs = Math.max(sweep.acceptedMs, start.nowMs - sweep.movedAtMs);
    const from = { page, cursor: reading.nextCursor ?? '', limit, nowMs: start.nowMs, acceptedMs };
    const goesOn =
      (await parts.stores.sweeps.isPresent(sweep)) && (await parts.stores.sweeps.next(sweep, from));
    if (goesOn && sweep.isHurried) await parts.stores.sweeps.keepTurn(sweep);
    if (goesOn) return answered(nextPage(sweep), observedOf(parts, start, draft, taken));
    await breakSweep(parts, sweep, start.nowMs);
    return answered(null, observedOf(parts, start, draft, taken));
  }
  await parts.stores.sweeps.end(sweep);
  const beganMs = Number(sweep.id);
  if (scope === 'all') {
    await noteSwept(parts, { start, draft }, { sweptAtMs: beganMs, pages: page });
    if (!isPartial) draft.facts.readAtMs = beganMs - TAKEN_EVERY_MS;
  }
  if (status !== null) await recheckThoseThatLeft(parts, { draft, status, sinceMs: beganMs });
  return answered(null, observedOf(parts, start, draft, taken));
}

/** A poll of which the answer was beyond its limits, with what it has found out so far. */
type OversizedPoll = { start: PollStart; draft: Draft };

/** Has the first page of a listing requested again with a smaller limit; or, where that was 1, reports its record. */
async function shrinkListing(
  parts: PollContext,
  { start, draft }: OversizedPoll,
  { listing, limit, tooLarge }: { listing: Listing; limit: number; tooLarge: TooLarge },
): Promise<Polled> {
  const { subject: wallet, facts, nowMs, virtual } = start;
  const state = afterTooLarge(limit, nowMs);
  noteLimit(draft, listing, state);
  if (state.limit === 0) {
    draft.facts[`polled:${listing}`] = nowMs + BLOCKED_MS;
    draft.facts[`virtual:${listing}`] = virtual;
    await reportTooLarge(parts, wallet, tooLarge);
    if (listing === 'head') await readByStatus(parts, start);
  }
  const after = { facts: withNoted(facts, draft.facts), open: [...draft.open.values()] };
  return answered(nextListing(parts.learning.model, start, after), observedOf(parts, start, draft, null));
}

/**
 * Has the page of a sweep requested again with a smaller limit. Where that was 1, its record is reported, and the sweep
 * cannot go on: no answer says where the next page is.
 */
async function shrinkSweep(
  parts: PollContext,
  { start, draft }: OversizedPoll,
  { sweep, tooLarge }: { sweep: SweepPage; tooLarge: TooLarge },
): Promise<Polled> {
  const { sweeps } = parts.stores;
  const { nowMs } = start;
  if (sweep.limit > 1) {
    await sweeps.shrink(sweep, nowMs);
    return answered(PAGE_AT_ONCE, observedOf(parts, start, draft, null));
  }
  await reportTooLarge(parts, sweep.wallet, tooLarge);
  await sweeps.end(sweep, 'blocked');
  // It counts as read, or it would be read up to this record again and again.
  if (sweep.scope === 'all') {
    await noteSwept(parts, { start, draft }, { sweptAtMs: Number(sweep.id), pages: sweep.page + 1 });
    await readByStatus(parts, start);
  }
  if (sweep.scope === 'new') draft.facts.missedAtMs = nowMs;
  return answered(null, observedOf(parts, start, draft, null));
}

/** Reads what a wallet has in each status, where the listing of all its transfers cannot be read to its end. */
async function readByStatus(parts: PollContext, start: PollStart): Promise<void> {
  const {
    stores: { sweeps },
    rules,
  } = parts;
  const { subject: wallet, facts, nowMs } = start;
  if (!narrowsPages(facts, nowMs)) return;
  const everyMs = (pages: number): number =>
    sweepEveryMs({ leastMs: rules.fullSweepEveryMs, pages, newestFirst: false });
  for (const scope of INSTEAD_OF_ALL) {
    if (!(await sweeps.mayBegin({ wallet, scope }, nowMs, { everyMs }))) continue;
    const isHurried = (await paceOfSweep(parts, start, scope)) === 'hurried';
    const from = { cursor: null, limit: PAGE_LIMIT, nowMs, sinceMs: nowMs, isHurried };
    await sweeps.begin({ wallet, scope }, from);
  }
}

function noteLimit(draft: Draft, listing: Listing, state: PageLimit | null): void {
  if (state === null) return;
  draft.facts[`limit:${listing}`] = state.limit;
  draft.facts[`limitAt:${listing}`] = state.atMs;
}

/** Notes that all pages of a wallet were read. */
async function noteSwept(
  { stores: { wallets } }: PollContext,
  { start: { subject, facts }, draft }: { start: PollStart; draft: Draft },
  swept: { sweptAtMs: number; pages: number },
): Promise<void> {
  Object.assign(draft.facts, swept);
  if (facts.sweptAtMs === 0) await wallets.noteSwept(subject);
}

/** Ends a sweep that cannot go on. What it was to read is left to the next of its kind, and new transfers to a full sweep. */
async function breakSweep(
  { stores: { sweeps, wallets } }: PollContext,
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

/** Requests a page. Returns how it was too large where it was beyond its limits. */
async function readPage(
  parts: PollContext,
  { wallet, ...page }: Page,
  run: Run,
): Promise<ReadPage | TooLarge> {
  const address = wallet.slice('wallet:'.length);
  const askedAt = performance.now();
  const reading = await pollWallet(parts.client, { address, ...page }, run.signal).catch((error: unknown) => {
    if (error instanceof UpstreamFailure && error.tooLarge !== null) return error.tooLarge;
    throw error;
  });
  if ('found' in reading) return reading;
  reportUnreadable(parts, wallet, reading);
  return { reading, answeredMs: run.start.nowMs + Math.round(performance.now() - askedAt) };
}

/** Takes in what a page shows, and notes it. */
async function takeIn(
  parts: PollContext,
  page: { reading: Reading; answeredMs: number; atHead: boolean; sinceMs: number },
  { run, draft }: { run: Run; draft: Draft },
): Promise<PageTaken | null> {
  const { start } = run;
  const { atHead, ...read } = page;
  const taken = await takePage(parts, { ...read, start });
  if (taken === null) return null;
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
function fingerprint(reading: Reading, { claims, subscribedAt }: PollStart): string {
  const raw = JSON.stringify([
    reading.records.map((record) => record.raw),
    reading.nextCursor,
    reading.unreadable.length,
    claims.map(({ root, atMs }) => [root, atMs, subscribedAt.get(root) ?? '']),
  ]);
  return hash('sha256', raw).slice(0, 32);
}

/** True when an answer says just what the one before it said, of which nothing was new. */
function saysTheSame(
  facts: WalletFacts,
  answer: { listing: Listing; print: string; nowMs: number },
): boolean {
  const { listing, print, nowMs } = answer;
  const takenMs = nowMs - (facts.takenAtMs[listing] ?? 0);
  return facts.same[listing] === print && takenMs >= 0 && takenMs < TAKEN_EVERY_MS;
}

/** True when something else has shown a transfer since that belongs to a listing of one status: it has to tell where that is. */
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
  parts: PollContext,
  head: { start: PollStart; reading: Reading; limit: number; taken: PageTaken | null; draft: Draft },
): Promise<void> {
  const { start, taken, reading, limit, draft } = head;
  const { subject: wallet, facts, nowMs } = start;
  const isPartial = reading.unreadable.length > 0;
  if (taken !== null) noteOrder(draft, { taken, nowMs });
  if (reading.nextCursor === null) {
    await noteSwept(parts, head, { sweptAtMs: nowMs, pages: 1 });
    if (!isPartial) draft.facts.readAtMs = nowMs - TAKEN_EVERY_MS;
    return;
  }
  if (facts.sweptAtMs === 0) await parts.stores.wallets.noteUnswept(wallet, 'reading');
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
    const pace = scope === 'all' ? await paceOfSweep(parts, start, scope) : 'patient';
    const from = {
      cursor,
      limit,
      nowMs,
      sinceMs: facts.headAnsweredAtMs,
      isHurried: pace === 'hurried',
      isPartial,
    };
    if (pace !== null) return parts.stores.sweeps.begin({ wallet, scope }, from);
  }
  // The sweep that is under way began at an earlier head: it does not read what lies between that one and this.
  if (allMoved) draft.facts.missedAtMs = nowMs;
}

function noteArrivals(
  parts: PollContext,
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
  parts: PollContext,
  first: { listing: Listing; start: PollStart; reading: Reading; limit: number; draft: Draft },
): Promise<void> {
  const { listing, start, reading, limit, draft } = first;
  const { subject: wallet, nowMs } = start;
  // By what the page says and not by what is known: a page that is a moment behind has been narrowed all the same.
  const strange = reading.records.filter(({ status }) => status.toLowerCase() !== listing).length;
  if (strange > reading.records.length / 2) {
    draft.facts.unnarrowedAtMs = nowMs;
    return;
  }
  if (reading.nextCursor === null) {
    return recheckThoseThatLeft(parts, { draft, status: listing, sinceMs: nowMs });
  }
  if (!(await parts.stores.sweeps.mayBegin({ wallet, scope: listing }, nowMs))) return;
  await parts.stores.sweeps.begin(
    { wallet, scope: listing },
    { cursor: reading.nextCursor, limit, nowMs, sinceMs: nowMs },
  );
}

/** A transfer that was in a status, and is not listed there since a moment, has most likely moved on. */
async function recheckThoseThatLeft(
  parts: PollContext,
  { draft, status: listed, sinceMs }: { draft: Draft; status: string; sinceMs: number },
): Promise<void> {
  const left = [...draft.open.values()].filter(
    ({ status, seenAtMs }) => status === listed && seenAtMs < sinceMs,
  );
  if (left.length > 0) await parts.stores.plan.recheck(left.map(({ subject }) => subject));
}

function observedOf(
  { learning: { model } }: PollContext,
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
