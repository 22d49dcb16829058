import type { Snapshot } from '../record.ts';
import { type SubjectId, subjectKind } from '../subject.ts';
import { plannedDemand } from './price.ts';
import { ANY_ROUTE, routeName } from './route-name.ts';
import { stageOf } from './stages.ts';
import { waitSeconds } from './wait.ts';
import { type Law, watched } from './watched.ts';

/** Statuses, in lower case, that end tracking at once, by kind, in place of the built-in ones of that kind. */
export type FinishedStatuses = { readonly [kind: string]: readonly string[] | undefined };

/**
 * `shown`: a page has just shown this subject, and will again. `price`: of a request, in weighted seconds.
 * `deadlinesMs`: moments at which a look is due whatever the interval.
 */
export type CadenceInput = {
  subject: SubjectId;
  snapshot: Snapshot | null;
  nowMs: number;
  shown: boolean;
  price: number;
  law: Law;
  finished: FinishedStatuses;
  deadlinesMs: readonly number[];
};

/** A poll that is planned, and what it adds to the demand on its surface (see `plannedDemand`); null for as before. */
export type PlannedPoll = { afterMs: number; demand: number | null };

export type NextPoll = { next: 'finish' } | ({ next: 'poll' } & PlannedPoll);

/** While an answer is in doubt, exact look-ups confirm it at this interval. */
const DOUBT_EVERY_SECONDS = 15;
const SHORTEST_MS = 50;

/** A look for what the clock brings about comes so long after its moment. */
export const AFTER_DEADLINE_MS = 1_000;

/** A status that ends tracking by default, but not in this config, is watched for a week. */
const KEPT_OPEN_MS = 7 * 86_400_000;

/** A page shows a transfer sooner than its own look-up would come; that is only there in case no page does. */
const SHOWN_FACTOR = 2;

/** Says when a subject is polled next, or that it is finished. Its last look was just now. */
export function nextPoll(input: CadenceInput): NextPoll {
  const { subject, snapshot, nowMs, price, law, shown } = input;
  if (isFinished(input)) return { next: 'finish' };
  const route = snapshot === null ? ANY_ROUTE : routeName(snapshot.record);
  const sinceMs = snapshot === null ? nowMs : stageSinceMs(snapshot);
  const stage = { subject, status: snapshot?.status ?? null, route, sinceMs };
  const { term, constant, clamp } = watched(stage, { nowMs, price, law });
  const wanted = waitSeconds({
    terms: term === null ? [] : [term(Math.max(nowMs, sinceMs))],
    arrivals: constant,
    price,
    clamp,
  });
  const inDoubt = snapshot !== null && snapshot.doubt !== null;
  const wait = inDoubt ? Math.min(wanted, DOUBT_EVERY_SECONDS * Math.max(1, Math.sqrt(price))) : wanted;
  const deadlines = input.deadlinesMs.filter((at) => at > nowMs).map((at) => at - nowMs + AFTER_DEADLINE_MS);
  const afterMs = Math.min(wait * 1_000 * (shown ? SHOWN_FACTOR : 1), ...deadlines);
  return {
    next: 'poll',
    afterMs: Math.round(Math.max(SHORTEST_MS, afterMs)),
    demand: plannedDemand({ price, waitSeconds: wait }),
  };
}

/** Whether tracking of a subject has ended. A subject in doubt never has. */
export function isFinished(
  input: Pick<CadenceInput, 'subject' | 'snapshot' | 'nowMs' | 'finished'>,
): boolean {
  const { subject, snapshot, nowMs, finished } = input;
  if (snapshot === null || snapshot.doubt !== null) return false;
  const configured = finished[subjectKind(subject)];
  if (configured?.includes(snapshot.status.toLowerCase())) return true;
  const stage = stageOf(subject, snapshot.status);
  const finishAfterMs = configured && stage.finishAfterMs === 0 ? KEPT_OPEN_MS : stage.finishAfterMs;
  return finishAfterMs !== null && ageInStage(snapshot, nowMs) >= finishAfterMs;
}

/**
 * Since when a subject is in its status, ms: by the upstream's own time where it gave one. That is a whole second, within
 * which the change came, and before it was seen: it is taken to have come in the middle.
 */
export function stageSinceMs({ updatedAt, changedAtMs }: Snapshot): number {
  if (updatedAt === null) return changedAtMs;
  const secondMs = updatedAt * 1_000;
  return Math.min(changedAtMs, secondMs + Math.min(1_000, changedAtMs - secondMs) / 2);
}

function ageInStage(snapshot: Snapshot, nowMs: number): number {
  return Math.max(0, nowMs - stageSinceMs(snapshot));
}
