import { arrivalsPerSecond } from '../../domain/cadence/arrivals.ts';
import type { PlannedPoll } from '../../domain/cadence/next-poll.ts';
import {
  isBlocked,
  isHurried,
  mostHurried,
  neededRate,
  PAGE_LIMIT,
  type PageLimit,
} from '../../domain/cadence/pages.ts';
import { LISTINGS, type Listing } from '../../domain/cadence/wait.ts';
import {
  type OpenTransfer,
  planWallet,
  type ShownTransfer,
  sweepEveryMs,
  type WalletPlan,
} from '../../domain/cadence/wallet.ts';
import { type CadenceModel, coveredWait } from '../../domain/cadence/watched.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import { type EarlierPage, pollWallet, type WalletPage } from '../../pollers/status.ts';
import { isOpenChanged, type PageFacts } from '../../store/observed.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { type NotedFacts, openText, type WalletFacts } from '../../store/wallets.ts';
import { type TooLarge, UpstreamFailure } from '../../upstream/client/failure.ts';
import { type IngestedPage, ingestPage, reportUnreadable } from './ingest-page.ts';
import type { PollContext } from './poll-context.ts';
import { AT_ONCE } from './poll-ends.ts';
import { INGESTED_EVERY_MS } from './seen-pages.ts';
import { INSTEAD_OF_ALL, isFull, type SweepPage, type SweepScope } from './sweeps.ts';

/** Time for which an observation about an upstream's pages that costs requests is trusted. */
const BELIEVED_MS = 3_600_000;

/** Time after which the next page of a full sweep is worth its request at a price of 1, and time after which it is overdue. */
const SWEEP_SECONDS = 10;
const SWEEP_LATEST_MS = 120_000;

/** Time, and rounds over all wallets, for which a transfer that pages show is not polled by itself. */
const COVER_MS = 30_000;
const COVER_ROUNDS = 3;

export function coverMs({ roundSeconds }: PlanTime): number {
  return Math.max(COVER_MS, 1_000 * COVER_ROUNDS * roundSeconds);
}

/** The time of a poll for its plan: Redis time, and the plan's virtual time and price. */
export type PlanTime = { nowMs: number; virtual: number; price: number; roundSeconds: number };

type WalletState = { facts: WalletFacts; open: readonly OpenTransfer[] };

/** Plans a wallet's next request from its known state, and names the listing in which new transfers appear (`finder`). */
export function planListing(
  model: CadenceModel,
  { nowMs, virtual, price, roundSeconds, fromMs = nowMs }: PlanTime & { fromMs?: number },
  { facts, open }: WalletState,
): { plan: WalletPlan; finder: Listing } {
  const narrows = narrowsPages(facts, nowMs);
  const headFinds =
    !isBlocked(facts.limits.head, nowMs) && (facts.pages === 1 || comesNewestFirst(facts, nowMs));
  const plan = planWallet({
    open,
    polled: facts.polled,
    headIngestedAtMs: facts.ingestedAtMs.head ?? 0,
    nowMs,
    fromMs,
    virtual,
    price,
    roundSeconds,
    narrows,
    headFinds,
    arrivalsPerSecond: arrivalsPerSecond(facts.arrivals, { usualPerSecond: model.usualArrivals, nowMs }),
    model,
  });
  return { plan, finder: headFinds || !narrows ? 'head' : 'pending' };
}

/**
 * The listing that a poll requests: the one that is due first. A probe requests the one that was never polled, or the longest
 * ago. While the endpoint group counts as down the plan's clock stops, and one failing listing would be all that is requested.
 */
export function listingOf({ lane, facts }: PollStart, plan: WalletPlan): Listing {
  if (lane !== 'probe') return plan.listing;
  const polledMs = (listing: Listing): number => facts.polled[listing]?.atMs ?? 0;
  const polled = LISTINGS.filter((listing) => listing === plan.listing || polledMs(listing) > 0);
  return polled.toSorted((one, other) => polledMs(one) - polledMs(other))[0] ?? plan.listing;
}

/** Most polls of a wallet per round over all, where that takes seconds: more gain less than the others lose. */
const LISTINGS_A_ROUND = 4;
const MOST_AHEAD_SECONDS = 10;

