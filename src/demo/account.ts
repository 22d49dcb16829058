import type { RenderedEvent } from '../domain/event.ts';

/** A status change that the sandbox really made; `from` is null at birth, `at` in ms. */
export type MadeTransition = { subject: string; from: string | null; to: string; at: number };

/** An answer that the sandbox gave. */
export type GivenAnswer = { at: number; subjects: readonly { id: string; status: string }[] };

/** What was made, what could be seen, and what was told, held against each other. */
export type Account = {
  /** Status changes of watched subjects. */
  made: number;
  /** Those that no answer ever showed: overtaken between two polls, or still to be polled. */
  merged: number;
  /** Status changes that answers showed. */
  shown: number;
  /** Events that name a new status. */
  statusEvents: number;
  /** Events that name other changes. */
  updates: number;
  /** Each difference between what was shown and what was told, in words. Empty when all adds up. */
  problems: string[];
};

/**
 * Holds events against what a sandbox did and showed, for subjects that were watched from their birth. A status that
 * an answer showed and that differs from the one before must have come as exactly one event, in order, with `sequence`
 * 1, 2, 3 …; nothing else may have come. `overtaken` are subjects for which an answer was dropped because a later one
 * had been committed before it: of those, a status may be missing where the next event says `skipped`.
 */
export function account(input: {
  transitions: readonly MadeTransition[];
  answers: readonly GivenAnswer[];
  events: readonly RenderedEvent[];
  isWatched: (subject: string) => boolean;
  overtaken?: ReadonlySet<string>;
}): Account {
  const made = input.transitions.filter((transition) => input.isWatched(transition.subject));
  const subjects = new Set(made.map((transition) => transition.subject));
  const shown = shownStatuses(input.answers, subjects);
  const told = new Map<string, RenderedEvent[]>();
  const problems: string[] = [];
  for (const event of input.events) {
    if (!subjects.has(event.data.subject.id)) {
      problems.push(`${event.id} ${event.type} is about ${event.data.subject.id}, which never changed`);
    }
    const list = told.get(event.data.subject.id) ?? [];
    told.set(event.data.subject.id, [...list, event]);
  }
  let statusEvents = 0;
  for (const subject of subjects) {
    const events = (told.get(subject) ?? []).sort((a, b) => a.data.sequence - b.data.sequence);
    const wrong = events.findIndex((event, index) => event.data.sequence !== index + 1);
    if (wrong >= 0) {
      problems.push(`${subject} has sequences ${events.map((event) => event.data.sequence).join(', ')}`);
    }
    const statuses = events.filter(isStatusEvent).map((event) => event.data.status ?? '');
    statusEvents += statuses.length;
    const expected = shown.get(subject) ?? [];
    const allowed = input.overtaken?.has(subject)
      ? isSubsequence(statuses, expected)
      : same(statuses, expected);
    if (!allowed) {
      problems.push(`${subject} was shown as ${expected.join(', ')} but told as ${statuses.join(', ')}`);
    }
  }
  const shownCount = [...shown.values()].reduce((sum, statuses) => sum + statuses.length, 0);
  return {
    made: made.length,
    merged: made.length - shownCount,
    shown: shownCount,
    statusEvents,
    updates: input.events.length - input.events.filter(isStatusEvent).length,
    problems,
  };
}

function isStatusEvent(event: RenderedEvent): boolean {
  return event.data.status !== event.data.previousStatus;
}

/** The statuses of each subject in the order in which answers showed them, each change once. */
function shownStatuses(
  answers: readonly GivenAnswer[],
  subjects: ReadonlySet<string>,
): Map<string, string[]> {
  const shown = new Map<string, string[]>();
  for (const answer of answers) {
    for (const { id, status } of answer.subjects) {
      if (!subjects.has(id) || status === 'unknown') continue;
      const statuses = shown.get(id) ?? [];
      if (statuses.at(-1) !== status) statuses.push(status);
      shown.set(id, statuses);
    }
  }
  return shown;
}

function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index]);
}

function isSubsequence(part: readonly string[], whole: readonly string[]): boolean {
  let index = 0;
  for (const value of whole) if (part[index] === value) index += 1;
  return index === part.length;
}
