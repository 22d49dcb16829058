import { unseenSnapshot } from '../changes/next-snapshot.ts';
import type { ImportedState } from '../quotes/promised.ts';
import type { Snapshot } from '../subjects/record.ts';
import type { SubjectId } from '../subjects/subject.ts';
import { type Claim, parseClaimKey } from '../subjects/subscription.ts';
import {
  type FinishedStatuses,
  firstAlarm,
  isFinished,
  nextPoll,
  nextRoutePoll,
  type PlannedPoll,
} from './next-poll.ts';
import { type OverdueAfter, type TimedEvent, timedEvents } from './timed.ts';
import type { CadenceModel } from './watched.ts';

/** A subject, its snapshot and its claims. `snapshot` is null until the upstream has shown the subject. */
export type PlanInput = { subject: SubjectId; snapshot: Snapshot | null; claims: readonly Claim[] };

type Wishes = { overdueAfterMs: OverdueAfter | null; warnBeforeMs: number | null };

/**
 * Facts for a plan. `price`: weighted seconds of a request; `imported`: the quote, if imported; `unseenUntilMs`: time at which
 * the polls end while no response has shown the subject, null for never; `route`: a route's definition.
 */
export type PlanFacts = {
  nowMs: number;
  price: number;
  subscriptions: ReadonlyMap<string, Wishes>;
  imported: ImportedState | null;
  unseenUntilMs: number | null;
  route: { everyMs: number } | null;
};

/** Input of a plan. `learnedMs`: learned time after which the subject is overdue. */
export type PlanContext = PlanFacts & {
  model: CadenceModel;
  finished: FinishedStatuses;
  learnedMs: number | null;
};

/** A due timed event, and the subscription keys of the claims that receive it; null for all. */
export type DueEvent = { event: TimedEvent; claimKeys: string[] | null };

/** Plan of a subject. `alarmMs`: ms until the clock's next event, 0 when one is due; `next`: the next poll, null for none. */
export type SubjectPlan = {
  due: DueEvent[];
  alarmMs: number | null;
  isOver: boolean;
  next: () => PlannedPoll | null;
};

/** Plans a subject from its present state. */
export function planSubject(input: PlanInput, context: PlanContext): SubjectPlan {
  const { subject, snapshot, claims } = input;
  const { nowMs, price, model, finished, route, unseenUntilMs } = context;
  const events = eventsOf(input, context);
  const due = events.filter(({ atMs }) => atMs <= nowMs);
  const alarmsMs = events.map(({ atMs }) => atMs);
  const isUnseenOver = snapshot === null && unseenUntilMs !== null && nowMs >= unseenUntilMs;
  return {
    due: due.map(({ event }) => ({ event, claimKeys: keysFor(event, claims, context.subscriptions) })),
    alarmMs: due.length > 0 ? 0 : firstAlarm(alarmsMs, nowMs),
    isOver: isUnseenOver || isFinished({ subject, snapshot, nowMs, finished }),
    next: () => {
      if (route !== null) return nextRoutePoll(route);
      if (isUnseenOver) return null;
      if (snapshot === null && unseenUntilMs !== null) alarmsMs.push(unseenUntilMs);
      const namedAtMs = Math.min(nowMs, ...claims.map(({ atMs }) => atMs));
      const next = nextPoll({ subject, snapshot, nowMs, namedAtMs, price, model, finished, alarmsMs });
      return next.next === 'finish' ? null : next;
    },
  };
}

/** Times of the clock's events of a subject. Warnings of past events are skipped. */
function eventsOf(
  { subject, snapshot, claims }: PlanInput,
  { nowMs, learnedMs, subscriptions, imported }: PlanContext,
): { atMs: number; event: TimedEvent }[] {
  // An imported quote expires by the clock even before the upstream has shown it.
  const shown = snapshot ?? (imported === null ? null : unseenSnapshot(nowMs));
  if (shown === null) return [];
  const wishes = claims.flatMap(({ key }) => wishesOf(key, subscriptions) ?? []);
  const overdue = wishes.flatMap(({ overdueAfterMs: after }) => {
    const ms = after === 'learned' ? learnedMs : after;
    return after === null || ms === null ? [] : [{ after, ms }];
  });
  const warnBeforeMs = wishes.flatMap((wish) => wish.warnBeforeMs ?? []);
  return timedEvents(subject, shown, { overdue, warnBeforeMs, imported }).filter(
    ({ event: { untilMs } }) => untilMs === null || nowMs < untilMs,
  );
}

/** Subscription keys of the claims whose subscriptions configured the time of an event; null for all. */
function keysFor(
  { overdueAfter, warnBeforeMs }: TimedEvent,
  claims: readonly Claim[],
  subscriptions: ReadonlyMap<string, Wishes>,
): string[] | null {
  if (overdueAfter === null && warnBeforeMs === null) return null;
  const claimKeys = claims.map(({ key }) => key);
  return claimKeys.filter((key) => {
    const wishes = wishesOf(key, subscriptions);
    if (wishes === null) return false;
    return warnBeforeMs === null
      ? wishes.overdueAfterMs === overdueAfter
      : wishes.warnBeforeMs === warnBeforeMs;
  });
}

function wishesOf(key: string, subscriptions: ReadonlyMap<string, Wishes>): Wishes | null {
  return subscriptions.get(parseClaimKey(key).subscription) ?? null;
}
