import type { PlanInput } from '../../domain/cadence/subject-plan.ts';
import { decide } from '../../domain/changes/decide.ts';
import { type Decision, mayBeFoundAgain } from '../../domain/changes/decision.ts';
import {
  fundedAt,
  type NewSnapshot,
  nextSnapshot,
  waitingSince,
} from '../../domain/changes/next-snapshot.ts';
import { type Joined, joined } from '../../domain/changes/second-source.ts';
import { eventId, identify } from '../../domain/events/event.ts';
import type { Promised } from '../../domain/events/event-schema.ts';
import { makeEvent } from '../../domain/events/make-event.ts';
import { canonicalJson } from '../../domain/json.ts';
import { deliveredRatio, shortEvent } from '../../domain/quotes/promised.ts';
import { readRoute } from '../../domain/quotes/route.ts';
import { isPollable, UNKNOWN } from '../../domain/subjects/kinds.ts';
import type { Snapshot, UpstreamRecord } from '../../domain/subjects/record.ts';
import { eventKind, intentId, subjectKind } from '../../domain/subjects/subject.ts';
import { type Claim, claimsAfterEvent, isHistoryFor } from '../../domain/subjects/subscription.ts';
import { routeName } from '../../domain/transfers/transfer.ts';
import { transferMove } from '../../domain/transfers/transfer-move.ts';
import type { Signals } from '../../signals.ts';
import type { Commit, SubjectEntry } from '../../store/subjects.ts';
import { commitFlagged } from './commit-flagged.ts';
import { completeDecision } from './complete-decision.ts';
import { firstPoll, type RecordContext } from './plan-subject.ts';
import type { CommitContext } from './poll-context.ts';

/**
 * Result of a record: the outcome, the current snapshot as far as this process knows it, and whether anything was stored.
 * `isSettled`: the same record once more would change nothing; `isCounted`: the commit was counted with the wallets (`moves`).
 * `claims`: of the subject then. `before`: the state it was decided by. `outdated`: that was not read, and does not hold.
 */
export type IngestedRecord = {
  outcome: Decision['outcome'] | 'superseded' | 'outdated';
  before: SubjectEntry;
  claims: Claim[];
  snapshot: Snapshot | null;
  stored: boolean;
  isSettled: boolean;
  isCounted: boolean;
};

/**
 * Ingests a record, and emits where less was delivered than its quote's minimum. That is an event of its own behind the
 * record's: after a crash between the two the subject is polled again, and only the second is made.
 */
export async function commitRecord(
  deps: CommitContext,
  record: UpstreamRecord,
  entry: SubjectEntry,
  observation: RecordContext,
): Promise<IngestedRecord> {
  if (entry.fault !== undefined) throw new Error(entry.fault);
  const ingested = await ingestRecord(deps, record, entry, observation);
  if (ingested.outcome === 'outdated') return ingested;
  noteEstimate(deps, record, entry.promised);
  const { outcome, snapshot } = ingested;
  const { promised } = entry;
  if (promised === null || snapshot === null || outcome === 'stale' || outcome === 'superseded')
    return ingested;
  const { subject } = record;
  const ratio = deliveredRatio(snapshot, promised);
  const hasRatio = entry.snapshot?.compact === true || deliveredRatio(entry.snapshot, promised) !== null;
  if (ingested.stored && ratio !== null && !hasRatio) {
    deps.signals.emit('transfer.delivered', { route: routeName(snapshot.record), ratio });
  }
  const claims = merge(entry.claims, observation.claims);
  const short = await commitShort(deps, { subject, snapshot, claims, promised }, observation);
  return short === null ? ingested : { ...ingested, snapshot: short, stored: true, isSettled: false };
}

/** Emits a delivery below the quote's minimum, once. Returns the current snapshot; null: nothing to emit, or lost a race. */
export async function commitShort(
  deps: CommitContext,
  entry: PlanInput & { promised: Promised | null },
  { nowMs }: { nowMs: number },
): Promise<Snapshot | null> {
  const { subject, snapshot, promised } = entry;
  const event = snapshot === null ? null : shortEvent(subject, snapshot, promised);
  if (snapshot === null || event === null) return null;
  return commitFlagged(deps, { ...entry, snapshot }, { event, claimKeys: null, nowMs });
}

