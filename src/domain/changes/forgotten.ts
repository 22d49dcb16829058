import { endsByConfig, type FinishedStatuses } from '../cadence/next-poll.ts';
import { type Claim, isHistoryFor } from '../subjects/claim.ts';
import { stageOf } from '../subjects/lifecycle.ts';
import type { UpstreamRecord } from '../subjects/record.ts';

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
