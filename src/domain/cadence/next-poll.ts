import { type Snapshot, stageOf } from '../subjects/record.ts';
import { type SubjectId, subjectKind } from '../subjects/subject.ts';
import { ANY_ROUTE, routeName } from '../transfers/transfer.ts';
import { virtualSeconds } from './wait.ts';
import { type CadenceModel, termsOf, watched } from './watched.ts';

/** Statuses, in lower case, that end tracking at once, by kind, in place of the kind's built-in ones. */
export type FinishedStatuses = { readonly [kind: string]: readonly string[] | undefined };

/**
 * Input of a plan. `price`: cost of a request, in weighted seconds. `namedAtMs`: time of the first claim, for a
 * subject that the upstream has not shown. `alarmsMs`: times of the clock's events.
 */
export type CadenceInput = TrackedState & {
  nowMs: number;
  namedAtMs: number;
  price: number;
  model: CadenceModel;
  alarmsMs: readonly number[];
};

type TrackedState = { subject: SubjectId; snapshot: Snapshot | null; finished: FinishedStatuses };

export type NextPoll = { next: 'finish' } | ({ next: 'poll' } & PlannedPoll);

const UNCONFIRMED_EVERY_MS = 15_000;

/** Delay of a poll after the time of a clock event. */
const AFTER_ALARM_MS = 1_000;

/** A status that ends tracking by default, but not in this config or not at v1 yet, is watched for a week. */
const FINAL_POLLED_MS = 7 * 86_400_000;

/** Plans the next poll of a subject, counted from now, or finishes it. */
export function nextPoll(input: CadenceInput): NextPoll {
  const { subject, snapshot, nowMs, price, model } = input;
  if (isFinished(input)) return { next: 'finish' };
  const route = snapshot === null ? ANY_ROUTE : routeName(snapshot.record);
  const sinceMs = snapshot === null ? Math.min(nowMs, input.namedAtMs) : stageSinceMs(snapshot);
  const stage = { subject, status: snapshot?.status ?? null, route, sinceMs };
  const changes = watched(stage, { nowMs, model });
  const { constant, limits } = changes;
  const terms = termsOf(changes, Math.max(nowMs, sinceMs));
  const isUnconfirmed = snapshot !== null && snapshot.unconfirmed !== null;
  const unseen = snapshot === null;
  return {
    next: 'poll',
    virtualSeconds: virtualSeconds({ terms, constant, price }),
    // An unseen subject is polled as soon as allowed: it rests for the whole interval of its rate.
    restMs: 1_000 * Math.max(limits.leastSeconds, unseen ? Math.sqrt(2 / constant) : 0),
    latestMs: unseen ? null : 1_000 * limits.mostSeconds,
    alarmMs: firstAlarm([...input.alarmsMs, ...(isUnconfirmed ? [nowMs + UNCONFIRMED_EVERY_MS] : [])], nowMs),
    unseen,
  };
}

/** Ms until the first future time has passed; null without one. */
export function firstAlarm(timesMs: readonly number[], nowMs: number): number | null {
  const ahead = timesMs.filter((atMs) => atMs > nowMs);
  return ahead.length === 0 ? null : Math.min(...ahead) - nowMs + AFTER_ALARM_MS;
}

/** Next poll of a route: after its own interval, never sooner, however much of the budget is free. */
export function nextRoutePoll({ everyMs }: { everyMs: number }): PlannedPoll {
  return {
    virtualSeconds: everyMs / 1_000,
    restMs: everyMs,
    latestMs: everyMs + LATE_ROUTE_MS,
    alarmMs: null,
    unseen: false,
  };
}

/** A route is overdue when it has waited this much longer than its interval. */
const LATE_ROUTE_MS = 1_000;

/** True when tracking of a subject has ended; false while its last answer is unconfirmed. */
export function isFinished(input: TrackedState & { nowMs: number }): boolean {
  const { snapshot, nowMs } = input;
  const finishAfterMs = finishAfter(input);
  return snapshot !== null && finishAfterMs !== null && ageInStage(snapshot, nowMs) >= finishAfterMs;
}

/** True when the status alone ends the tracking. A subject that ends by its age is polled once more: it may have moved. */
export function isFinishedByStatus(input: TrackedState): boolean {
  return finishAfter(input) === 0;
}

/** Tracking time of a subject in its status, ms; null without end. */
function finishAfter({ subject, snapshot, finished }: TrackedState): number | null {
  if (snapshot === null || snapshot.unconfirmed !== null) return null;
  const isEnded = endsByConfig(subject, snapshot, finished);
  const { finishAfterMs } = stageOf(subject, snapshot.status);
  // Where the open source is ahead, v1 has not shown the end yet, and may contradict it.
  if (snapshot.ahead !== null) return isEnded || finishAfterMs === 0 ? FINAL_POLLED_MS : finishAfterMs;
  if (isEnded) return 0;
  return finished[subjectKind(subject)] && finishAfterMs === 0 ? FINAL_POLLED_MS : finishAfterMs;
}

/** True when the config ends tracking in the status of a subject. */
export function endsByConfig(
  subject: SubjectId,
  { status }: { status: string },
  finished: FinishedStatuses,
): boolean {
  return finished[subjectKind(subject)]?.includes(status.toLowerCase()) ?? false;
}

/**
 * Start of a subject's present status, ms, by the upstream's time if it gave one. That is a whole second, in which
 * the change came before it was seen: the middle is used.
 */
export function stageSinceMs(stage: {
  updatedAt: number | null;
  changedAtMs: number;
  ahead?: string | null;
}): number {
  const { updatedAt, changedAtMs, ahead = null } = stage;
  // Where the open source is ahead, `updatedAt` is that of the state of v1 before.
  if (updatedAt === null || ahead !== null) return changedAtMs;
  const secondMs = updatedAt * 1_000;
  return Math.min(changedAtMs, secondMs + Math.min(1_000, changedAtMs - secondMs) / 2);
}

function ageInStage(snapshot: Snapshot, nowMs: number): number {
  return Math.max(0, nowMs - stageSinceMs(snapshot));
}

/**
 * Next poll of a subject.
 * `virtualSeconds`: wait after which the poll is worth its request, at a price of 1, from the last poll, virtual time.
 * `restMs`: shortest wait. `latestMs`: overdue after this, null for never. `alarmMs`: requested after this in any
 * case,
 * null for never. `unseen`: the upstream has not shown it yet, so it goes with the newly named subjects.
 */
export type PlannedPoll = {
  virtualSeconds: number;
  restMs: number;
  latestMs: number | null;
  alarmMs: number | null;
  unseen: boolean;
};
