import type { Logger } from 'pino';
import { AFTER_DEADLINE_MS, isFinished, nextPoll, stageSinceMs } from '../domain/cadence/next-poll.ts';
import { routeName } from '../domain/cadence/route-name.ts';
import { type OpenTransfer, type Order, orderOf } from '../domain/cadence/wallet.ts';
import { type Claim, parseClaimRoot } from '../domain/claim.ts';
import type { Snapshot, UpstreamRecord } from '../domain/record.ts';
import type { SubjectId } from '../domain/subject.ts';
import { isPollable } from '../domain/subject.ts';
import { timedMoments } from '../domain/timed.ts';
import type { Reading } from '../pollers/reading.ts';
import type { Registry, StoredSubscription } from '../store/registry.ts';
import type { PollStart } from '../store/subjects.ts';
import { type CommitParts, commitRecord, overdueTimes } from './commit-record.ts';

/**
 * What a page of a wallet showed: which transfers are under way and which have ended, in which order, and whether
 * nothing on it was known through this wallet before; `arrived` counts those that are new and no history.
 */
export type PageTaken = {
  open: Omit<OpenTransfer, 'headAtMs'>[];
  ended: SubjectId[];
  order: Order;
  allNew: boolean;
  arrived: number;
};

/** A page as it was answered (Redis time, ms), what was known before it was asked for, and who may be told. */
type Page = {
  reading: Reading;
  answeredMs: number;
  start: PollStart;
  subscriptions: ReadonlyMap<string, StoredSubscription>;
};

/** Takes in every record of a wallet page, each under the claims of those who watch the wallet. */
export async function takePage(
  parts: CommitParts & { registry: Registry; log: Logger },
  page: Page,
): Promise<PageTaken> {
  const { reading, answeredMs, start } = page;
  const claims = await pageClaims(parts.registry, page);
  const { once, again } = separate(reading.records);
  const known = await parts.subjects.look(once.map((record) => record.subject));
  const results = await Promise.allSettled(
    once.map(async (record, index) => {
      const state = known[index] ?? { snapshot: null, claims: [], seenAtMs: null };
      const { outcome, snapshot } = await commitRecord(parts, record, state, {
        asOf: start.asOf,
        nowMs: answeredMs,
        exact: false,
        claims,
      });
      if (outcome === 'stale' && isPollable(record.subject)) await parts.queues.lookAgain(record.subject);
      return { outcome, snapshot, isCurrent: outcome !== 'stale' && outcome !== 'superseded' };
    }),
  );
  for (const subject of again) if (isPollable(subject)) await parts.queues.lookAgain(subject);
  // What cannot be taken in must not keep the other records of its page from being taken in.
  results.forEach((result, index) => {
    if (result.status === 'fulfilled') return;
    parts.log.error({ subject: once[index]?.subject, error: result.reason }, 'record.not_taken');
  });

  const isNew = known.map(({ snapshot }) => snapshot === null);
  // A transfer between two watched wallets may be known through the other one, and is new to this one's pages all the same.
  const roots = new Set(start.claims.map(({ root }) => root));
  const taken: PageTaken = {
    open: [],
    ended: [],
    order: orderOf(once.map(({ updatedAt }, index) => ({ updatedAt, isNew: isNew[index] ?? true }))),
    allNew: known.length > 0 && known.every(({ claims }) => !claims.some(({ root }) => roots.has(root))),
    arrived: results.filter((result) => result.status === 'fulfilled' && result.value.outcome === 'first')
      .length,
  };
  const shown: Shown[] = [];
  const { nowMs } = start;
  once.forEach(({ subject }, index) => {
    const result = results[index];
    if (result?.status !== 'fulfilled' || result.value.snapshot === null || !isPollable(subject)) return;
    const { snapshot, isCurrent } = result.value;
    const isOver = isFinished({ subject, snapshot, nowMs, finished: parts.finished });
    if (isOver) taken.ended.push(subject);
    else taken.open.push(openTransfer(subject, snapshot, nowMs));
    const { snapshot: before = null, claims: others = [] } = known[index] ?? {};
    // What a page shows behind its time, or twice, has just been given a look-up, which must not be taken away.
    if (before === null || !isCurrent || again.includes(subject)) return;
    shown.push({ subject, before, snapshot, claims: others, isOver });
  });
  await parts.subjects.noteSeen(
    taken.open.map(({ subject }) => subject),
    nowMs,
  );
  await replan(parts, shown, nowMs);
  return taken;
}

