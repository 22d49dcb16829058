import { type Stage, UNNAMED, UNSEEN, WATCHED } from '../cadence/stages.ts';
import { type Kind, kindOf, statusOf } from './kinds.ts';
import { type SubjectId, subjectKind } from './subject.ts';

/** How a subject moved along the usual steps of its kind. A word that stands in no table is on none of them. */
export type Step = 'same' | 'forward' | 'skipped' | 'backward' | 'other';

/** The stage of a subject in a status; null as status means that the upstream has not shown the subject yet. */
export function stageOf(subject: SubjectId, status: string | null): Stage {
  if (subjectKind(subject) === 'wallet') return WATCHED;
  if (status === null) return UNSEEN;
  return statusOf(subject, status)?.stage ?? UNNAMED;
}

/** The number of usual steps that lead from one status to another; null when none do. */
function distance(statuses: Kind['statuses'], from: string, to: string): number | null {
  let frontier = [from];
  const seen = new Set(frontier);
  for (let length = 0; frontier.length > 0; length += 1) {
    if (frontier.includes(to)) return length;
    frontier = frontier
      .flatMap((status) => (Object.hasOwn(statuses, status) ? (statuses[status]?.next ?? []) : []))
      .filter((status) => !seen.has(status));
    for (const status of frontier) seen.add(status);
  }
  return null;
}

/** How a subject moved: one usual step, over a usual step, back along the usual steps, or otherwise. */
export function stepBetween(subject: SubjectId, from: string, to: string): Step {
  const [before, after] = [from.toLowerCase(), to.toLowerCase()];
  if (before === after) return 'same';
  const { statuses } = kindOf(subject);
  const ahead = distance(statuses, before, after);
  if (ahead !== null) return ahead > 1 ? 'skipped' : 'forward';
  return distance(statuses, after, before) === null ? 'other' : 'backward';
}
