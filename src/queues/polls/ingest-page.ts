import { endsByConfig, stageSinceMs } from '../../domain/cadence/next-poll.ts';
import { type FurtherPoll, nextForMore } from '../../domain/cadence/pages.ts';
import { type OpenTransfer, type Order, orderOf, type ShownTransfer } from '../../domain/cadence/wallet.ts';
import { coveredWait } from '../../domain/cadence/watched.ts';
import { claimsOnExpired, isExpired, mayBeExpired, type WalletRead } from '../../domain/changes/decision.ts';
import { isPollable } from '../../domain/subjects/kinds.ts';
import type { Snapshot, UpstreamRecord } from '../../domain/subjects/record.ts';
import { type SubjectId, subjectKind } from '../../domain/subjects/subject.ts';
import { type Claim, parseClaimKey } from '../../domain/subjects/subscription.ts';
import { routeName } from '../../domain/transfers/transfer.ts';
import { itsTurn } from '../../event-loop.ts';
import type { PollResponse } from '../../pollers/poll-response.ts';
import type { WalletPage } from '../../pollers/status.ts';
import { reportError } from '../../signals.ts';
import { readConfirmedTime } from '../../store/confirmed-time.ts';
import type { PageFacts } from '../../store/observed.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { type SubjectEntry, UNSEEN_SUBJECT } from '../../store/subjects.ts';
import { commitRecord, type IngestedRecord } from './commit-record.ts';
import { planOf } from './plan-subject.ts';
import type { PollContext } from './poll-context.ts';

/**
 * Result of a wallet page: the transfers under way and the ended ones, their order, and whether each is new to this wallet's
 * pages or changed since its head was last ingested (`allMoved`): then more of that kind may follow. `arrived` counts transfers
 * that are new and no history. `covered` need no polls of their own as long as pages show them. `settled`: the subjects whose
 * records would change nothing if they came again; `isSettled`: so it is with all of them. `moves`: commits that were counted
 * with the wallet. `unread`: those of `open` that were not read, since they are as they were before the request.
 */
export type IngestedPage = {
  open: ShownTransfer[];
  ended: SubjectId[];
  order: Order;
  allMoved: boolean;
  arrived: number;
  covered: PageFacts['covered'][number][];
  settled: ReadonlySet<SubjectId>;
  isSettled: boolean;
  moves: number;
  unread: SubjectId[];
};

/**
 * A page, the time of its answer (Redis time, ms), the state before its request, the time after which changes are new, the
 * wallet's open transfers, and the time of the last poll of its listing.
 */
type Page = {
  response: WalletPage;
  answeredMs: number;
  start: PollStart;
  sinceMs: number;
  open: ReadonlyMap<string, OpenTransfer>;
  polledMs: number | null;
};

/** The start of a subscription that later responses no longer change, see commands/resolve-subscription-start-2.lua. */
const SETTLED = /^(\d+):(-?\d+)$/;