/** A transfer that was known before a page showed it. */
type Shown = {
  subject: SubjectId;
  before: Snapshot;
  snapshot: Snapshot;
  claims: readonly Claim[];
  isOver: boolean;
};

/**
 * A page that shows a transfer is a look at it: its own look-up, which is only there in case no page does, moves away,
 * and ends with it. Whatever somebody named keeps its own look-ups, and so does what is in doubt.
 */
async function replan(
  parts: CommitParts & { registry: Registry },
  shown: readonly Shown[],
  nowMs: number,
): Promise<void> {
  const movable = shown.filter(
    ({ claims, snapshot, before }) =>
      snapshot.doubt === null &&
      before.doubt === null &&
      claims.every(({ root, served }) => served && parseClaimRoot(root).subject.startsWith('wallet:')),
  );
  const subscriptions = await parts.registry.subscriptions(
    movable.flatMap(({ claims }) => claims.map(({ root }) => root)),
  );
  const dues = await parts.subjects.dueMs(movable.map(({ subject }) => subject));
  await Promise.all(
    movable.map(async ({ subject, snapshot, claims, isOver }, index) => {
      const dueMs = dues[index] ?? null;
      if (dueMs === null) return;
      if (isOver) return parts.queues.retire(subject, snapshot.commit);
      const moments = timedMoments(subject, snapshot, {
        overdue: overdueTimes(claims, subscriptions, parts.learning.overdueAfterMs(subject, snapshot)),
        handed: null,
      });
      // Only its own look-up tells what the clock has brought about: that must come, however often pages show it.
      if (moments.some(({ atMs }) => atMs <= nowMs)) {
        if (dueMs > nowMs + AFTER_DEADLINE_MS) await parts.queues.lookAgain(subject);
        return;
      }
      const next = nextPoll({
        subject,
        snapshot,
        nowMs,
        shown: true,
        price: parts.pricing.price(subject),
        law: parts.learning.law,
        finished: parts.finished,
        deadlinesMs: moments.map(({ atMs }) => atMs),
      });
      // Moving it each time would cost more than it saves: the next page comes long before the look-up.
      if (next.next === 'poll' && dueMs < nowMs + next.afterMs / 2) {
        await parts.queues.postpone(subject, next.afterMs);
      }
    }),
  );
}

/** A transfer that an answer has just shown. */
export function openTransfer(
  subject: SubjectId,
  snapshot: Snapshot,
  seenAtMs: number,
): Omit<OpenTransfer, 'headAtMs'> {
  const status = snapshot.status.toLowerCase();
  return { subject, status, route: routeName(snapshot.record), sinceMs: stageSinceMs(snapshot), seenAtMs };
}

/** A page that shows a subject twice, differently, cannot say which is right: the first is taken, and it is looked up. */
function separate(records: readonly UpstreamRecord[]): { once: UpstreamRecord[]; again: SubjectId[] } {
  const first = new Map<SubjectId, UpstreamRecord>();
  const again: SubjectId[] = [];
  for (const record of records) {
    if (first.has(record.subject)) again.push(record.subject);
    else first.set(record.subject, record);
  }
  return { once: [...first.values()], again };
}

/**
 * The claims under which a wallet's transfers stand: what has an `updatedAt` before the subscription is history, both
 * on the upstream's clock.
 */
async function pageClaims(registry: Registry, page: Page): Promise<Claim[]> {
  const { reading, start, subscriptions } = page;
  return Promise.all(
    start.claims.map(async (claim) => {
      const { subscription } = parseClaimRoot(claim.root);
      const historyBefore =
        subscriptions.get(subscription)?.history === 'emit'
          ? null
          : await registry.subscribedAt(claim, reading.dateMs);
      return { ...claim, historyBefore, served: false };
    }),
  );
}
