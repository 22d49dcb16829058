import { diffRecords } from './diff.ts';
import { canonicalJson, type JsonObject } from './json.ts';
import { stepBetween } from './lifecycle.ts';
import type { Doubt, Snapshot, UpstreamRecord } from './record.ts';
import { eventKind, type SubjectId } from './subject.ts';

/** The status of an id that the upstream has not seen (interface, status endpoint, rule 2). */
export const UNKNOWN = 'unknown';

/** A transition, named: what an event says beyond its id, subject and time. */
export type Transition = {
  type: string;
  status: string;
  previousStatus: string | null;
  changes: string[];
  skipped: boolean;
  regression: boolean;
};

export type StaleReason = 'older' | 'unknown' | 'backward';

/** What a snapshot becomes: the record to store and the time it carries. */
export type Accepted = { status: string; updatedAt: number | null; record: JsonObject };

/**
 * What an answer means for a subject.
 *
 * - `history`: first seen, and it happened before anyone asked: stored without an event.
 * - `first`: first sight that is an event.
 * - `unchanged`: nothing to tell; `accepted` is what to store where something silent moved, else null.
 * - `stale`: an answer behind what is known. `doubt` is what an exact look-up has to remember; null for a page.
 * - `changed`: one event.
 */
export type Decision =
  | { outcome: 'history'; accepted: Accepted }
  | { outcome: 'first'; accepted: Accepted; transition: Transition }
  | { outcome: 'unchanged'; accepted: Accepted | null }
  | { outcome: 'stale'; reason: StaleReason; doubt: Doubt | null }
  | { outcome: 'changed'; accepted: Accepted; transition: Transition };

/**
 * `exact`: the answer came from a look-up of this subject, not from a page. `history`: to every claim that has not been
 * served yet, what is known of this subject (the snapshot, else the record) is history. `confirmAfterMs`: how long exact look-ups must repeat a stale answer.
 */
export type DecideContext = { nowMs: number; exact: boolean; history: boolean; confirmAfterMs: number };

/** Compares an answer with the snapshot. Pure: the caller stores and tells. */
export function decide(snapshot: Snapshot | null, record: UpstreamRecord, context: DecideContext): Decision {
  if (snapshot === null || snapshot.sequence === 0) {
    const unseen = decideUnseen(snapshot, record, context);
    if (unseen !== null) return unseen;
  }
  if (snapshot === null) return { outcome: 'unchanged', accepted: null };
  if (isUnknown(snapshot.status)) {
    if (isUnknown(record.status)) return { outcome: 'unchanged', accepted: null };
    return changed(snapshot, record, { reading: 'replaces', regression: false });
  }
  const reason = staleReason(snapshot, record);
  if (reason === null) return decideFresh(snapshot, record);
  if (!context.exact) return { outcome: 'stale', reason, doubt: null };
  const key = `${record.status.toLowerCase()}@${record.updatedAt ?? ''}`;
  const sinceMs = snapshot.doubt?.key === key ? snapshot.doubt.sinceMs : context.nowMs;
  if (context.nowMs - sinceMs < context.confirmAfterMs) {
    return { outcome: 'stale', reason, doubt: { key, sinceMs } };
  }
  return changed(snapshot, record, { reading: 'replaces', regression: reason !== 'unknown' });
}

/** First sight, or first sight by someone for whom it is not history; null when there is nothing of the sort. */
function decideUnseen(
  snapshot: Snapshot | null,
  record: UpstreamRecord,
  context: DecideContext,
): Decision | null {
  // An id that the upstream has not indexed yet is no news: polling goes on.
  if (isUnknown(record.status)) return null;
  if (context.history) return snapshot === null ? { outcome: 'history', accepted: asSaid(record) } : null;
  if (snapshot !== null && staleReason(snapshot, record) !== null) return null;
  return {
    outcome: 'first',
    accepted: asSaid(record),
    transition: {
      type: eventType(record.subject, record.status),
      status: record.status,
      previousStatus: null,
      changes: Object.keys(record.said).filter((key) => key !== 'updatedAt'),
      skipped: false,
      regression: false,
    },
  };
}

function staleReason(snapshot: Snapshot, record: UpstreamRecord): StaleReason | null {
  if (isUnknown(record.status)) return 'unknown';
  const order = compareTimes(snapshot.updatedAt, record.updatedAt);
  if (order === 'older') return 'older';
  const step = stepBetween(record.subject, snapshot.status, record.status);
  return order === 'same' && step === 'backward' ? 'backward' : null;
}

function decideFresh(snapshot: Snapshot, record: UpstreamRecord): Decision {
  const newer = compareTimes(snapshot.updatedAt, record.updatedAt) === 'newer';
  const reading = newer ? 'replaces' : 'grows';
  const moved = snapshot.status.toLowerCase() !== record.status.toLowerCase();
  if (moved) {
    const step = stepBetween(record.subject, snapshot.status, record.status);
    return changed(snapshot, record, { reading, regression: step === 'backward' });
  }
  const { changes, merged } = diffRecords(snapshot.record, record.said, {
    reading,
    unreadable: record.unreadable,
  });
  if (changes.length > 0) return changed(snapshot, record, { reading, regression: false });
  if (!newer && canonicalJson(merged) === canonicalJson(snapshot.record)) {
    return { outcome: 'unchanged', accepted: null };
  }
  return { outcome: 'unchanged', accepted: accept(snapshot, record, merged) };
}

function changed(
  snapshot: Snapshot,
  record: UpstreamRecord,
  how: { reading: 'grows' | 'replaces'; regression: boolean },
): Decision {
  const moved = snapshot.status.toLowerCase() !== record.status.toLowerCase();
  const { changes, merged } = diffRecords(snapshot.record, record.said, {
    reading: how.reading,
    unreadable: record.unreadable,
  });
  if (!moved && changes.length === 0) {
    return { outcome: 'unchanged', accepted: accept(snapshot, record, merged, how.regression) };
  }
  // A move at a newer time is a new state, and the answer describes it whole: what it leaves out belonged to the old.
  const whole = moved && how.reading === 'replaces';
  return {
    outcome: 'changed',
    accepted: whole ? asSaid(record) : accept(snapshot, record, merged, how.regression),
    transition: {
      type: eventType(record.subject, moved ? record.status : 'updated'),
      status: record.status,
      previousStatus: snapshot.status,
      changes,
      skipped: stepBetween(record.subject, snapshot.status, record.status) === 'skipped',
      regression: how.regression,
    },
  };
}

function accept(snapshot: Snapshot, record: UpstreamRecord, merged: JsonObject, takeTime = false): Accepted {
  const updatedAt = takeTime ? record.updatedAt : (record.updatedAt ?? snapshot.updatedAt);
  return { status: record.status, updatedAt, record: merged };
}

function asSaid(record: UpstreamRecord): Accepted {
  return { status: record.status, updatedAt: record.updatedAt, record: record.said };
}

function compareTimes(stored: number | null, said: number | null): 'older' | 'same' | 'newer' {
  if (stored === null || said === null || stored === said) return 'same';
  return said < stored ? 'older' : 'newer';
}

function isUnknown(status: string): boolean {
  return status.toLowerCase() === UNKNOWN;
}

/** `<kind>.<status in lower case>`; what is no letter, digit, dot, hyphen or underscore becomes a hyphen. */
export function eventType(subject: SubjectId, status: string): string {
  const word = status.toLowerCase().replace(/[^a-z0-9._-]+/g, '-');
  return `${eventKind(subject)}.${word}`;
}
