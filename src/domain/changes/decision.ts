import { endsByConfig, type FinishedStatuses } from '../cadence/next-poll.ts';
import type { JsonObject } from '../json.ts';
import { stageOf, type Unconfirmed, type UpstreamRecord } from '../subjects/record.ts';
import { asSubjectId } from '../subjects/subject.ts';
import { type Claim, claimKey, isHistoryFor, isTrackedKey, parseClaimKey } from '../subjects/subscription.ts';

/** Content of an event without its id, subject and time. */
export type Transition = {
  type: string;
  status: string;
  previousStatus: string | null;
  changes: string[];
  skipped: boolean;
  regression: boolean;
};

/**
 * Reason why an answer is behind the snapshot: an older `updatedAt`; `unknown` for a known subject; at an equal or
 * missing `updatedAt` a step backward, or a former status or value of the subject, as lagging replicas show them.
 */
export type StaleReason = 'older' | 'unknown' | 'backward' | 'returned';

/** An event without an upstream answer. `flag` makes it come once; `raw` is added to the snapshot's record. */
export type FlaggedEvent = { flag: string; transition: Transition; raw: JsonObject };

/** The record to store, with its status and time; `answered`: the whole answer, where the record may have more than it. */
export type Accepted = {
  status: string;
  updatedAt: number | null;
  record: JsonObject;
  answered?: JsonObject;
};

/**
 * Decision on an answer for a subject.
 *
 * - `history`: first seen, and older than every claim: stored without an event.
 * - `first`: first observation that is an event.
 * - `unchanged`: no event; `accepted` is stored when a silent member changed, else null.
 * - `stale`: an answer behind the snapshot. `unconfirmed` is stored after an exact poll; null for a page.
 * - `changed`: one event.
 */
export type Decision =
  | { outcome: 'history'; accepted: Accepted }
  | { outcome: 'first'; accepted: Accepted; transition: Transition }
  | { outcome: 'unchanged'; accepted: Accepted | null }
  | { outcome: 'stale'; reason: StaleReason; unconfirmed: Unconfirmed | null }
  | { outcome: 'changed'; accepted: Accepted; transition: Transition };

/** Facts of a wallet for its removed records. `readAtMs`: time of the sweep that read every record; 0 for never. */
export type WalletRead = { readAtMs: number; confirmedMs: number; retentionMs: number };

/** True when an unknown record may be old enough for removal: its status is final, and it has a time. */
export function mayBeExpired(
  { subject, status, updatedAt }: UpstreamRecord,
  finished: FinishedStatuses,
): boolean {
  if (updatedAt === null) return false;
  return endsByConfig(subject, { status }, finished) || stageOf(subject, status).finishAfterMs === 0;
}

/** Largest difference of the upstream's clock and that of Redis, and the time after a restore in which any new record is doubted. */
const CLOCKS_APART_MS = 120_000;
const DOUBTED_MS = 86_400_000;

/**
 * True when a state is the first of its subject since a restore, and may have been reported before. A subject that Redis does not
 * have may be one that was lost, where claims are older than the restore and its time is no later.
 */
export function mayBeFoundAgain(
  state: { snapshot: { epoch: number } | null; stored: readonly Claim[]; fresh: readonly Claim[] },
  updatedAt: number | null,
  { epoch, atMs, nowMs }: { epoch: number; atMs: number | null; nowMs: number },
): boolean {
  const { snapshot, stored, fresh } = state;
  if (atMs === null) return false;
  if (snapshot !== null) return snapshot.epoch < epoch;
  const isEarlier = ({ atMs: claimedMs }: Claim): boolean => claimedMs < atMs;
  const mayBeLost =
    updatedAt === null ? nowMs < atMs + DOUBTED_MS : 1_000 * updatedAt < atMs + CLOCKS_APART_MS;
  return stored.some(isEarlier) || (mayBeLost && fresh.some(isEarlier));
}

/**
 * The claims on an unknown record that may have been removed (see `mayBeExpired`). If it ended `retentionMs` before
 * the last full sweep, it is history for older claims: it was known then. A sweep at an unconfirmed time is no proof.
 */
export function claimsOnExpired(
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

/** True when a record is history only because its wallet was read long after it had ended. */
export function isExpired(
  record: UpstreamRecord,
  { claims, wallet }: { claims: readonly Claim[]; wallet: WalletRead },
): boolean {
  const isHistory = (all: readonly Claim[]): boolean =>
    all.every((claim) => isHistoryFor(claim, record.updatedAt));
  return !isHistory(claims) && isHistory(claimsOnExpired(claims, wallet));
}

type ReceiversOf = ReadonlyMap<string, { receivers: readonly string[] }>;

/**
 * Subscription keys under which a reported state, whose event has expired from the log, is reported once more: those of
 * claims to which it is news, narrowed to receivers that had it by no claim of theirs.
 */
export function unreachedKeys(
  state: { stored: readonly Claim[]; fresh: readonly Claim[]; updatedAt: number | null },
  subscriptions: ReceiversOf,
): string[] {
  const { stored, fresh, updatedAt } = state;
  const receiversOf = ({ key }: Claim): readonly string[] => {
    const { subscription, receivers } = parseClaimKey(key);
    return receivers ?? subscriptions.get(subscription)?.receivers ?? [];
  };
  // A claim from before its subscription key was removed and came back may belong to other receivers.
  const anew = new Map(fresh.map(({ key, atMs }) => [key, atMs]));
  const had = stored.filter(({ key, atMs, served }) => served && (anew.get(key) ?? atMs) === atMs);
  const reached = new Set(had.flatMap(receiversOf));
  return fresh.flatMap((claim) => {
    if (isHistoryFor(claim, updatedAt)) return [];
    const all = receiversOf(claim);
    const left = all.filter((name) => !reached.has(name));
    if (left.length === all.length) return [claim.key];
    if (left.length === 0 || isTrackedKey(claim.key)) return left.length === 0 ? [] : [claim.key];
    const { subscription, subject } = parseClaimKey(claim.key);
    return [claimKey(subscription, asSubjectId(subject), left)];
  });
}
