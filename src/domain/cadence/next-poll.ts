import type { Snapshot } from '../record.ts';
import { type SubjectId, subjectKind } from '../subject.ts';
import { stageOf } from './stages.ts';

/** Statuses, in lower case, that end tracking at once, by kind, in place of the built-in ones of that kind. */
export type FinishedStatuses = { readonly [kind: string]: readonly string[] | undefined };

/**
 * `named`: somebody named this subject, so no page shows it anyway. `stretch`: the price of a request, as a factor on
 * every interval. `deadlinesMs`: moments at which a look is due whatever the interval.
 */
export type CadenceInput = {
  subject: SubjectId;
  snapshot: Snapshot | null;
  nowMs: number;
  named: boolean;
  stretch: number;
  finished: FinishedStatuses;
  deadlinesMs: readonly number[];
};

/** `baseMs` is the interval at an unstretched price, from which the demand of all subjects is summed. */
export type NextPoll = { next: 'finish' } | { next: 'poll'; afterMs: number; baseMs: number };

/** While an answer is in doubt, exact look-ups confirm it at this interval. */
const DOUBT_EVERY_MS = 15_000;
const SHORTEST_MS = 250;

/** A look for what the clock brings about comes so long after its moment. */
export const AFTER_DEADLINE_MS = 1_000;

/** A stage in which nothing is under way is looked at every thirtieth of its age, up to this. */
const IDLE_SHARE = 30;
const IDLE_LONGEST_MS = 600_000;

/** A status that ends tracking by default, but not in this config, is watched for a week. */
const KEPT_OPEN_MS = 7 * 86_400_000;

/** Says when a subject is polled next, or that it is finished. Pure; the law of the design will take this place. */
export function nextPoll(input: CadenceInput): NextPoll {
  const { nowMs } = input;
  if (isFinished(input)) return { next: 'finish' };
  const baseMs = baseInterval(input);
  const deadlines = input.deadlinesMs.filter((at) => at > nowMs).map((at) => at - nowMs + AFTER_DEADLINE_MS);
  const afterMs = Math.max(SHORTEST_MS, Math.min(baseMs * input.stretch, ...deadlines));
  return { next: 'poll', afterMs: Math.round(afterMs), baseMs };
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

function baseInterval(input: CadenceInput): number {
  const { subject, snapshot, nowMs, named } = input;
  if (snapshot === null) return stageInterval({ subject, status: null, ageMs: 0, named });
  const { status, doubt } = snapshot;
  const everyMs = stageInterval({ subject, status, ageMs: ageInStage(snapshot, nowMs), named });
  return doubt === null ? everyMs : Math.min(everyMs, DOUBT_EVERY_MS);
}

/** The interval of a subject that has been in a status for so long, ms; null as status for one not seen yet. */
export function stageInterval(input: {
  subject: SubjectId;
  status: string | null;
  ageMs: number;
  named: boolean;
}): number {
  const stage = stageOf(input.subject, input.status);
  const everyMs = input.named ? stage.everyMs : stage.discoveredEveryMs;
  if (stage.waiting || input.status === null) return everyMs;
  return Math.max(everyMs, Math.min(IDLE_LONGEST_MS, input.ageMs / IDLE_SHARE));
}

/** Since when a subject is in its status, ms: by the upstream's own time where it gave one. */
export function stageSinceMs(snapshot: Snapshot): number {
  const sinceMs = snapshot.updatedAt === null ? snapshot.changedAtMs : snapshot.updatedAt * 1_000;
  return Math.min(sinceMs, snapshot.changedAtMs);
}

function ageInStage(snapshot: Snapshot, nowMs: number): number {
  return Math.max(0, nowMs - stageSinceMs(snapshot));
}

/** The share of the budget that scheduled polls may fill; the rest is for new subjects, deep pages and look-ups. */
const BUDGET_SHARE = 0.8;
const LEAST_STRETCH = 0.2;

/**
 * The factor on every interval at which all subjects together ask for four fifths of the budget, at least 0.2.
 * Both rates in requests per second.
 */
export function stretchFor(rates: { demand: number; budget: number }): number {
  return Math.max(LEAST_STRETCH, rates.demand / (rates.budget * BUDGET_SHARE));
}
