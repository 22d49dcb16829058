import type { FlaggedEvent, Transition } from '../changes/decision.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { ImportedState } from '../quotes/promised.ts';
import { statusOf, UNKNOWN } from '../subjects/kinds.ts';
import { type Snapshot, stageOf } from '../subjects/record.ts';
import { eventKind, type SubjectId, subjectKind } from '../subjects/subject.ts';

/** Time after which a subscription reports a transfer as overdue: ms, or the learned time of its route. */
export type OverdueAfter = number | 'learned';

/**
 * An event that the clock triggers, once per stage. `overdueAfter` and `warnBeforeMs` restrict it to subscriptions
 * that configured that time; null means all. From `untilMs` on it is not emitted; null means never.
 */
export type TimedEvent = FlaggedEvent & {
  overdueAfter: OverdueAfter | null;
  warnBeforeMs: number | null;
  untilMs: number | null;
};

/** An overdue time of some subscription, and its value in ms. */
export type OverdueTime = { after: OverdueAfter; ms: number };

/** Input beside the snapshot. `warnBeforeMs`: the subscriptions' warning times before expiry; `imported`: an imported quote. */
export type TimedContext = {
  overdue: readonly OverdueTime[];
  warnBeforeMs: readonly number[];
  imported: ImportedState | null;
};

/** Times (Redis time, ms) at which the clock triggers an event of a subject in its present stage. */
export function timedEvents(
  subject: SubjectId,
  snapshot: Snapshot,
  { overdue, warnBeforeMs, imported }: TimedContext,
): { atMs: number; event: TimedEvent }[] {
  // The reported ones are unknown now: none is reported a second time.
  if (snapshot.salvaged === true) return [];
  const events: { atMs: number; event: TimedEvent }[] = [];
  const deadlineMs = vaultDeadlineMs(subject, snapshot);
  if (deadlineMs !== null) {
    events.push(...expiry({ atMs: deadlineMs, prefix: '', raw: {} }, { subject, snapshot, warnBeforeMs }));
  }
  const expiryMs = imported === null ? null : quoteExpiryMs(imported, snapshot);
  if (imported !== null && expiryMs !== null) {
    const raw = { id: subject, expiresAt: imported.quote.raw.expiresAt ?? null };
    events.push(...expiry({ atMs: expiryMs, prefix: 'quote:', raw }, { subject, snapshot, warnBeforeMs }));
  }
  if (snapshot.pendingSince !== null && stageOf(subject, snapshot.status).waiting) {
    for (const [after, ms] of new Map(overdue.map((time) => [time.after, time.ms]))) {
      events.push({
        atMs: snapshot.pendingSince * 1_000 + ms,
        event: {
          flag: `overdue:${after}`,
          transition: byClock(subject, snapshot, 'overdue'),
          raw: {},
          ...FOR_ALL,
          overdueAfter: after,
        },
      });
    }
  }
  return events.filter((time) => !snapshot.flags.includes(time.event.flag));
}

/** True when a flag marks a transfer reported as overdue. */
export function isOverdue(flag: string): boolean {
  return flag.startsWith('overdue:');
}

const FOR_ALL = { overdueAfter: null, warnBeforeMs: null, untilMs: null };

type ScheduledEvent = { atMs: number; event: TimedEvent };

/** Expiry of an unfunded subject, and the warnings before it. `prefix` marks flags that last for the subject's life. */
function expiry(
  { atMs, prefix, raw }: { atMs: number; prefix: string; raw: JsonObject },
  of: { subject: SubjectId; snapshot: Snapshot; warnBeforeMs: readonly number[] },
): ScheduledEvent[] {
  const { subject, snapshot } = of;
  const flagged = (word: string, flag: string): FlaggedEvent => ({
    flag: `${prefix}${flag}`,
    transition: byClock(subject, snapshot, word),
    raw,
  });
  return [
    ...[...new Set(of.warnBeforeMs)].map((ms) => ({
      atMs: atMs - ms,
      event: { ...flagged('expiring', `expiring:${ms}`), ...FOR_ALL, warnBeforeMs: ms, untilMs: atMs },
    })),
    { atMs, event: { ...flagged('expired', 'expired'), ...FOR_ALL } },
  ];
}

function vaultDeadlineMs(subject: SubjectId, snapshot: Snapshot): number | null {
  if (subjectKind(subject) !== 'vault' || statusOf(subject, snapshot.status)?.isUnfunded !== true)
    return null;
  return secondsAsMs(snapshot.record.deadline);
}

/** A quote in any other status was consumed for good (interface, states: `active` becomes `submitted`). */
function isUnfunded(subject: SubjectId, status: string): boolean {
  return status.toLowerCase() === UNKNOWN || statusOf(subject, status)?.isUnfunded === true;
}

/** Flag of a quote that was seen in another status: it cannot expire any more, whatever older answer follows. */
const CONSUMED = 'quote:consumed';

/** Flags that a quote gets with a status; like all that begin with `quote:` they last for its life. */
export function quoteFlags(subject: SubjectId, status: string): string[] {
  return subjectKind(subject) === 'quote' && !isUnfunded(subject, status) ? [CONSUMED] : [];
}

/** Expiry of an unfunded quote. Null unless the quote is valid: unsigned content is not believed. */
function quoteExpiryMs({ quote, verdict }: ImportedState, snapshot: Snapshot): number | null {
  const isOpen = isUnfunded(quote.subject, snapshot.status) && !snapshot.flags.includes(CONSUMED);
  return verdict === 'valid' && isOpen ? secondsAsMs(quote.raw.expiresAt) : null;
}

/** Whole seconds, as a number or as digits, as everywhere in the upstream's records. */
export function secondsAsMs(value: JsonValue | undefined): number | null {
  const text = typeof value === 'number' || typeof value === 'string' ? String(value) : '';
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
