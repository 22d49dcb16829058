import { performance } from 'node:perf_hooks';
import { isFinishedByStatus } from '../../domain/cadence/next-poll.ts';
import type { SubjectPlan } from '../../domain/cadence/subject-plan.ts';
import { unseenSnapshot } from '../../domain/changes/next-snapshot.ts';
import type { Snapshot, UpstreamRecord } from '../../domain/subjects/record.ts';
import { asSubjectId, intentId, type SubjectId } from '../../domain/subjects/subject.ts';
import { type Claim, parseClaimKey } from '../../domain/subjects/subscription.ts';
import type { PollResponse } from '../../pollers/poll-response.ts';
import type { PollTarget } from '../../pollers/poll-subject.ts';
import type { PollStart } from '../../store/poll-start.ts';
import { commitDue } from './commit-flagged.ts';
import { commitRecord, commitShort } from './commit-record.ts';
import { namesFurther, openTransfer, planForMore, reportUnreadable } from './ingest-page.ts';
import { planOf } from './plan-subject.ts';
import type { PollContext } from './poll-context.ts';
import { type Adapter, AFTER_SUPERSEDED, answered, failed } from './poll-ends.ts';
import { missingRecord } from './poll-failures.ts';

/** Requests a subject from the upstream. Throws UpstreamFailure, or the signal's reason. */
export type Poll = (target: PollTarget, signal: AbortSignal) => Promise<PollResponse>;

/** Polls subjects with a record of their own: requests and ingests it, commits events due by the clock, and plans. */
export function recordAdapter(deps: PollContext, poll: Poll): Adapter {
  return {
    isOver: async (start) => {
      if (!(await isOver(deps, start))) return false;
      return !namesFurther(deps, start) || (await planForMore(deps, start, [])).state !== 'watched';
    },
    poll: async (start, signal) => {
      const { record, answeredMs } = await requestRecord(deps, { request: poll, start }, signal);
      const ingested = await commitRecord(deps, record, start, {
        asOf: start.asOf,
        nowMs: answeredMs,
        price: start.price,
        exact: true,
        claims: start.claims.filter((claim) => !claim.served),
      });
      if (ingested.outcome === 'superseded') return answered(AFTER_SUPERSEDED);
      // An unconfirmed answer makes no event, but is polled again soon.
      const unconfirmed = ingested.outcome === 'stale' ? { key: '', sinceMs: start.nowMs } : null;
      const snapshot = ingested.snapshot === null ? null : { ...ingested.snapshot, unconfirmed };
      const plan = planOf(deps, { ...start, snapshot }, start);
      let present = snapshot ?? unseenSnapshot(start.nowMs);
      if (unconfirmed === null) {
        const affected = { ...start, snapshot: present };
        present = await commitDue(deps, affected, { due: plan.due, nowMs: start.nowMs });
      }
      if (ingested.stored && snapshot !== null) await noteTransfer(deps, start, present, plan);
      const own = plan.next();
      if (unconfirmed !== null || !namesFurther(deps, { ...start, snapshot })) return answered(own);
      const further = await planForMore(deps, start, record.names.map(intentId));
      return answered(own ?? (further.state === 'watched' ? further.next : null));
    },
    failed: async (_start, failure) => failed(failure),
  };
}

/** True when its status has ended the tracking of a subject, and no claim or request waits for an answer about it. */
export async function isOver(deps: PollContext, start: PollStart): Promise<boolean> {
  // The last poll before has failed: a deployment without this vault may refuse each.
  const { fails, unseenUntilMs, nowMs } = start;
  const isPast = unseenUntilMs !== null && nowMs >= unseenUntilMs && deps.clocks.mayActAt(nowMs);
  if (isPast && fails > 0) return true;
  const isAwaited = start.claims.some((claim) => !claim.served);
  const { finished } = deps.rules;
  if (isAwaited || start.isRequested || !isFinishedByStatus({ ...start, finished })) return false;
  // A process that was killed may have stored the end of a transfer without reporting that it is short.
  await commitShort(deps, start, start);
  return true;
}

/** Makes the request of a poll. Returns the record of its subject, and the time of the answer (Redis time). */
export async function requestRecord(
  deps: PollContext,
  { request: poll, start }: { request: Poll; start: PollStart },
  signal: AbortSignal,
): Promise<{ record: UpstreamRecord; answeredMs: number }> {
  const { subject, route, nowMs } = start;
  const requestedAt = performance.now();
  const response = await poll({ subject, route, nowMs }, signal);
  const answeredMs = nowMs + Math.round(performance.now() - requestedAt);
  reportUnreadable(deps, subject, response);
  if (response.useless) throw response.useless;
  const record = response.records.find((candidate) => candidate.subject === subject);
  if (record === undefined) throw missingRecord(subject, response);
  return { record, answeredMs };
}

/** Notes with the wallets of a transfer the result of an answer about it alone, or about its transaction. */
export async function noteTransfer(
  { stores: { wallets } }: PollContext,
  { subject, nowMs, claims }: { subject: SubjectId; nowMs: number; claims: readonly Claim[] },
  snapshot: Snapshot,
  { isOver }: SubjectPlan,
): Promise<void> {
  const transfer = openTransfer(subject, snapshot, nowMs);
  await wallets.noteTransfer(walletKeys(claims), { ...transfer, isOver });
}

function walletKeys(claims: readonly Claim[]): SubjectId[] {
  return claims
    .map((claim) => parseClaimKey(claim.key).subject)
    .filter((subject) => subject.startsWith('wallet:'))
    .map(asSubjectId);
}
