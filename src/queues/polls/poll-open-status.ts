import { BoundedMap, bytesOfTexts, CACHES } from '../../domain/caches.ts';
import { compareStatuses, isFollowed, joinOpen } from '../../domain/changes/second-source.ts';
import { UNKNOWN } from '../../domain/subjects/kinds.ts';
import type { Snapshot, UpstreamRecord } from '../../domain/subjects/record.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import { loggedStatus } from '../../log.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { commitDue } from './commit-flagged.ts';
import { commitRecord } from './commit-record.ts';
import { planOf } from './plan-subject.ts';
import type { PollContext } from './poll-context.ts';
import { type Adapter, AFTER_SUPERSEDED, answered, failed } from './poll-ends.ts';
import { noteTransfer, type Poll, requestRecord } from './poll-record.ts';

/**
 * Polls transfers at the open source whose status v1 decides (`upstream.statusSource: both`). Only a status ahead of that of v1
 * is committed, and its withdrawal; see domain/changes/second-source.ts. A transfer that v1 has not shown is not polled.
 */
export function openStatusAdapter(deps: PollContext, poll: Poll): Adapter {
  const differences = new BoundedMap<SubjectId, string>({
    ...CACHES.statusDifferences,
    bytesOf: (subject, difference) => bytesOfTexts(subject, difference),
  });
  return {
    isOver: async ({ subject, snapshot }) => snapshot === null || !isFollowed(subject, snapshot),
    poll: async (start, signal) => {
      const { record, answeredMs } = await requestRecord(deps, { request: poll, start }, signal);
      let { snapshot } = start;
      if (snapshot !== null) compare(deps, { record, snapshot }, differences);
      const joined = snapshot === null || isUnknown(record) ? null : joinOpen(snapshot, record);
      let isStored = false;
      if (joined !== null) {
        const { asOf, price } = start;
        const claims = start.claims.filter((claim) => !claim.served);
        const context = { asOf, nowMs: answeredMs, price, exact: true, claims, joined };
        const ingested = await commitRecord(deps, joined.record, start, context);
        if (ingested.outcome === 'superseded') return answered(AFTER_SUPERSEDED);
        const unconfirmed = ingested.outcome === 'stale' ? { key: '', sinceMs: start.nowMs } : null;
        snapshot = ingested.snapshot === null ? null : { ...ingested.snapshot, unconfirmed };
        isStored = ingested.stored && unconfirmed === null;
      }
      return answered(await planNext(deps, { ...start, snapshot }, isStored));
    },
    failed: async (_start, failure) => failed(failure),
  };
}

function isUnknown({ status }: UpstreamRecord): boolean {
  return status.toLowerCase() === UNKNOWN;
}

/** Plans the next poll as for v1; null once no step is left that the open source could report. */
async function planNext(deps: PollContext, start: PollStart, isStored: boolean) {
  const { subject, snapshot } = start;
  if (snapshot === null || !isFollowed(subject, snapshot)) return null;
  const plan = planOf(deps, { ...start, snapshot }, start);
  let present = snapshot;
  if (snapshot.unconfirmed === null) {
    present = await commitDue(deps, { ...start, snapshot }, { due: plan.due, nowMs: start.nowMs });
  }
  if (isStored) await noteTransfer(deps, start, present, plan);
  return plan.next();
}

/** Counts the relation of both statuses, and logs each difference of a transfer once. */
function compare(
  { signals, log }: PollContext,
  { record, snapshot }: { record: UpstreamRecord; snapshot: Snapshot },
  differences: BoundedMap<SubjectId, string>,
): void {
  const { subject, status: open } = record;
  const v1 = snapshot.ahead ?? snapshot.status;
  const result = isUnknown(record) ? 'unknown' : compareStatuses(subject, v1, open);
  signals.emit('status.compared', { result });
  const difference = `${v1} ${open}`;
  if (result === 'agrees' || result === 'unknown') {
    differences.delete(subject);
    return;
  }
  if (differences.get(subject) === difference) return;
  differences.set(subject, difference);
  log[result === 'differs' ? 'warn' : 'info'](
    { subject, result, v1: loggedStatus(v1), open: loggedStatus(open) },
    'status.differs',
  );
}
