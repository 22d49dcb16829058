import { decide } from '../../domain/changes/decide.ts';
import { type Decision, unreachedKeys } from '../../domain/changes/decision.ts';
import type { UpstreamRecord } from '../../domain/subjects/record.ts';
import { type Claim, isHistoryFor } from '../../domain/subjects/subscription.ts';
import type { SubjectEntry } from '../../store/subjects.ts';
import type { CommitContext } from './poll-context.ts';

/**
 * Completes a decision. `claimKeys` are the only keys for which its event is made; null for all. A state whose event
 * has left the log is reported to the keys that it never reached: that of a compact snapshot, and that of any other.
 */
export async function completeDecision(
  deps: CommitContext,
  record: UpstreamRecord,
  stored: SubjectEntry,
  { fresh, decision }: { fresh: readonly Claim[]; decision: Decision },
): Promise<{ decision: Decision; claimKeys: string[] | null }> {
  const { snapshot, claims } = stored;
  if (snapshot?.reported !== true) return { decision, claimKeys: null };
  const isCompact = decision.outcome === 'first' && snapshot.compact === true;
  const again = isCompact ? decision : await reportedAgain(deps, record, stored, { fresh, decision });
  if (again === null) return { decision, claimKeys: null };
  const { updatedAt } = snapshot;
  const all = [...claims, ...fresh].map(({ key }) => key);
  const subscriptions = await deps.stores.registry.subscriptions(all);
  const claimKeys = unreachedKeys({ stored: claims, fresh, updatedAt }, subscriptions);
  if (claimKeys.length > 0) return { decision: again, claimKeys };
  const unchanged = { outcome: 'unchanged', accepted: again.accepted } as const;
  return { decision: isCompact ? unchanged : decision, claimKeys: null };
}

/** Returns the stored state as a first one, where its event has left the log and fresh claims want it; else null. */
async function reportedAgain(
  { stores }: CommitContext,
  record: UpstreamRecord,
  { snapshot }: SubjectEntry,
  { fresh, decision }: { fresh: readonly Claim[]; decision: Decision },
): Promise<(Decision & { outcome: 'first' }) | null> {
  const isSame = decision.outcome === 'unchanged' || decision.outcome === 'stale';
  if (!isSame || snapshot === null || snapshot.compact === true) return null;
  if (fresh.every((claim) => isHistoryFor(claim, snapshot.updatedAt))) return null;
  if (!(await stores.subjects.entries.isLastGone(record.subject))) return null;
  const { status, updatedAt, record: raw } = snapshot;
  const stored = { ...record, status, updatedAt, raw };
  const again = decide(null, stored, { nowMs: 0, exact: true, history: false, confirmAfterMs: 0 });
  return again.outcome === 'first' ? again : null;
}
