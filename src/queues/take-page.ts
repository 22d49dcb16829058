import type { Logger } from 'pino';
import { type Claim, parseClaimRoot } from '../domain/claim.ts';
import type { UpstreamRecord } from '../domain/record.ts';
import type { SubjectId } from '../domain/subject.ts';
import { isPollable } from '../domain/subject.ts';
import type { Reading } from '../pollers/reading.ts';
import type { Registry, StoredSubscription } from '../store/registry.ts';
import type { PollStart } from '../store/subjects.ts';
import { type CommitParts, commitRecord } from './commit-record.ts';

/** What a page of a wallet brought: whether it showed nothing that was known before. */
export type PageTaken = { allNew: boolean };

/** Takes in every record of a wallet page, each under the claims of those who watch the wallet. */
export async function takePage(
  parts: CommitParts & { registry: Registry; log: Logger },
  page: { reading: Reading; start: PollStart; subscriptions: ReadonlyMap<string, StoredSubscription> },
): Promise<PageTaken> {
  const { reading, start } = page;
  const claims = await pageClaims(parts.registry, page);
  const { once, again } = separate(reading.records);
  const known = await parts.subjects.look(once.map((record) => record.subject));
  const taken = await Promise.allSettled(
    once.map(async (record, index) => {
      const state = known[index] ?? { snapshot: null, claims: [] };
      const { outcome } = await commitRecord(parts, record, state, {
        asOf: start.asOf,
        nowMs: start.nowMs,
        exact: false,
        claims,
      });
      if (outcome === 'stale' && isPollable(record.subject)) await parts.queues.lookAgain(record.subject);
      return state.snapshot === null;
    }),
  );
  for (const subject of again) if (isPollable(subject)) await parts.queues.lookAgain(subject);
  // What cannot be taken in must not keep the other records of its page from being taken in.
  taken.forEach((result, index) => {
    if (result.status === 'fulfilled') return;
    parts.log.error({ subject: once[index]?.subject, error: result.reason }, 'record.not_taken');
  });
  const isNew = taken.map((result) => result.status === 'fulfilled' && result.value);
  return { allNew: isNew.length > 0 && isNew.every(Boolean) };
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
async function pageClaims(
  registry: Registry,
  page: { reading: Reading; start: PollStart; subscriptions: ReadonlyMap<string, StoredSubscription> },
): Promise<Claim[]> {
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
