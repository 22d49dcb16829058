import { type Claim, claimRoot, isHistoryFor, isTrackedRoot, parseClaimRoot } from '../subjects/claim.ts';
import { asSubjectId } from '../subjects/subject.ts';

/** The receivers of subscriptions, by name. */
export type ReceiversOf = ReadonlyMap<string, { receivers: readonly string[] }>;

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
  const reached = new Set(known.filter(({ served }) => served).flatMap(receiversOf));
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