/** Plans the next poll of a wallet that was just polled. */
export function nextListing(model: CadenceModel, context: PlanTime, stored: WalletState): PlannedPoll {
  const ahead = Math.min(MOST_AHEAD_SECONDS, context.roundSeconds / LISTINGS_A_ROUND);
  const fromMs = context.nowMs + 1_000 * Math.max(model.arrivals.limits.leastSeconds, ahead);
  return planListing(model, { ...context, fromMs }, stored).plan;
}

/** The facts with the findings of this poll, as the next poll will read them. */
export function withNoted(facts: WalletFacts, noted: NotedFacts): WalletFacts {
  const number = (fact: keyof NotedFacts, fallback: number): number => Number(noted[fact] ?? fallback);
  const polled = { ...facts.polled };
  const ingestedAtMs = { ...facts.ingestedAtMs };
  const limits: { [listing in Listing]?: PageLimit } = { ...facts.limits };
  for (const listing of LISTINGS) {
    const atMs = noted[`polled:${listing}`];
    if (atMs !== undefined)
      polled[listing] = { atMs: Number(atMs), virtual: Number(noted[`virtual:${listing}`] ?? 0) };
    const ingestedAt = noted[`ingested:${listing}`];
    if (ingestedAt !== undefined) ingestedAtMs[listing] = Number(ingestedAt);
    const limit = noted[`limit:${listing}`];
    if (limit !== undefined)
      limits[listing] = { limit: Number(limit), atMs: Number(noted[`limitAt:${listing}`] ?? 0) };
  }
  return {
    ...facts,
    polled,
    ingestedAtMs,
    limits,
    sweptAtMs: number('sweptAtMs', facts.sweptAtMs),
    readAtMs: number('readAtMs', facts.readAtMs),
    pages: number('pages', facts.pages),
    orderAtMs: number('orderAtMs', facts.orderAtMs),
    disorderAtMs: number('disorderAtMs', facts.disorderAtMs),
    unnarrowedAtMs: number('unnarrowedAtMs', facts.unnarrowedAtMs),
    headAnsweredAtMs: number('headAnsweredAtMs', facts.headAnsweredAtMs),
    arrivals: {
      seen: number('arrivals:seen', facts.arrivals.seen),
      watchedSeconds: number('arrivals:watchedSeconds', facts.arrivals.watchedSeconds),
      atMs: number('arrivals:atMs', facts.arrivals.atMs),
    },
  };
}

/** True when new transfers come first: it was observed, and nothing contradicted it recently. */
export function comesNewestFirst({ orderAtMs, disorderAtMs }: WalletFacts, nowMs: number): boolean {
  return orderAtMs > 0 && nowMs - disorderAtMs > BELIEVED_MS;
}

/** Plans a sweep's next page. In a full sweep it waits its turn, unless hurried; the others are about recent changes. */
export function nextPage({ scope, isHurried }: { scope: SweepScope; isHurried: boolean }): PlannedPoll {
  return isFull(scope) && !isHurried
    ? { virtualSeconds: SWEEP_SECONDS, restMs: 0, latestMs: SWEEP_LATEST_MS, alarmMs: null, unseen: false }
    : PAGE_AT_ONCE;
}

/** A page that is requested as soon as there is a slot for it. */
export const PAGE_AT_ONCE: PlannedPoll = {
  virtualSeconds: 0,
  restMs: 0,
  latestMs: SWEEP_LATEST_MS,
  alarmMs: 0,
  unseen: false,
};

/** True when the upstream narrows pages to a status, as far as is known. */
export function narrowsPages({ unnarrowedAtMs }: WalletFacts, nowMs: number): boolean {
  return nowMs - unnarrowedAtMs > BELIEVED_MS;
}

/**
 * The pace of a due full sweep of a wallet: each page in its turn, or back to back where a cursor of the wallet has expired.
 * Null where it is to be hurried and has no turn yet: it begins at a later poll.
 */
export async function paceOfSweep(
  { stores: { sweeps }, rules }: PollContext,
  { subject: wallet, facts, nowMs }: PollStart,
  scope: SweepScope,
): Promise<'patient' | 'hurried' | null> {
  if (!isHurried(facts, nowMs)) return 'patient';
  const most = mostHurried(facts, rules.requestsPerSecond);
  return (await sweeps.acquireTurn({ wallet, scope }, most)) ? 'hurried' : null;
}

