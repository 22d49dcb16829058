import type { FlaggedEvent } from '../changes/decision.ts';
import type { Promised } from '../events/event-schema.ts';
import type { Snapshot } from '../subjects/record.ts';
import { type SubjectId, subjectKind } from '../subjects/subject.ts';
import { deliveredOf, shareOf } from './promised.ts';

/** The flag of a transfer that was reported to be short: it stays for its life, for what was delivered does not grow. */
export const SHORT = 'short';

/**
 * The event of a transfer of which less was delivered than its quote's minimum, once; null for any other. Amounts of other
 * tokens or on other chains are not compared, and what is history to everybody is not reported.
 */
export function shortEvent(
  subject: SubjectId,
  snapshot: Snapshot,
  promised: Promised | null,
): FlaggedEvent | null {
  if (promised === null || subjectKind(subject) !== 'intent' || !snapshot.reported || snapshot.salvaged)
    return null;
  if (snapshot.flags.includes(SHORT)) return null;
  const compared = deliveredOf(snapshot.record, promised);
  if (compared === null || compared.missing === 0n) return null;
  const { status } = snapshot;
  return {
    flag: SHORT,
    transition: {
      type: 'intent.short',
      status,
      previousStatus: status,
      changes: [],
      skipped: false,
      regression: false,
    },
    raw: {},
  };
}

/** What was delivered as a share of what the quote promised; null where it cannot be compared, or nothing was promised. */
export function deliveredRatio(snapshot: Snapshot | null, promised: Promised | null): number | null {
  const compared = snapshot === null ? null : deliveredOf(snapshot.record, promised);
  return compared?.promised == null || compared.promised === 0n
    ? null
    : shareOf(compared.delivered, compared.promised);
}
