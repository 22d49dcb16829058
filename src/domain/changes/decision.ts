import { endsByConfig, type FinishedStatuses } from '../cadence/next-poll.ts';
import type { JsonObject } from '../json.ts';
import { stageOf, type Unconfirmed, type UpstreamRecord } from '../subjects/record.ts';
import { asSubjectId } from '../subjects/subject.ts';
import {
  type Claim,
  claimRoot,
  isHistoryFor,
  isTrackedRoot,
  parseClaimRoot,
} from '../subjects/subscription.ts';

/** A transition, named: what an event says beyond its id, subject and time. */
export type Transition = {
  type: string;
  status: string;
  previousStatus: string | null;
  changes: string[];
  skipped: boolean;
  regression: boolean;
};

/**
 * Why an answer is behind what is known: an older `updatedAt`; `unknown` for what is known; at an equal or missing
 * `updatedAt` a step backward, or a status or value that the subject has left already, as replicas that lag show them.
 */
export type StaleReason = 'older' | 'unknown' | 'backward' | 'returned';

/**
 * An event that no answer of the upstream's made. `flag` is set in the snapshot with the event, so that it comes once;
 * `raw` is what its record has beside that of the snapshot.
 */
export type FlaggedEvent = { flag: string; transition: Transition; raw: JsonObject };

/** What a snapshot becomes: the record to store and the time it carries. */
export type Accepted = { status: string; updatedAt: number | null; record: JsonObject };

/**
 * What an answer means for a subject.
 *
 * - `history`: first seen, and it happened before anyone asked: stored without an event.
 * - `first`: first sight that is an event.
 * - `unchanged`: nothing to tell; `accepted` is what to store where something silent moved, else null.
 * - `stale`: an answer behind what is known. `unconfirmed` is what an exact poll has to remember; null for a page.
 * - `changed`: one event.
 */
export type Decision =
  | { outcome: 'history'; accepted: Accepted }
  | { outcome: 'first'; accepted: Accepted; transition: Transition }
  | { outcome: 'unchanged'; accepted: Accepted | null }
  | { outcome: 'stale'; reason: StaleReason; unconfirmed: Unconfirmed | null }
  | { outcome: 'changed'; accepted: Accepted; transition: Transition };

/**
 * What is known of a wallet by which an unknown record can be reported as one that was removed after its retention. `readAtMs`: from
 * when on all that the wallet has was shown, by a sweep that read every record; 0 for never.
 */
export type WalletRead = { readAtMs: number; confirmedMs: number; retentionMs: number };

/** True when an unknown record may be old enough: its status is final, and it has a time. */
export function mayBeForgotten(
  { subject, status, updatedAt }: UpstreamRecord,
  finished: FinishedStatuses,
): boolean {
  if (updatedAt === null) return false;
  return endsByConfig(subject, { status }, finished) || stageOf(subject, status).finishAfterMs === 0;
}

/**
 * The claims on an unknown record that may have been removed (see `mayBeForgotten`). It is history for those that wanted the
 * wallet when a sweep of all its pages began, where it had ended the retention or longer before that: it was known then, or
 * stored as history. A sweep that began at a time which is not confirmed says nothing.
 */
export function claimsOnForgotten(
  claims: readonly Claim[],
  { readAtMs, confirmedMs, retentionMs }: WalletRead,
): Claim[] {
  if (readAtMs === 0 || readAtMs > confirmedMs) return [...claims];
  const endedBefore = Math.floor((readAtMs - retentionMs) / 1_000) + 1;
  return claims.map((claim) =>
    claim.atMs <= readAtMs
      ? { ...claim, historyBefore: Math.max(claim.historyBefore ?? endedBefore, endedBefore) }
      : claim,
  );
}

/** True when a record is history only since its wallet was read long after it had ended. */
export function isForgotten(
  record: UpstreamRecord,
  { claims, wallet }: { claims: readonly Claim[]; wallet: WalletRead },
): boolean {
  const isHistory = (all: readonly Claim[]): boolean =>
    all.every((claim) => isHistoryFor(claim, record.updatedAt));
  return !isHistory(claims) && isHistory(claimsOnForgotten(claims, wallet));
}

/** The receivers of subscriptions, by name. */
type ReceiversOf = ReadonlyMap<string, { receivers: readonly string[] }>;

/**
 * The roots under which a state that was reported before, and whose event has left the log, is reported once more: those of claims
 * to which it is news, narrowed to the receivers that had it by no claim of theirs.
 */
export function unreachedRoots(
  state: { known: readonly Claim[]; fresh: readonly Claim[]; updatedAt: number | null },
  subscriptions: ReceiversOf,
): string[] {
  const { known, fresh, updatedAt } = state;
  const receiversOf = ({ root }: Claim): readonly string[] => {
    const { subscription, receivers } = parseClaimRoot(root);
    return receivers ?? subscriptions.get(subscription)?.receivers ?? [];
  };
  // A claim of a root from before it left and came back is of other receivers, maybe.
  const anew = new Map(fresh.map(({ root, atMs }) => [root, atMs]));
  const had = known.filter(({ root, atMs, served }) => served && (anew.get(root) ?? atMs) === atMs);
  const reached = new Set(had.flatMap(receiversOf));
  return fresh.flatMap((claim) => {
    if (isHistoryFor(claim, updatedAt)) return [];
    const all = receiversOf(claim);
    const left = all.filter((name) => !reached.has(name));
    if (left.length === all.length) return [claim.root];
    if (left.length === 0 || isTrackedRoot(claim.root)) return left.length === 0 ? [] : [claim.root];
    const { subscription, subject } = parseClaimRoot(claim.root);
    return [claimRoot(subscription, asSubjectId(subject), left)];
  });
}