function noteEstimate({ learning }: CommitContext, { raw }: UpstreamRecord, promised: Promised | null): void {
  const priced = readRoute(raw)?.fillEstimateSeconds ?? null;
  if (priced !== null) learning.sawEstimate(routeName(raw), priced);
  const { source, destination, estimateSeconds } = promised ?? {};
  if (source?.chainId === undefined || destination?.chainId === undefined) return;
  if (estimateSeconds !== undefined) {
    learning.sawEstimate(`${source.chainId}:${destination.chainId}`, estimateSeconds);
  }
}

/**
 * Ingests a record: decides its meaning and stores it with its event in one atomic step. The intents that it names become
 * subjects first, so that after a crash in between the next poll sees the change again.
 */
async function ingestRecord(
  deps: CommitContext,
  raw: UpstreamRecord,
  entry: SubjectEntry,
  observation: RecordContext,
): Promise<IngestedRecord> {
  const answer = observation.joined ?? joined(deps.rules.statusSource, raw, entry.snapshot);
  const { record } = answer;
  const { subject } = record;
  const fresh = observation.claims.filter((claim) => !isNotified(entry, claim, record));
  const first = decideRecord(deps, record, entry, fresh, observation);
  const { decision, claimKeys } = await completeDecision(deps, record, entry, { fresh, decision: first });
  if (entry.snapshot === null && record.status.toLowerCase() === UNKNOWN) {
    return endWithout(deps, record, { state: entry, decision });
  }
  const commit = commitOf(deps, answer, { entry, decision, claimKeys }, { fresh, ...observation });
  if (commit === null) {
    if (entry.basis === undefined) learn(deps, record, entry, { decision, nowMs: observation.nowMs });
    return endWithout(deps, record, { state: entry, decision });
  }
  await claimNamed(deps, record, merge(entry.claims, fresh));
  const reported = commit.event !== undefined || (entry.snapshot?.reported ?? false);
  const stored = commit.snapshot ? { ...commit.snapshot, commit: 0, reported } : entry.snapshot;
  const { unconfirmed = stored?.unconfirmed ?? null } = commit;
  const after = stored && { ...stored, unconfirmed: unconfirmed === 'clear' ? null : unconfirmed };
  const track = firstPoll(deps, record, after, observation);
  const result = await deps.stores.subjects.commit(track === null ? commit : { ...commit, track });
  if (result.outcome === 'superseded') {
    const kind = subjectKind(subject);
    deps.signals.emit('record.decided', { subject, kind, outcome: 'superseded', reason: null });
    if (!observation.exact && isPollable(subject)) await deps.stores.plan.pollSoon([subject]);
    return notStored(entry, 'superseded');
  }
  if (result.outcome === 'outdated') return notStored(entry, 'outdated');
  const before = { ...entry, seenAtMs: result.seenAtMs };
  signalDecision(deps.signals, record, decision);
  if (result.outcome === 'committed') learn(deps, record, before, { decision, nowMs: observation.nowMs });
  // The process that committed an event emits it.
  if (commit.event && result.outcome === 'committed') {
    const { event } = commit.event;
    deps.signals.emit('event.committed', { event, kind: subjectKind(subject) });
    const moved =
      after !== null && isUntimed(deps, record, observation) ? { ...after, updatedAt: null } : after;
    const move = moved === null ? null : transferMove(subject, entry.snapshot, moved);
    if (move !== null) deps.signals.emit('transfer.moved', { move, eventId: event.id });
  }
  const isCounted = result.outcome === 'committed';
  const isForAll = commit.event !== undefined && commit.event.claimKeys === null;
  const isServed = isForAll || decision.outcome === 'history';
  const claims = isServed ? claimsAfterEvent(entry.claims, fresh) : entry.claims;
  return {
    outcome: decision.outcome,
    before,
    claims,
    snapshot: after === null ? null : { ...after, commit: Number(result.commit) },
    stored: true,
    isSettled:
      isCounted &&
      ((isForAll && entry.basis !== undefined) || (entry.snapshot !== null && fresh.length === 0)) &&
      isSettledBy(deps, raw, { ...entry, snapshot: after }, observation),
    isCounted,
  };
}

