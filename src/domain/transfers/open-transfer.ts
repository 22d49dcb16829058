import { routeName } from '../cadence/route-name.ts';
import { isOverdue } from '../cadence/timed.ts';
import type { SnapshotDraft } from '../changes/next-snapshot.ts';
import { stageOf } from '../subjects/lifecycle.ts';
import { type SubjectId, subjectKind } from '../subjects/subject.ts';
import type { RawAmount } from './money.ts';
import { readTransfer } from './transfer.ts';

/** The states of a transfer whose money is neither where it was to go nor back where it came from. */
export const OPEN_STATES = ['pending', 'overdue', 'expired', 'failed', 'refundable'] as const;

export type OpenState = (typeof OPEN_STATES)[number];

/** A transfer that has not come to an end: what it has sent, by which pair of chains, and since when it is so (Unix seconds). */
export type OpenTransfer = { state: OpenState; route: string; sent: RawAmount; since: number };

/** What of a snapshot counts; `changedAtMs` is when its status was first seen. */
type Standing = Pick<
  SnapshotDraft,
  'status' | 'record' | 'updatedAt' | 'changedAtMs' | 'pendingSince' | 'flags'
>;

/** A transfer as one that is open; null for what is none, or has come to an end. */
export function openTransfer(subject: SubjectId, snapshot: Standing): OpenTransfer | null {
  const state = openState(subject, snapshot);
  if (state === null) return null;
  const { record, updatedAt, changedAtMs, pendingSince } = snapshot;
  const isWaiting = state === 'pending' || state === 'overdue';
  const since = (isWaiting ? pendingSince : updatedAt) ?? Math.floor(changedAtMs / 1_000);
  const { chainId, token, amount } = readTransfer(record).source ?? {};
  return { state, route: routeName(record), sent: { chainId, token, amount }, since: Math.max(0, since) };
}

function openState(subject: SubjectId, { status, flags }: Standing): OpenState | null {
  // Jobs, quotes and vaults name the transfer that they lead to: it would count twice.
  if (subjectKind(subject) !== 'intent') return null;
  if (stageOf(subject, status).waiting) return flags.some(isOverdue) ? 'overdue' : 'pending';
  return OPEN_STATES.find((state) => state === status.toLowerCase()) ?? null;
}