/** Ingests a wallet page's records under its subscribers' claims. Null for a page that waits: its history is not known yet. */
export async function ingestPage(deps: PollContext, page: Page): Promise<IngestedPage | null> {
  const { response, start } = page;
  const watching = await pageClaims(deps, page);
  const { once: shown, again } = separate(response.results);
  const once = shown.flatMap(({ record }) => record ?? []);
  const mustRead = watching.some(({ isDoubtful }) => isDoubtful);
  const before = await statesOf(deps, once, { page, mustRead });
  if (
    before.some(({ claims: served }) =>
      watching.some((one) => one.isDoubtful && !isServed(served, one.claim)),
    )
  )
    return null;
  const claims = watching.map(({ claim }) => claim);
  const results = await commitAll(deps, page, { records: once, states: before, claims });
  const outdated = results.flatMap((result, index) =>
    result.status === 'fulfilled' && result.value.outcome === 'outdated' ? index : [],
  );
  if (outdated.length > 0) {
    const records = outdated.flatMap((index) => once[index] ?? []);
    const states = await deps.stores.subjects.readEach(records.map(({ subject }) => subject));
    const committed = await commitAll(deps, page, { records, states, claims });
    for (const [index, result] of committed.entries()) results[outdated[index] ?? -1] = result;
  }
  const states = results.map((result, index) =>
    result.status === 'fulfilled' ? result.value.before : (before[index] ?? UNSEEN_SUBJECT),
  );
  // A record that cannot be ingested must not hold up the other records of its page.
  results.forEach((result, index) => {
    if (result.status === 'fulfilled') return;
    reportError(deps, 'record.not_stored', { subject: once[index]?.subject, error: result.reason });
  });
  const behind = once.filter((_, index) => {
    const result = results[index];
    return result?.status === 'fulfilled' && result.value.outcome === 'stale';
  });
  const requested = [...new Set([...behind.map(({ subject }) => subject), ...again])].filter(isPollable);
  if (requested.length > 0) await deps.stores.plan.recheck(requested);

  const isNew = new Set(
    once.flatMap(({ subject }, at) => (states[at]?.snapshot === null && !states[at].fault ? subject : [])),
  );
  // A transfer between two watched wallets may be known through the other one, and is still new to this wallet's pages.
  const claimKeys = new Set(start.claims.map(({ key }) => key));
  const ingested: IngestedPage = {
    open: [],
    ended: [],
    order: orderOf(shown.map(({ subject, updatedAt }) => ({ updatedAt, isNew: isNew.has(subject) }))),
    allMoved:
      states.length > 0 &&
      states.length === shown.length &&
      states.every(({ claims, snapshot: before }, index) => {
        const result = results[index];
        const after = result?.status === 'fulfilled' ? result.value.snapshot : before;
        const isNewHere = !claims.some(({ key }) => claimKeys.has(key));
        return isNewHere || (after !== null && after.observedAtMs > page.sinceMs);
      }),
    arrived: results.filter((result) => result.status === 'fulfilled' && result.value.outcome === 'first')
      .length,
    covered: [],
    settled: new Set(
      once.flatMap(({ subject }, index) => {
        const result = results[index];
        const isSettled = result?.status === 'fulfilled' && result.value.isSettled;
        return isSettled && !again.includes(subject) ? subject : [];
      }),
    ),
    isSettled:
      again.length === 0 &&
      results.every((result) => result.status === 'fulfilled' && result.value.isSettled),
    // A wallet that was never polled has no facts yet in which commits count.
    moves: Object.keys(start.facts.polled).length === 0 ? 0 : results.filter(isCounted).length,
    unread: [],
  };
  const { nowMs } = start;
  const untracked: SubjectId[] = [];
  for (const [index, { subject }] of once.entries()) {
    const result = results[index];
    if (result?.status !== 'fulfilled' || result.value.snapshot === null || !isPollable(subject)) continue;
    const { snapshot, isCurrent, claims: others } = result.value;
    const { snapshot: before = null, seenAtMs = null } = states[index] ?? {};
    const plan = planOf(deps, { subject, snapshot, claims: others }, { ...start, imported: null });
    const { isOver, alarmMs } = plan;
    if (isOver) ingested.ended.push(subject);
    else ingested.open.push(openTransfer(subject, snapshot, nowMs));
    if (!isOver && before !== null && seenAtMs === null) untracked.push(subject);
    // A record that a page shows behind its time, or twice, was just requested: that request must stay.
    if (!isCurrent || again.includes(subject)) continue;
    if (isOver && seenAtMs !== null) await deps.stores.plan.untrackFinished(subject, snapshot.commit);
    if (!isOver && isCoveredByPages({ before, snapshot, claims: others })) {
      const stage = openTransfer(subject, snapshot, nowMs);
      const wait = coveredWait(stage, { nowMs, model: deps.learning.model });
      ingested.covered.push({ subject, alarmMs, ...wait });
    }
  }
  noteUnread(deps, { shown, again, ingested }, page);
  // Tracked again: its entry in the plan was lost, or its tracking had ended with a former status.
  if (untracked.length > 0) await deps.stores.plan.track(untracked);
  return ingested;
}

/** Time since its change for which a record that is not among the open transfers counts as new, to be refused by the commit. */
const NEW_MS = 120_000;

/**
 * Reads the states of records, as far as this process does not hold them from their last commit. It reads all where `mustRead`,
 * and where the page has another kind than transfers: its records name transfers, which a commit claims.
 */
async function statesOf(
  { stores: { subjects }, rules }: PollContext,
  records: readonly UpstreamRecord[],
  { page: { open, answeredMs }, mustRead }: { page: Page; mustRead: boolean },
): Promise<SubjectEntry[]> {
  const mayRecall = !mustRead && records.every(({ subject }) => subjectKind(subject) === 'intent');
  const recalled = records.map((record) => {
    if (!mayRecall) return null;
    const { subject, updatedAt } = record;
    const status = open.get(subject)?.status ?? null;
    const isRecent = updatedAt !== null && Math.abs(answeredMs - 1_000 * updatedAt) < NEW_MS;
    // One that may have been removed after its retention seems new, too.
    const mayBeNew = status === null && isRecent && !mayBeExpired(record, rules.finished);
    return subjects.recall(subject, { status, mayBeNew });
  });
  const unread = records.filter((_, index) => recalled[index] === null);
  const read = (await subjects.readEach(unread.map(({ subject }) => subject))).values();
  return recalled.map((state) => state ?? read.next().value ?? UNSEEN_SUBJECT);
}