/** The result of a record that changes nothing. What was not read shows no such thing. */
function endWithout(
  { signals }: CommitContext,
  record: UpstreamRecord,
  { state, decision }: { state: SubjectEntry; decision: Decision },
): IngestedRecord {
  if (state.basis !== undefined) return notStored(state, 'outdated');
  signalDecision(signals, record, decision);
  return { ...notStored(state, decision.outcome), isSettled: decision.outcome === 'unchanged' };
}

function notStored(before: SubjectEntry, outcome: IngestedRecord['outcome']): IngestedRecord {
  const { snapshot, claims } = before;
  return { outcome, before, claims, snapshot, stored: false, isSettled: false, isCounted: false };
}

/** True when a record that was just stored would change nothing if it came again. */
function isSettledBy(
  deps: CommitContext,
  raw: UpstreamRecord,
  entry: SubjectEntry,
  observation: RecordContext,
): boolean {
  const answer = joined(deps.rules.statusSource, raw, entry.snapshot);
  const decision = decideRecord(deps, answer.record, entry, [], observation);
  const context = { fresh: [], ...observation };
  return (
    decision.outcome === 'unchanged' &&
    commitOf(deps, answer, { entry, decision, claimKeys: null }, context) === null
  );
}

/** Learns the timing of a stage from a response. An unconfirmed response teaches nothing. */
function learn(
  deps: CommitContext,
  { subject, status }: UpstreamRecord,
  { snapshot: before, seenAtMs }: SubjectEntry,
  { decision, nowMs }: { decision: Decision; nowMs: number },
): void {
  if (
    before === null ||
    before.compact === true ||
    (decision.outcome !== 'unchanged' && decision.outcome !== 'changed')
  )
    return;
  deps.learning.saw({ subject, before, seenAtMs, status, nowMs });
}

function decideRecord(
  deps: CommitContext,
  record: UpstreamRecord,
  entry: SubjectEntry,
  fresh: readonly Claim[],
  observation: RecordContext,
): Decision {
  const seenAt = entry.snapshot === null ? record.updatedAt : entry.snapshot.updatedAt;
  return decide(entry.snapshot, record, {
    nowMs: observation.nowMs,
    exact: observation.exact,
    history: fresh.every((claim) => isHistoryFor(claim, seenAt)),
    // Only a certain time confirms a doubtful response.
    confirmAfterMs: deps.clocks.mayActAt(observation.nowMs)
      ? deps.rules.confirmAfterMs
      : Number.POSITIVE_INFINITY,
  });
}

/** True for a state of the open source, which has no time: that of the snapshot is of a state of v1 before. */
function isUntimed(
  { rules: { statusSource } }: CommitContext,
  { updatedAt }: UpstreamRecord,
  { joined }: RecordContext,
): boolean {
  return updatedAt === null && (statusSource === 'open' || joined !== undefined);
}

