import { type Snapshot, stageOf } from '../subjects/record.ts';
import { type SubjectId, subjectKind } from '../subjects/subject.ts';
import { ANY_ROUTE, routeName } from '../transfers/transfer.ts';
import { virtualSeconds } from './wait.ts';
import { type CadenceModel, watched } from './watched.ts';

/** Statuses, in lower case, that end tracking at once, by kind, in place of the built-in ones of that kind. */
export type FinishedStatuses = { readonly [kind: string]: readonly string[] | undefined };

/**
 * What a plan is made from. `price`: of a request, in weighted seconds. `namedAtMs`: since when somebody wants the subject,
 * for what the upstream has not shown yet. `alarmsMs`: moments at which the clock makes an event.
 */
export type CadenceInput = {
  subject: SubjectId;
  snapshot: Snapshot | null;
  nowMs: number;
  namedAtMs: number;
  price: number;
  model: CadenceModel;
  finished: FinishedStatuses;
  alarmsMs: readonly number[];
};

export type NextPoll = { next: 'finish' } | ({ next: 'poll' } & PlannedPoll);

/** While an answer is unconfirmed, exact polls confirm it at this interval. */
const UNCONFIRMED_EVERY_MS = 15_000;

/** A poll for what the clock brings about comes so long after its moment. */
const AFTER_ALARM_MS = 1_000;

/** A status that ends tracking by default, but not in this config, is watched for a week. */
const KEPT_OPEN_MS = 7 * 86_400_000;

/** Says when a subject is polled next, or that it is finished. Its last poll was just now. */
export function nextPoll(input: CadenceInput): NextPoll {
  const { subject, snapshot, nowMs, price, model } = input;
  if (isFinished(input)) return { next: 'finish' };
  const route = snapshot === null ? ANY_ROUTE : routeName(snapshot.record);
  const sinceMs = snapshot === null ? Math.min(nowMs, input.namedAtMs) : stageSinceMs(snapshot);
  const stage = { subject, status: snapshot?.status ?? null, route, sinceMs };
  const { term, constant, limits } = watched(stage, { nowMs, model });
  const terms = term === null ? [] : [term(Math.max(nowMs, sinceMs))];
  const isUnconfirmed = snapshot !== null && snapshot.unconfirmed !== null;
  const unseen = snapshot === null;
  return {
    next: 'poll',
    virtualSeconds: virtualSeconds({ terms, constant, price }),
    // What is unseen comes as soon as it may: it rests for the whole interval that its rate stands for.
    restMs: 1_000 * Math.max(limits.leastSeconds, unseen ? Math.sqrt(2 / constant) : 0),
    latestMs: unseen ? null : 1_000 * limits.mostSeconds,
    alarmMs: firstAlarm([...input.alarmsMs, ...(isUnconfirmed ? [nowMs + UNCONFIRMED_EVERY_MS] : [])], nowMs),
    unseen,
  };
}

/** In how many ms the first of some moments has passed that lie ahead; null where none does. */
export function firstAlarm(momentsMs: readonly number[], nowMs: number): number | null {
  const ahead = momentsMs.filter((atMs) => atMs > nowMs);
  return ahead.length === 0 ? null : Math.min(...ahead) - nowMs + AFTER_ALARM_MS;
}

/** When a route is polled next: after its own interval, never sooner, however much of the budget is free. */
export function nextRoutePoll({ everyMs }: { everyMs: number }): PlannedPoll {
  return {
    virtualSeconds: everyMs / 1_000,
    restMs: everyMs,
    latestMs: everyMs + LATE_ROUTE_MS,
    alarmMs: null,
    unseen: false,
  };
}

/** A route that has waited longer than its interval by this is overdue. */
const LATE_ROUTE_MS = 1_000;

/** True when tracking of a subject has ended. One whose last answer is unconfirmed never has. */
export function isFinished(
  input: Pick<CadenceInput, 'subject' | 'snapshot' | 'nowMs' | 'finished'>,
): boolean {
  const { snapshot, nowMs } = input;
  const finishAfterMs = finishAfter(input);
  return snapshot !== null && finishAfterMs !== null && ageInStage(snapshot, nowMs) >= finishAfterMs;
}

/**
 * True when the status of a subject has ended its tracking, whatever the time is. One that ends by its age is polled once more: it
 * may have moved while nothing was polled.
 */
export function isFinishedByStatus(input: Pick<CadenceInput, 'subject' | 'snapshot' | 'finished'>): boolean {
  return finishAfter(input) === 0;
}

/** For how long a subject is tracked in its status, ms; null without end. */
function finishAfter({
  subject,
  snapshot,
  finished,
}: Pick<CadenceInput, 'subject' | 'snapshot' | 'finished'>): number | null {
  if (snapshot === null || snapshot.unconfirmed !== null) return null;
  if (endsByConfig(subject, snapshot, finished)) return 0;
  const { finishAfterMs } = stageOf(subject, snapshot.status);
  return finished[subjectKind(subject)] && finishAfterMs === 0 ? KEPT_OPEN_MS : finishAfterMs;
}

/** True when the config says that tracking ends in the status of a subject. */
export function endsByConfig(
  subject: SubjectId,
  { status }: Pick<Snapshot, 'status'>,
  finished: FinishedStatuses,
): boolean {
  return finished[subjectKind(subject)]?.includes(status.toLowerCase()) ?? false;
}

/**
 * Since when a subject is in its status, ms: by the upstream's own time where it gave one. That is a whole second, within
 * which the change came, and before it was seen: it is taken to have come in the middle.
 */
export function stageSinceMs({
  updatedAt,
  changedAtMs,
}: Pick<Snapshot, 'updatedAt' | 'changedAtMs'>): number {
  if (updatedAt === null) return changedAtMs;
  const secondMs = updatedAt * 1_000;
  return Math.min(changedAtMs, secondMs + Math.min(1_000, changedAtMs - secondMs) / 2);
}

function ageInStage(snapshot: Snapshot, nowMs: number): number {
  return Math.max(0, nowMs - stageSinceMs(snapshot));
}

/**
 * When a subject is polled next. `virtualSeconds`: the wait after which the poll is worth its request, at a price of 1,
 * counted from the poll before it in the plan's virtual time; `restMs`: no sooner than that; `latestMs`: it is overdue
 * after that, null for never; `alarmMs`: it is requested after that whatever else, null for never. `unseen`: the upstream
 * has not shown it yet, so that it goes with what was newly named.
 */
export type PlannedPoll = {
  virtualSeconds: number;
  restMs: number;
  latestMs: number | null;
  alarmMs: number | null;
  unseen: boolean;
};