/** Commits records by their states, in any order. */
async function commitAll(
  deps: PollContext,
  page: Page,
  {
    records,
    states,
    claims,
  }: { records: readonly UpstreamRecord[]; states: readonly SubjectEntry[]; claims: Claim[] },
): Promise<PromiseSettledResult<IngestedRecord & { isCurrent: boolean }>[]> {
  const { asOf, price } = page.start;
  const expired = await expiredAmong(deps, page, { records, states });
  return Promise.allSettled(
    records.map(async (record, index) => {
      const wallet = expired.has(record.subject) ? expired.wallet : null;
      // A page with one change waits for no other page.
      if (index > 0) await itsTurn();
      const committed = await commitRecord(deps, record, states[index] ?? UNSEEN_SUBJECT, {
        asOf,
        nowMs: page.answeredMs,
        price,
        // Of a kind that has no polls of its own, pages are all that can confirm a return.
        exact: !isPollable(record.subject),
        claims: wallet === null ? claims : claimsOnExpired(claims, wallet),
      });
      const { outcome } = committed;
      if (wallet !== null && outcome === 'history' && isExpired(record, { claims, wallet })) {
        deps.signals.emit('record.expired', { subject: record.subject });
        deps.log.info({ subject: record.subject, status: record.status }, 'record.expired');
      }
      return { ...committed, isCurrent: outcome !== 'stale' && outcome !== 'superseded' };
    }),
  );
}

function isCounted(result: PromiseSettledResult<IngestedRecord>): boolean {
  return result.status === 'fulfilled' && result.value.isCounted;
}

/** Notes the open transfers among the records that were not read, since they are as they were. */
function noteUnread(
  { learning }: PollContext,
  {
    shown,
    again,
    ingested,
  }: { shown: WalletPage['results']; again: readonly SubjectId[]; ingested: IngestedPage },
  { start: { nowMs }, open, polledMs }: Page,
): void {
  const { model } = learning;
  for (const { subject, record } of shown) {
    const transfer = record === null ? open.get(subject) : undefined;
    if (transfer === undefined) continue;
    learning.sawOpen(transfer, { fromMs: polledMs ?? nowMs, nowMs });
    ingested.open.push({ ...transfer, seenAtMs: nowMs });
    ingested.unread.push(subject);
    if (again.includes(subject)) continue;
    ingested.covered.push({ subject, alarmMs: null, ...coveredWait(transfer, { nowMs, model }) });
  }
}

/** True when pages spare a transfer polls of its own: not one that is named, awaits its first answer or is unconfirmed. */
function isCoveredByPages(shown: {
  before: Snapshot | null;
  snapshot: Snapshot;
  claims: readonly Claim[];
}): boolean {
  const { before, snapshot, claims } = shown;
  return (
    (before !== null || claims.length > 0) &&
    snapshot.unconfirmed === null &&
    (before?.unconfirmed ?? null) === null &&
    claims.every(({ key, served }) => served && parseClaimKey(key).subject.startsWith('wallet:'))
  );
}

/** Finds the unknown records of a page that may have been removed after their retention, and the known times of their wallet. */
async function expiredAmong(
  { redis, keys, rules }: PollContext,
  { start }: Page,
  { records, states }: { records: readonly UpstreamRecord[]; states: readonly SubjectEntry[] },
): Promise<{ has: (subject: SubjectId) => boolean; wallet: WalletRead | null }> {
  const found = records.filter(
    (record, index) => states[index]?.snapshot === null && mayBeExpired(record, rules.finished),
  );
  if (found.length === 0) return { has: () => false, wallet: null };
  const subjects = new Set(found.map(({ subject }) => subject));
  const { confirmedMs } = await readConfirmedTime(redis, keys);
  const wallet = { readAtMs: start.facts.readAtMs, confirmedMs, retentionMs: rules.retentionMs };
  return { has: (subject) => subjects.has(subject), wallet };
}

/** Builds the entry of a transfer that an answer has just shown. */
export function openTransfer(subject: SubjectId, snapshot: Snapshot, seenAtMs: number): ShownTransfer {
  const status = snapshot.status.toLowerCase();
  return { subject, status, route: routeName(snapshot.record), sinceMs: stageSinceMs(snapshot), seenAtMs };
}

/**
 * Splits records into the first of each subject and the subjects shown twice. An answer that shows a subject twice,
 * differently, does not show which is right: the first is ingested, and the subject is polled.
 */
export function separate<T extends { subject: SubjectId }>(
  records: readonly T[],
): { once: T[]; again: SubjectId[] } {
  const first = new Map<SubjectId, T>();
  const again: SubjectId[] = [];
  for (const record of records) {
    if (first.has(record.subject)) again.push(record.subject);
    else first.set(record.subject, record);
  }
  return { once: [...first.values()], again };
}

