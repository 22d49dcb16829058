import { stageOf } from './cadence/stages.ts';
import type { Transition } from './decide.ts';
import type { Snapshot } from './record.ts';
import { eventKind, type SubjectId, subjectKind } from './subject.ts';

/**
 * An event that the clock makes. `flag` is set in the snapshot with the event, so that it comes once per stage.
 * `overdueAfterMs` restricts it to the subscriptions that configured that time; null means all.
 */
export type TimedEvent = { flag: string; transition: Transition; overdueAfterMs: number | null };

/** The moments (Redis time, ms) at which the clock would make an event of a subject in its present stage. */
export function timedMoments(
  subject: SubjectId,
  snapshot: Snapshot,
  overdueAfterMs: readonly number[],
): { atMs: number; event: TimedEvent }[] {
  const moments: { atMs: number; event: TimedEvent }[] = [];
  const deadlineMs = vaultDeadlineMs(subject, snapshot);
  if (deadlineMs !== null) {
    moments.push({
      atMs: deadlineMs,
      event: { flag: 'expired', transition: byClock(subject, snapshot, 'expired'), overdueAfterMs: null },
    });
  }
  if (snapshot.pendingSince !== null && stageOf(subject, snapshot.status).waiting) {
    for (const afterMs of new Set(overdueAfterMs)) {
      moments.push({
        atMs: snapshot.pendingSince * 1_000 + afterMs,
        event: {
          flag: `overdue:${afterMs}`,
          transition: byClock(subject, snapshot, 'overdue'),
          overdueAfterMs: afterMs,
        },
      });
    }
  }
  return moments.filter((moment) => !snapshot.flags.includes(moment.event.flag));
}

/** When an unfunded vault expires; null for anything else. */
function vaultDeadlineMs(subject: SubjectId, snapshot: Snapshot): number | null {
  if (subjectKind(subject) !== 'vault' || snapshot.status.toLowerCase() !== 'pending') return null;
  const { deadline } = snapshot.record;
  // Whole seconds, as a number or as its digits, as everywhere in the upstream's records.
  const text = typeof deadline === 'number' || typeof deadline === 'string' ? String(deadline) : '';
  return /^0*[1-9]\d{0,14}$/.test(text) ? Number(text) * 1_000 : null;
}

function byClock(subject: SubjectId, snapshot: Snapshot, word: string): Transition {
  return {
    type: `${eventKind(subject)}.${word}`,
    status: snapshot.status,
    previousStatus: snapshot.status,
    changes: [],
    skipped: false,
    regression: false,
  };
}