/** Notes a refused cursor: the wallet's next sweep is hurried. If this one was, reports the rate it needs if over budget. */
export async function noteDeadCursor(deps: PollContext, sweep: SweepPage, start: PollStart): Promise<void> {
  const { stores, rules, log } = deps;
  const { wallet, page, isHurried: wasHurried } = sweep;
  const { facts, nowMs } = start;
  const ageMs = Math.max(0, nowMs - sweep.movedAtMs);
  await stores.wallets.note(wallet, { cursorDiedAtMs: nowMs, cursorDiedAfterMs: ageMs });
  if (facts.sweptAtMs === 0 && sweep.scope === 'all') await stores.wallets.noteUnswept(wallet, 'broken');
  log.info({ subject: wallet, page, ageMs, hurried: wasHurried }, 'sweep.cursor_expired');
  if (!wasHurried) return;
  const needed = neededRate({
    ageMs,
    sweepAgeMs: sweep.movedAtMs - Number(sweep.id),
    acceptedMs: sweep.acceptedMs,
    pages: Math.max(page, facts.pages),
  });
  if (needed.requestsPerSecond > rules.requestsPerSecond) await report(deps, wallet, needed);
}

async function report(
  { stores: { health }, rules, signals, log }: PollContext,
  wallet: SubjectId,
  { requestsPerSecond: neededRequestsPerSecond, ...seen }: ReturnType<typeof neededRate>,
): Promise<void> {
  const { requestsPerSecond } = rules;
  const record = { wallet, ...seen, requestsPerSecond, neededRequestsPerSecond };
  if (!(await health.reportExpiredCursor('status', record))) return;
  signals.emit('cursor.expired', { wallet, neededRequestsPerSecond });
  log.error(record, 'upstream.cursor_expired');
}

const STALE_AFTER_MS = 3_600_000;

/** Largest age of the last ingestion of a record that a page showed just now: that of its text, and then of the page. */
export const READ_EVERY_MS = 2 * INGESTED_EVERY_MS;

type PageRequest = {
  wallet: SubjectId;
  status: string | null;
  cursor: string | null;
  limit: number;
  earlier: EarlierPage | null;
};

/** A page with the time of its answer (`answeredMs`, Redis time). */
type ReadPage = { response: WalletPage; answeredMs: number };

export type Run = { start: PollStart; signal: AbortSignal };

/** Findings of the poll so far, which are noted with its end. */
export type PollFindings = {
  facts: NotedFacts;
  open: Map<string, OpenTransfer>;
  ended: string[];
  shown: string[];
};

/** Next read of a page for which history is not known yet: more responses show the upstream's time. */
export const DOUBTED_AGAIN: PlannedPoll = { ...AT_ONCE, restMs: 2_000, latestMs: 10_000 };

/** A poll whose answer was beyond its limits, with its findings so far. */
export type OversizedPoll = { start: PollStart; findings: PollFindings };

/** Begins a sweep of a wallet in each status, where the listing of all its transfers cannot be read to its end. */
export async function readByStatus(deps: PollContext, start: PollStart): Promise<void> {
  const {
    stores: { sweeps },
    rules,
  } = deps;
  const { subject: wallet, facts, nowMs } = start;
  if (!narrowsPages(facts, nowMs)) return;
  const everyMs = (pages: number): number =>
    sweepEveryMs({ leastMs: rules.fullSweepEveryMs, pages, newestFirst: false });
  for (const scope of INSTEAD_OF_ALL) {
    if (!(await sweeps.mayBegin({ wallet, scope }, nowMs, { everyMs }))) continue;
    const isHurried = (await paceOfSweep(deps, start, scope)) === 'hurried';
    const from = { cursor: null, limit: PAGE_LIMIT, nowMs, sinceMs: nowMs, isHurried };
    await sweeps.begin({ wallet, scope }, from);
  }
}

export function noteLimit(findings: PollFindings, listing: Listing, state: PageLimit | null): void {
  if (state === null) return;
  findings.facts[`limit:${listing}`] = state.limit;
  findings.facts[`limitAt:${listing}`] = state.atMs;
}

/** Notes that all pages of a wallet were read. */
export async function noteSwept(
  { stores: { wallets } }: PollContext,
  { start: { subject, facts }, findings }: { start: PollStart; findings: PollFindings },
  swept: { sweptAtMs: number; pages: number },
): Promise<void> {
  Object.assign(findings.facts, swept);
  if (facts.sweptAtMs === 0) await wallets.noteSwept(subject);
}

