import { PAGE_LIMIT } from '../../domain/cadence/pages.ts';
import type { OpenTransfer } from '../../domain/cadence/wallet.ts';
import type { PollStart } from '../../store/poll-start.ts';
import type { PollContext } from './poll-context.ts';
import { scopeAfter } from './sweeps.ts';
import { narrowsPages, type PollFindings } from './wallet-plan.ts';

/** A status, and the time (Redis time, ms) since which all its pages were read: they no longer show what was not seen since. */
export type ListingRead = { status: string; sinceMs: number };

/** A page of the next status is worth its request if it shows as many transfers that left as two requests for one each. */
export const WORTH_A_PAGE = 2;

/** Seconds of the budget that the polls of single transfers that left may take at the end of each reading of a listing. */
export const SINGLE_SECONDS = 1;

/** Most transfers of which these are chosen: failing ones among them take no place of others. */
const MOST_CANDIDATES = 1_000;

/** Finds a wallet's transfers that the pages of their status no longer show: most likely they have moved on. Longest unseen first. */
export function thoseThatLeft(
  { open }: { open: ReadonlyMap<string, OpenTransfer> },
  { status: listed, sinceMs }: ListingRead,
): OpenTransfer[] {
  return [...open.values()]
    .filter(({ status, seenAtMs }) => status === listed && seenAtMs < sinceMs)
    .sort((one, other) => one.seenAtMs - other.seenAtMs);
}

/** Finds the new states of transfers that left a listing: several by the pages of the next status, and one by a poll of its own. */
export async function followThoseThatLeft(
  deps: PollContext,
  { start, findings }: { start: PollStart; findings: PollFindings },
  read: ListingRead,
): Promise<void> {
  const { subject: wallet, facts, nowMs } = start;
  const { sweeps } = deps.stores;
  const left = thoseThatLeft(findings, read);
  const scope = scopeAfter(read.status);
  if (left.length >= WORTH_A_PAGE && scope !== null && narrowsPages(facts, nowMs)) {
    const state = await sweeps.state({ wallet, scope }, nowMs);
    // It ends with polls of those that it has not shown.
    if (state === 'running') return;
    if (state === 'free') {
      const from = { cursor: null, limit: PAGE_LIMIT, nowMs, sinceMs: read.sinceMs };
      return sweeps.begin({ wallet, scope }, from);
    }
  }
  await pollThoseThatLeft(deps, left);
}

/**
 * Requests polls of single transfers that left a listing, as many as a second of the budget has requests. The next reading of the
 * listing finds the others: hundreds of requests at once would delay all other polls.
 */
export async function pollThoseThatLeft(
  { stores: { plan }, rules }: PollContext,
  left: readonly OpenTransfer[],
): Promise<void> {
  const candidates = left.slice(0, MOST_CANDIDATES).map(({ subject }) => subject);
  if (candidates.length > 0)
    await plan.recheck(candidates, Math.ceil(SINGLE_SECONDS * rules.requestsPerSecond));
}
