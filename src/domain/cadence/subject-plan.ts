import { unseenSnapshot } from '../changes/next-snapshot.ts';
import type { ImportedState } from '../quotes/promised.ts';
import type { Snapshot } from '../subjects/record.ts';
import type { SubjectId } from '../subjects/subject.ts';
import { type Claim, parseClaimRoot } from '../subjects/subscription.ts';
import {
  type FinishedStatuses,
  firstAlarm,
  isFinished,
  nextPoll,
  nextRoutePoll,
  type PlannedPoll,
} from './next-poll.ts';
import { type OverdueAfter, type TimedEvent, timedMoments } from './timed.ts';
import type { CadenceModel } from './watched.ts';

/** A subject as it stands, and who wants it. `snapshot` is null where the upstream has not shown it yet. */
export type Standing = { subject: SubjectId; snapshot: Snapshot | null; claims: readonly Claim[] };

/** What a subscription wants to be reported by the clock. */
type Wishes = { overdueAfterMs: OverdueAfter | null; warnBeforeMs: number | null };

/**
 * What a plan is made by. `price`: of a request, in weighted seconds; `learnedMs`: after how long the subject is overdue by
 * what was learned; `imported`: the quote itself, where it was imported; `route`: that of a route.
 */
export type PlanContext = {
  nowMs: number;
  price: number;
  model: CadenceModel;
  finished: FinishedStatuses;
  learnedMs: number | null;
  subscriptions: ReadonlyMap<string, Wishes>;
  imported: ImportedState | null;
  route: { everyMs: number } | null;
};

/** An event that the clock has brought about, and the roots of the claims that are reported of it; null for all. */
export type DueEvent = { event: TimedEvent; roots: string[] | null };

/**
 * What is to come for a subject: the events that the clock has brought about by now; in how many ms it makes the next, 0
 * where one is due; whether its tracking is over; and its next poll, null for none.
 */
export type SubjectPlan = {
  due: DueEvent[];
  alarmMs: number | null;
  isOver: boolean;
  next: () => PlannedPoll | null;
};

/** Plans what is to come for a subject from how it stands. */
export function planSubject(standing: Standing, context: PlanContext): SubjectPlan {
  const { subject, snapshot, claims } = standing;
  const { nowMs, price, model, finished, route } = context;
  const moments = momentsOf(standing, context);
  const due = moments.filter(({ atMs }) => atMs <= nowMs);
  const alarmsMs = moments.map(({ atMs }) => atMs);
  return {
    due: due.map(({ event }) => ({ event, roots: rootsFor(event, claims, context.subscriptions) })),
    alarmMs: due.length > 0 ? 0 : firstAlarm(alarmsMs, nowMs),
    isOver: isFinished({ subject, snapshot, nowMs, finished }),
    next: () => {
      if (route !== null) return nextRoutePoll(route);
      const namedAtMs = Math.min(nowMs, ...claims.map(({ atMs }) => atMs));
      const next = nextPoll({ subject, snapshot, nowMs, namedAtMs, price, model, finished, alarmsMs });
      return next.next === 'finish' ? null : next;
    },
  };
}

/** When the clock makes an event of a subject. Nobody is warned of what has happened already. */
function momentsOf(
  { subject, snapshot, claims }: Standing,
  { nowMs, learnedMs, subscriptions, imported }: PlanContext,
): { atMs: number; event: TimedEvent }[] {
  // The clock passes the expiry of an imported quote also where the upstream has not shown the quote yet.
  const shown = snapshot ?? (imported === null ? null : unseenSnapshot(nowMs));
  if (shown === null) return [];
  const wishes = claims.flatMap(({ root }) => wishesOf(root, subscriptions) ?? []);
  const overdue = wishes.flatMap(({ overdueAfterMs: after }) => {
    const ms = after === 'learned' ? learnedMs : after;
    return after === null || ms === null ? [] : [{ after, ms }];
  });
  const warnBeforeMs = wishes.flatMap((wish) => wish.warnBeforeMs ?? []);
  return timedMoments(subject, shown, { overdue, warnBeforeMs, imported }).filter(
    ({ event: { untilMs } }) => untilMs === null || nowMs < untilMs,
  );
}

/** The roots of the claims whose subscriptions configured the time of an event; null for all. */
function rootsFor(
  { overdueAfter, warnBeforeMs }: TimedEvent,
  claims: readonly Claim[],
  subscriptions: ReadonlyMap<string, Wishes>,
): string[] | null {
  if (overdueAfter === null && warnBeforeMs === null) return null;
  const roots = claims.map(({ root }) => root);
  return roots.filter((root) => {
    const wishes = wishesOf(root, subscriptions);
    if (wishes === null) return false;
    return warnBeforeMs === null
      ? wishes.overdueAfterMs === overdueAfter
      : wishes.warnBeforeMs === warnBeforeMs;
  });
}

function wishesOf(root: string, subscriptions: ReadonlyMap<string, Wishes>): Wishes | null {
  return subscriptions.get(parseClaimRoot(root).subscription) ?? null;
}
