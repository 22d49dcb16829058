import {
  type PlanFacts,
  type PlanInput,
  planSubject,
  type SubjectPlan,
} from '../../domain/cadence/subject-plan.ts';
import type { Joined } from '../../domain/changes/second-source.ts';
import { isPollable } from '../../domain/subjects/kinds.ts';
import type { Snapshot, UpstreamRecord } from '../../domain/subjects/record.ts';
import type { Claim } from '../../domain/subjects/subscription.ts';
import type { Commit } from '../../store/subjects.ts';
import type { CommitContext } from './poll-context.ts';

/**
 * Circumstances of a record. `asOf` is the commit counter before the request, `nowMs` the time of the answer, `price` that of a
 * request then; `exact` is false for a page; `claims` are those that the record serves: the subject's own, or those of the
 * wallet whose page showed it; `joined` where another source than v1 answered.
 */
export type RecordContext = {
  asOf: string;
  nowMs: number;
  price: number;
  exact: boolean;
  claims: readonly Claim[];
  joined?: Joined;
};

const CLOCKS_RETRY_MS = 30_000;

/** Plans a subject by config and statistics. While clocks disagree nothing is due by time; only a certain time ends tracking. */
export function planOf(
  { rules: { finished }, learning, clocks }: CommitContext,
  input: PlanInput,
  context: PlanFacts,
): SubjectPlan {
  const { subject, snapshot } = input;
  const { nowMs } = context;
  const learnedMs = snapshot === null ? null : learning.overdueAfterMs(subject, snapshot);
  const whole = { ...context, learnedMs, finished, model: learning.model };
  const plan = planSubject(input, whole);
  if (clocks.mayActAt(nowMs)) return plan;
  const certain = planSubject(input, { ...whole, nowMs: clocks.certainMs(nowMs) });
  const isWaiting = plan.due.length > 0;
  return {
    due: [],
    alarmMs: isWaiting ? CLOCKS_RETRY_MS : plan.alarmMs,
    isOver: certain.isOver,
    next: () => {
      const next = plan.next() ?? certain.next();
      if (next === null || !isWaiting) return next;
      return { ...next, alarmMs: Math.min(next.alarmMs ?? CLOCKS_RETRY_MS, CLOCKS_RETRY_MS) };
    },
  };
}

/** Time for which a transfer that a page has just shown for the first time needs no poll of its own. */
const SHOWN_REST_MS = 30_000;

/** Longest wait for the first poll of a transfer without a snapshot. */
const UNSEEN_LATEST_MS = 600_000;

/** Plans the first poll of a subject that only a page has shown so far; null when it is finished. */
export function firstPoll(
  deps: CommitContext,
  record: UpstreamRecord,
  after: Snapshot | null,
  observation: RecordContext,
): NonNullable<Commit['track']> | null {
  const { subject } = record;
  if (observation.exact || !isPollable(subject)) return null;
  const { nowMs, price } = observation;
  const input = { subject, snapshot: after, claims: [] };
  const plan = planOf(deps, input, {
    nowMs,
    price,
    subscriptions: new Map(),
    imported: null,
    unseenUntilMs: null,
    route: null,
  });
  const next = plan.next();
  if (next === null) return null;
  const { virtualSeconds, latestMs } = next;
  return { virtualSeconds, restMs: SHOWN_REST_MS, latestMs: latestMs ?? UNSEEN_LATEST_MS };
}