function commitOf(
  deps: CommitContext,
  { record, ahead, isBehind }: Joined,
  { entry, decision, claimKeys }: { entry: SubjectEntry; decision: Decision; claimKeys: string[] | null },
  context: RecordContext & { fresh: readonly Claim[] },
): Commit | null {
  const { learning, stores } = deps;
  const { subject } = record;
  const { nowMs, asOf, fresh } = context;
  const before = entry.snapshot;
  const { epoch } = stores.subjects.epoch.begun;
  const present: { present?: Snapshot } = before === null ? {} : { present: before };
  const base: Commit = { subject, before: entry, asOf, token: '-', claims: fresh, ...present };
  // An answer without a status of its own confirms and refutes nothing.
  const isSettled = before?.unconfirmed != null && !isBehind;
  const settled: { unconfirmed?: 'clear' } = isSettled ? { unconfirmed: 'clear' } : {};
  switch (decision.outcome) {
    case 'stale': {
      const { unconfirmed } = decision;
      const news =
        unconfirmed !== null &&
        (unconfirmed.key !== before?.unconfirmed?.key || unconfirmed.sinceMs !== before.unconfirmed.sinceMs);
      if (!news && fresh.length === 0) return null;
      return news ? { ...base, unconfirmed } : base;
    }
    case 'unchanged': {
      const isOtherwise = before !== null && before.compact !== true && before.ahead !== ahead;
      const accepted = decision.accepted ?? (isOtherwise ? before : null);
      if (accepted === null) {
        return fresh.length === 0 && !isSettled ? null : { ...base, ...settled };
      }
      const snapshot = nextSnapshot(before, accepted, { subject, nowMs, event: false, ahead });
      return { ...base, ...settled, snapshot, token: tokenOf(subject, snapshot) };
    }
    case 'history': {
      const snapshot = nextSnapshot(before, decision.accepted, { subject, nowMs, event: false });
      return { ...base, snapshot: { ...snapshot, epoch }, token: tokenOf(subject, snapshot) };
    }
    case 'first':
    case 'changed': {
      const { accepted, transition } = decision;
      const afterRestore = mayBeFoundAgain(
        { snapshot: before, stored: entry.claims, fresh },
        accepted.updatedAt,
        {
          ...stores.subjects.epoch.begun,
          nowMs,
        },
      );
      const isTimeless = accepted.updatedAt === null;
      const isAgain = decision.outcome === 'first' && (before?.compact === true || claimKeys !== null);
      const identity = identify(
        { subject, type: transition.type, record: accepted.record },
        {
          emitted: before?.emitted ?? [],
          restoredIn: afterRestore && isTimeless ? epoch : null,
          isAgain,
        },
      );
      // A state that is reported once more has the sequence that it had.
      const isCounted = !isAgain || before?.reported !== true || identity.isNew;
      const snapshot = {
        ...nextSnapshot(before, accepted, { subject, nowMs, event: isCounted, ahead }),
        emitted: [...identity.emitted],
        epoch,
      };
      const event = makeEvent({
        subject: { kind: eventKind(subject), id: subject },
        sequence: snapshot.sequence,
        epoch,
        identity,
        afterRestore: afterRestore || identity.restoredIn !== null,
        transition,
        record: accepted.record,
        updatedAt: isUntimed(deps, record, context) ? null : accepted.updatedAt,
        waitingSince: waitingSince(subject, before),
        before: decision.outcome === 'changed' && !before?.compact ? (before?.record ?? null) : null,
        promised: entry.promised,
        fundedAt: fundedAt(subject, snapshot),
        expectedBy: learning.expectedBy(subject, snapshot, nowMs),
        nowMs,
      });
      return {
        ...base,
        ...settled,
        snapshot,
        token: event.id,
        event: {
          event,
          updatedAt: accepted.updatedAt,
          first: decision.outcome === 'first',
          claimKeys,
        },
      };
    }
  }
}

/** Names a commit without event, so that one sent twice is recognised. */
function tokenOf(subject: string, snapshot: NewSnapshot): string {
  return eventId([subject, String(snapshot.version), canonicalJson(snapshot.record)]);
}

/** Makes the intents that a quote, gasless job or vault names subjects for the same claims. */
async function claimNamed(
  deps: CommitContext,
  record: UpstreamRecord,
  claims: readonly Claim[],
): Promise<void> {
  const kind = subjectKind(record.subject);
  if (kind !== 'quote' && kind !== 'gasless' && kind !== 'vault') return;
  for (const hash of record.names) {
    await deps.stores.subjects.claim(intentId(hash), claims);
  }
}

const SAME_START_SECONDS = 120;

/** True when a claim has been served. False where its start was corrected and the record is no longer history for it. */
function isNotified({ claims, snapshot }: SubjectEntry, claim: Claim, record: UpstreamRecord): boolean {
  const existing = claims.find(({ served, key, atMs }) => served && key === claim.key && atMs === claim.atMs);
  if (existing === undefined) return false;
  const { historyBefore } = existing;
  if (historyBefore === null || claim.historyBefore === null) return true;
  const seenAt = snapshot === null ? record.updatedAt : snapshot.updatedAt;
  const isCorrected = historyBefore - claim.historyBefore > SAME_START_SECONDS;
  return !(isCorrected && isHistoryFor(existing, seenAt) && !isHistoryFor(claim, seenAt));
}

function merge(existing: readonly Claim[], fresh: readonly Claim[]): Claim[] {
  const claimKeys = new Set(existing.map((claim) => claim.key));
  return [...existing, ...fresh.filter((claim) => !claimKeys.has(claim.key))];
}

function signalDecision(signals: Signals, record: UpstreamRecord, decision: Decision): void {
  const { subject } = record;
  const reason = decision.outcome === 'stale' ? decision.reason : null;
  signals.emit('record.decided', { subject, kind: subjectKind(subject), outcome: decision.outcome, reason });
}