export function openFindings({ open: { transfers: open }, nowMs }: PollStart): PollFindings {
  const isFresh = ({ seenAtMs }: OpenTransfer): boolean => nowMs - seenAtMs < STALE_AFTER_MS;
  return {
    facts: {},
    open: new Map(open.filter(isFresh).map((transfer) => [transfer.subject, transfer])),
    ended: open.filter((transfer) => !isFresh(transfer)).map(({ subject }) => subject),
    shown: [],
  };
}

/** Requests a page. Returns the size fault instead where the answer was beyond its limits. */
export async function readPage(
  deps: PollContext,
  { wallet, ...page }: PageRequest,
  run: Run,
): Promise<ReadPage | TooLarge> {
  const address = wallet.slice('wallet:'.length);
  const requestedAt = performance.now();
  const response = await pollWallet(deps.client, { address, ...page }, run.signal).catch((error: unknown) => {
    if (error instanceof UpstreamFailure && error.tooLarge !== null) return error.tooLarge;
    throw error;
  });
  if ('found' in response) return response;
  reportUnreadable(deps, wallet, response);
  return { response, answeredMs: run.start.nowMs + Math.round(performance.now() - requestedAt) };
}

/** Ingests a page, and notes its transfers. Returns null for a page that waits. */
export async function ingest(
  deps: PollContext,
  page: {
    response: WalletPage;
    answeredMs: number;
    atHead: boolean;
    sinceMs: number;
    polledMs: number | null;
  },
  { run, findings }: { run: Run; findings: PollFindings },
): Promise<IngestedPage | null> {
  const { start } = run;
  const { atHead, ...read } = page;
  const ingested = await ingestPage(deps, { ...read, start, open: findings.open });
  if (ingested === null) return null;
  for (const transfer of ingested.open) {
    const headAtMs = atHead ? start.nowMs : (findings.open.get(transfer.subject)?.headAtMs ?? null);
    findings.open.set(transfer.subject, { ...transfer, headAtMs });
    findings.shown.push(transfer.subject);
  }
  for (const subject of ingested.ended) {
    findings.open.delete(subject);
    findings.ended.push(subject);
  }
  return ingested;
}

/** Notes the order in which a page lists transfers, where it is evident. */
export function noteOrder(
  findings: PollFindings,
  { ingested, nowMs }: { ingested: IngestedPage; nowMs: number },
): void {
  if (ingested.order === 'newest-first') findings.facts.orderAtMs = nowMs;
  if (ingested.order === 'other') findings.facts.disorderAtMs = nowMs;
}

export function observedOf(
  { learning: { model } }: PollContext,
  start: PollStart,
  findings: PollFindings,
  ingested: IngestedPage | null,
): PageFacts {
  const { nowMs, facts } = start;
  const { open = [], unread = [], moves = 0 } = ingested ?? {};
  const isUnread = new Set(unread);
  const textsOf = (transfers: readonly ShownTransfer[]): PageFacts['open'] =>
    Object.fromEntries(
      transfers.flatMap(({ subject }) => {
        const transfer = findings.open.get(subject);
        return transfer === undefined ? [] : [[subject, openText(transfer)]];
      }),
    );
  const transfers = {
    open: textsOf(open.filter(({ subject }) => !isUnread.has(subject))),
    unread: {
      open: textsOf(open.filter(({ subject }) => isUnread.has(subject))),
      moves: facts.moves + moves,
    },
    ended: findings.ended,
  };
  return {
    ...transfers,
    ...(isOpenChanged(transfers) ? { after: afterOf(start, findings) } : {}),
    facts: Object.fromEntries(
      Object.entries(findings.facts).flatMap(([fact, value]) => (value === undefined ? [] : [[fact, value]])),
    ),
    shown: findings.shown,
    covered:
      ingested?.covered ??
      findings.shown.flatMap((subject) => {
        const transfer = findings.open.get(subject);
        if (transfer === undefined) return [];
        return [{ subject, alarmMs: null, ...coveredWait(transfer, { nowMs, model }) }];
      }),
    coverMs: coverMs(start),
  };
}

/** The open transfers after a poll that changes them: the token of a started poll is never given again. */
function afterOf({ token, open }: PollStart, findings: PollFindings): NonNullable<PageFacts['after']> {
  return { before: open.version, version: token, transfers: [...findings.open.values()] };
}
