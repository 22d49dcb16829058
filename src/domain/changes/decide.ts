import { canonicalJson, type JsonObject } from '../json.ts';
import { isBeyond, type RouteSummary, readRoute } from '../quotes/route.ts';
import { statusMember, UNKNOWN, UNSTATED } from '../subjects/kinds.ts';
import { type Snapshot, stepBetween, type Unconfirmed, type UpstreamRecord } from '../subjects/record.ts';
import { eventKind, type SubjectId, subjectKind } from '../subjects/subject.ts';
import type { Accepted, Decision, StaleReason, Transition } from './decision.ts';
import { diffRecords } from './diff.ts';
import { partialFailure } from './failures.ts';
import { returnedValues } from './former.ts';

/** Members of a route's record whose difference is not a change: each answer has its own quote. */
const SILENT = new Set(['quote', 'previousOutput', 'reportedOutput', 'movedBy']);

/**
 * Decides on an answer about a route. It is compared with the last reported output, not with the last answer: a slow
 * drift is reported, and small fluctuation is not. An unreported answer is still stored.
 */
function decideRoute(snapshot: Snapshot | null, record: UpstreamRecord): Decision {
  const { status, raw } = record;
  const accepted = (more: JsonObject) => ({ status, updatedAt: null, record: { ...raw, ...more } });
  const answer = readRoute(raw);
  if (answer === null) throw new Error(`${record.subject} has a record that is none of a route`);
  const transition = (word: string, changes: string[]): Transition => ({
    type: `route.${word}`,
    status,
    previousStatus: snapshot?.status ?? null,
    changes,
    skipped: false,
    regression: false,
  });
  if (snapshot === null) {
    const changes = Object.keys(raw).filter((key) => !SILENT.has(key));
    return { outcome: 'first', accepted: accepted({}), transition: transition(status, changes) };
  }
  const stored = readRoute(snapshot.record);
  const changes = changedMembers(snapshot.record, raw);
  if (stored === null || isOtherRoute(stored, answer)) {
    return { outcome: 'changed', accepted: accepted({}), transition: transition(status, changes) };
  }
  const reported = stored.reportedOutput ?? stored.output;
  if (status !== snapshot.status) {
    return {
      outcome: 'changed',
      accepted: accepted({ previousOutput: reported }),
      transition: transition(status, changes),
    };
  }
  // Amounts of one token with other decimals cannot be compared.
  if (hasOtherUnits(stored, answer)) return { outcome: 'unchanged', accepted: accepted({}) };
  if (answer.output !== null && reported !== null && isBeyond(answer.output, reported, answer.movedBy)) {
    return {
      outcome: 'changed',
      accepted: accepted({ previousOutput: reported }),
      transition: transition('moved', [...new Set([...changes, 'output'])]),
    };
  }
  const { previousOutput } = stored;
  const silent = accepted({
    previousOutput,
    ...(reported === null || reported === answer.output ? {} : { reportedOutput: reported }),
  });
  const isSame = canonicalJson(silent.record) === canonicalJson(snapshot.record);
  return { outcome: 'unchanged', accepted: isSame ? null : silent };
}

/** True when the config now defines another route by the same name, so that the old state does not apply. */
function isOtherRoute(stored: RouteSummary, answer: RouteSummary): boolean {
  return describeRoute(stored) !== describeRoute(answer);
}

function hasOtherUnits(stored: RouteSummary, answer: RouteSummary): boolean {
  const [before, after] = [stored.destination.decimals, answer.destination.decimals];
  return before !== null && after !== null && before !== after;
}

function describeRoute({ source, destination, amount, funder, recipient }: RouteSummary): string {
  const ends = [source, destination].map(({ chainId, token }) => ({ chainId, token }));
  return canonicalJson([...ends, amount, funder, recipient]);
}

function changedMembers(stored: JsonObject, raw: JsonObject): string[] {
  return Object.keys(raw).filter(
    (key) => !SILENT.has(key) && canonicalJson(stored[key] ?? null) !== canonicalJson(raw[key] ?? null),
  );
}

/** Longest confirmation of a return without times, which may come from a lagging replica: four polls, 15 s apart. */
const TIMELESS_CONFIRM_MS = 45_000;

/**
 * Conditions of a decision.
 * `exact`: the answer came from a poll of this subject, not from a page.
 * `history`: to every claim that is not served yet, the known state (snapshot, else record) is history.
 * `confirmAfterMs`: how long exact polls must repeat a stale answer; 45 s at most for a return without times.
 */
export type DecideContext = { nowMs: number; exact: boolean; history: boolean; confirmAfterMs: number };

