import type { PlannedPoll } from '../../domain/cadence/next-poll.ts';
import { PAGE_LIMIT, type PageLimit } from '../../domain/cadence/pages.ts';
import type { Listing } from '../../domain/cadence/wait.ts';
import { type OpenTransfer, type ShownTransfer, sweepEveryMs } from '../../domain/cadence/wallet.ts';
import { coveredWait } from '../../domain/cadence/watched.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import { type EarlierPage, pollWallet, type WalletPage } from '../../pollers/status.ts';
import { isOpenChanged, type PageFacts } from '../../store/observed.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { type NotedFacts, openText } from '../../store/wallets.ts';
import { type TooLarge, UpstreamFailure } from '../../upstream/client/failure.ts';
import { type IngestedPage, ingestPage, reportUnreadable } from './ingest-page.ts';
import type { PollContext } from './poll-context.ts';
import { AT_ONCE } from './polled.ts';
import { INGESTED_EVERY_MS } from './seen-pages.ts';
import { INSTEAD_OF_ALL } from './sweeps.ts';
import { coverMs, narrowsPages, paceOfSweep } from './wallet-plan.ts';

const FORGOTTEN_AFTER_MS = 3_600_000;

/** Largest age of the last ingestion of a record that a page showed just now: that of its text, and then of the page. */
export const TAKEN_EVERY_MS = 2 * INGESTED_EVERY_MS;

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
  const isFresh = ({ seenAtMs }: OpenTransfer): boolean => nowMs - seenAtMs < FORGOTTEN_AFTER_MS;
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

/** Polls the transfers that a listing of one status no longer shows since `sinceMs`: most likely they have moved on. */
export async function recheckThoseThatLeft(
  deps: PollContext,
  { findings, status: listed, sinceMs }: { findings: PollFindings; status: string; sinceMs: number },
): Promise<void> {
  const left = [...findings.open.values()].filter(
    ({ status, seenAtMs }) => status === listed && seenAtMs < sinceMs,
  );
  if (left.length > 0) await deps.stores.plan.recheck(left.map(({ subject }) => subject));
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