function isServed(claims: readonly Claim[], { key, atMs }: Claim): boolean {
  return claims.some((claim) => claim.served && claim.key === key && claim.atMs === atMs);
}

/** A claim on the records of a page; doubtful where it is not known yet which of them are history for it. */
type PageClaim = { claim: Claim; isDoubtful: boolean };

/** Reads the claims on a wallet's transfers. An `updatedAt` before the subscription is history, both on the upstream's clock. */
async function pageClaims({ stores: { registry }, log }: PollContext, page: Page): Promise<PageClaim[]> {
  const { response, start } = page;
  return Promise.all(
    start.claims.map(async (claim) => {
      const { subscription } = parseClaimKey(claim.key);
      if (start.subscriptions.get(subscription)?.history === 'emit') {
        return { claim: { ...claim, historyBefore: null, served: false }, isDoubtful: false };
      }
      const [, atMs, seconds] = SETTLED.exec(start.subscribedAt.get(claim.key) ?? '') ?? [];
      if (atMs === String(claim.atMs)) {
        return { claim: { ...claim, historyBefore: Number(seconds), served: false }, isDoubtful: false };
      }
      const { earliest, latest, news } = await registry.subscribedAt(claim, response.dateMs);
      if (news !== '') {
        const date = response.dateMs === null ? null : new Date(response.dateMs).toISOString();
        log.warn({ claimKey: claim.key, date, earliest, latest, news }, 'subscription.start');
      }
      return { claim: { ...claim, historyBefore: latest, served: false }, isDoubtful: earliest !== latest };
    }),
  );
}

const MOST_LOGGED = 10;
const ID_CHARS = 100;
const REASON_CHARS = 300;

/** Reports the unreadable parts of an answer, and its records of reserved kinds. */
export function reportUnreadable(
  { client, signals, log }: PollContext,
  subject: SubjectId,
  response: PollResponse,
): void {
  for (const [kind, [first, ...others]] of Map.groupBy(response.reserved ?? [], (record) => record.kind)) {
    const id = client.loggable(first?.id ?? '', ID_CHARS);
    signals.emit('record.reserved', { kind, id, count: others.length + 1 });
  }
  for (const [index, words] of response.unreadable.entries()) {
    const reason = client.loggable(words, REASON_CHARS);
    signals.emit('record.unreadable', { where: subject, reason });
    if (index < MOST_LOGGED) log.warn({ subject, reason }, 'record.unreadable');
  }
  const more = response.unreadable.length - MOST_LOGGED;
  if (more > 0) log.warn({ subject, reason: `${more} more` }, 'record.unreadable');
  for (const record of response.records) {
    for (const reason of unreadableMembers(record)) {
      signals.emit('record.unreadable', { where: subject, reason });
      log.debug({ subject: record.subject, reason }, 'record.unreadable');
    }
  }
}

/** Lists the members that do not match the interface. They count as absent; null is a member's own form of absence. */
export function unreadableMembers({ subject, raw, unreadable }: UpstreamRecord): string[] {
  return unreadable
    .filter((name) => (raw[name] ?? null) !== null)
    .map((member) => `${member} of ${subject} is not as the interface describes it`);
}

/** Notes the transfers of a subject that an answer has shown, and plans the poll for further ones. */
export async function planForMore(
  deps: PollContext,
  start: PollStart,
  shown: readonly SubjectId[],
): Promise<FurtherPoll> {
  const { subject, nowMs, price } = start;
  const { subjects } = deps.stores;
  const { newestAtMs, transfers } = await subjects.noteTransfers(subject, shown);
  const isOpen = await isAnyOpen(deps, start, transfers);
  return nextForMore({ newestAtMs, isOpen }, { nowMs, price, model: deps.learning.model });
}

/** True when a subject that names several transfers is polled for further ones, until a final status of the config. */
export function namesFurther(
  { rules: { finished } }: PollContext,
  { subject, snapshot }: PollStart,
): boolean {
  return subjectKind(subject) === 'quote' && snapshot !== null && !endsByConfig(subject, snapshot, finished);
}

/** True when one of some transfers is open, or cannot be read. The read prolongs the storage of ended ones. */
async function isAnyOpen(
  deps: PollContext,
  start: PollStart,
  transfers: readonly SubjectId[],
): Promise<boolean> {
  return (await deps.stores.subjects.readEach(transfers)).some(({ snapshot, claims, fault }, index) => {
    const subject = transfers[index];
    if (subject === undefined || snapshot === null) return fault !== undefined;
    return !planOf(deps, { subject, snapshot, claims }, { ...start, imported: null, route: null }).isOver;
  });
}