/** Compares an answer with the snapshot. Pure: the caller stores and emits. */
export function decide(snapshot: Snapshot | null, record: UpstreamRecord, context: DecideContext): Decision {
  if (snapshot?.compact === true) {
    const compact = decideCompact(snapshot, record, context);
    if (compact !== null) return compact;
  } else if (snapshot?.salvaged === true) {
    const salvaged = decideSalvaged(snapshot, record);
    if (salvaged !== null) return salvaged;
  }
  if (subjectKind(record.subject) === 'route') return decideRoute(snapshot, record);
  if (snapshot === null || !snapshot.reported) {
    const unseen = decideUnseen(snapshot, record, context);
    if (unseen !== null) return unseen;
  }
  if (snapshot === null) return { outcome: 'unchanged', accepted: null };
  if (isUnknown(snapshot.status)) {
    if (isUnknown(record.status)) return { outcome: 'unchanged', accepted: null };
    return changed(snapshot, record, { completeness: 'replaces', regression: false });
  }
  const judged = judge(snapshot, record);
  if ('fresh' in judged) return judged.fresh;
  const { reason } = judged;
  if (!context.exact) return { outcome: 'stale', reason, unconfirmed: null };
  const unconfirmed = unconfirmedOf(snapshot, judged, context.nowMs);
  if (context.nowMs - unconfirmed.sinceMs < confirmAfterMs(snapshot, record, { reason, ...context })) {
    return { outcome: 'stale', reason, unconfirmed };
  }
  return changed(snapshot, record, { completeness: 'replaces', regression: reason !== 'unknown' });
}

/**
 * Decides on an answer for a compact snapshot. The same state replaces it without an event, unless it is news to a
 * claim: its event has expired from the log. Null when the answer is another state, which is judged like any other.
 */
function decideCompact(
  snapshot: Snapshot,
  record: UpstreamRecord,
  { history }: DecideContext,
): Decision | null {
  const isSame =
    snapshot.status.toLowerCase() === record.status.toLowerCase() &&
    compareTimes(snapshot.updatedAt, record.updatedAt) === 'same';
  if (!isSame || isUnknown(record.status)) return null;
  return history ? { outcome: 'unchanged', accepted: acceptedOf(record) } : first(record, acceptedOf(record));
}

/** Decides on an answer for a partly read snapshot: replaces it, with an event if the status moved; null to confirm first. */
function decideSalvaged(snapshot: Snapshot, record: UpstreamRecord): Decision | null {
  if (isUnknown(record.status)) return { outcome: 'unchanged', accepted: null };
  const isSame =
    snapshot.status === '' ||
    snapshot.status.toLowerCase() === record.status.toLowerCase() ||
    !snapshot.reported;
  if (isSame || subjectKind(record.subject) === 'route')
    return { outcome: 'unchanged', accepted: acceptedOf(record) };
  return 'fresh' in judge(snapshot, record)
    ? changed(snapshot, record, { completeness: 'replaces', regression: false })
    : null;
}

/** Decides on a first observation, or the first for a claim to which it is not history; null otherwise. */
function decideUnseen(
  snapshot: Snapshot | null,
  record: UpstreamRecord,
  context: DecideContext,
): Decision | null {
  // An id that the upstream has not indexed yet is not news: polling continues.
  if (isUnknown(record.status)) return null;
  if (snapshot === null) {
    const accepted = acceptedOf(record);
    return context.history ? { outcome: 'history', accepted } : first(record, accepted);
  }
  if (context.history) return null;
  const judged = judge(snapshot, record);
  if (!('fresh' in judged)) return null;
  const decision = judged.fresh;
  if (decision.outcome === 'unchanged') return first(record, decision.accepted ?? snapshot);
  // Claims to which the snapshot was history need this difference as well; for all of them it is the first event.
  const type = eventType(record.subject, record.status);
  return { ...decision, transition: { ...decision.transition, type } };
}

function first(record: UpstreamRecord, { status, updatedAt, record: content }: Accepted): Decision {
  const changes = Object.keys(content).filter((key) => key !== 'updatedAt');
  const readable = changes.filter((key) => !record.unreadable.includes(key));
  // Without a status, only its failure names the event.
  const failure = status === UNSTATED ? partialFailure({}, content, readable) : null;
  return {
    outcome: 'first',
    accepted: { status, updatedAt, record: content },
    transition: {
      type: eventType(record.subject, failure ?? status),
      status,
      previousStatus: null,
      changes,
      skipped: false,
      regression: false,
    },
  };
}

type Fresh = Extract<Decision, { outcome: 'unchanged' | 'changed' }>;

/** An answer that needs confirmation; `keys` identify its unconfirmed facts. */
type Stale = { reason: StaleReason; keys: readonly string[] };

function judge(snapshot: Snapshot, record: UpstreamRecord): { fresh: Fresh } | Stale {
  const { subject, status, updatedAt } = record;
  const statusKey = `${status.toLowerCase()}@${updatedAt ?? ''}`;
  if (isUnknown(status)) return { reason: 'unknown', keys: [statusKey] };
  const order = compareTimes(snapshot.updatedAt, updatedAt);
  if (order === 'older') return { reason: 'older', keys: [statusKey] };
  const fresh = decideFresh(snapshot, record);
  if (order === 'newer' || fresh.outcome === 'unchanged') return { fresh };
  // Only the status itself confirms a step back: not a value that was repeated beside another status.
  if (stepBetween(subject, snapshot.status, status) === 'backward') {
    return { reason: 'backward', keys: [statusKey] };
  }
  const returned = returnedValues(snapshot, withoutUnreadable(fresh.accepted, record), {
    subject,
    answered: record.raw,
    isTimed: snapshot.updatedAt !== null && updatedAt !== null,
  });
  return returned.length > 0 ? { reason: 'returned', keys: returned } : { fresh };
}

/** Removes unreadable members: they are stored where nothing was stored, but state nothing. */
function withoutUnreadable(accepted: Accepted, { unreadable }: UpstreamRecord): Accepted {
  const readable = Object.entries(accepted.record).filter(([key]) => !unreadable.includes(key));
  return { ...accepted, record: Object.fromEntries(readable) };
}

/** An unconfirmed answer stays unconfirmed while later answers repeat its key, whatever else they state. */
function unconfirmedOf({ unconfirmed }: Snapshot, { keys }: Stale, nowMs: number): Unconfirmed {
  return unconfirmed !== null && keys.includes(unconfirmed.key)
    ? unconfirmed
    : { key: keys[0] ?? '', sinceMs: nowMs };
}

function confirmAfterMs(
  snapshot: Snapshot,
  record: UpstreamRecord,
  context: DecideContext & { reason: StaleReason },
): number {
  const isTimeless = snapshot.updatedAt === null && record.updatedAt === null;
  if (!isTimeless || context.reason === 'unknown') return context.confirmAfterMs;
  return Math.min(context.confirmAfterMs, TIMELESS_CONFIRM_MS);
}

function decideFresh(snapshot: Snapshot, record: UpstreamRecord): Fresh {
  const newer = compareTimes(snapshot.updatedAt, record.updatedAt) === 'newer';
  const completeness = newer ? 'replaces' : 'grows';
  const step = stepBetween(record.subject, snapshot.status, record.status);
  return changed(snapshot, record, { completeness, regression: step === 'backward' });
}

function changed(
  snapshot: Snapshot,
  record: UpstreamRecord,
  how: { completeness: 'grows' | 'replaces'; regression: boolean },
): Fresh {
  const step = stepBetween(record.subject, snapshot.status, record.status);
  const moved = step !== 'same';
  const { changes, merged } = diffRecords(snapshot.record, record.raw, {
    completeness: how.completeness,
    unreadable: record.unreadable,
  });
  // A status in another case is the same status.
  const reported = moved ? changes : changes.filter((path) => path !== statusMember(record.subject));
  const accepted = accept(snapshot, record, merged);
  if (!moved && reported.length === 0) {
    const same =
      accepted.updatedAt === snapshot.updatedAt && canonicalJson(merged) === canonicalJson(snapshot.record);
    return { outcome: 'unchanged', accepted: same ? null : accepted };
  }
  const failure =
    moved && record.status !== UNSTATED ? null : partialFailure(snapshot.record, merged, reported);
  const word = failure ?? (moved ? record.status : 'updated');
  // A move at a newer time is a new state, described whole: omitted members belonged to the old state.
  const whole = moved && how.completeness === 'replaces';
  return {
    outcome: 'changed',
    accepted: whole ? acceptedOf(record) : accepted,
    transition: {
      type: eventType(record.subject, word),
      status: record.status,
      previousStatus: snapshot.status,
      changes: reported,
      skipped: step === 'skipped',
      regression: how.regression,
    },
  };
}

function accept(snapshot: Snapshot, record: UpstreamRecord, merged: JsonObject): Accepted {
  const { status, updatedAt, raw } = record;
  return { status, updatedAt: updatedAt ?? snapshot.updatedAt, record: merged, answered: raw };
}

function acceptedOf(record: UpstreamRecord): Accepted {
  return { status: record.status, updatedAt: record.updatedAt, record: record.raw };
}

function compareTimes(stored: number | null, answered: number | null): 'older' | 'same' | 'newer' {
  if (stored === null || answered === null || stored === answered) return 'same';
  return answered < stored ? 'older' : 'newer';
}

function isUnknown(status: string): boolean {
  return status.toLowerCase() === UNKNOWN;
}

/** The record with the snapshot's status when it states none: an omission is not a change. */
export function withStatus(record: UpstreamRecord, snapshot: Snapshot | null): UpstreamRecord {
  if (record.status !== UNSTATED || snapshot === null || isUnknown(snapshot.status)) return record;
  return { ...record, status: snapshot.status };
}

/** Longest status in a type, since patterns are matched against types. The event has the whole status. */
const LONGEST_WORD = 128;

/** `<kind>.<status in lower case>`, `updated` without a status. Characters outside `a-z0-9._-` become hyphens. */
export function eventType(subject: SubjectId, status: string): string {
  if (status === UNSTATED) return `${eventKind(subject)}.updated`;
  const word = status
    .slice(0, LONGEST_WORD)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-');
  return `${eventKind(subject)}.${word}`;
}
