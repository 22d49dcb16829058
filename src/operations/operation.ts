import type { Knowledge } from '../domain/cadence/knowledge.ts';
import type { StatusSource } from '../domain/subjects/kinds.ts';
import { asSubjectId, parseSubjectId, type SubjectId, subjectKind } from '../domain/subjects/subject.ts';
import { parseClaimKey } from '../domain/subjects/subscription.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { RedisClient } from '../store/commands.ts';
import type { LearnedStore } from '../store/learned.ts';
import type { AnswerStore, ConsumerStore, EndedSessionStore } from '../store/server-state.ts';
import type { Stores } from '../store/stores.ts';
import type { SubjectEntry } from '../store/subjects.ts';

/** Dependencies of operations, in a running daemon or on the command line: its own stores. */
export type OperationContext = {
  redis: RedisClient;
  directory: Directory;
  knowledge: () => Promise<Knowledge>;
  /** Time for which entries removed from the config stay suspended. */
  graceSpanMs: number;
  statusSource: StatusSource;
  stores: Stores & {
    answers: AnswerStore;
    consumers: ConsumerStore;
    learned: LearnedStore;
    sessions: EndedSessionStore;
  };
};

/** Error for a missing object: the message states the found value and the known ones. */
export class UnknownError extends Error {
  override readonly name = 'UnknownError';
}

/** Error for an operation that is impossible in the current state: the message states the reason and a remedy. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

/** Reads the known state of a subject. Throws an UnknownError for one that is not watched. */
export async function watchedSubject(
  id: string,
  { stores: { subjects } }: OperationContext,
): Promise<{ subject: SubjectId; entry: SubjectEntry }> {
  if (parseSubjectId(id) !== null) {
    const subject = asSubjectId(id);
    const entry = await subjects.peek(subject);
    if (entry.snapshot !== null || entry.seenAtMs !== null || entry.claims.length > 0)
      return { subject, entry };
  }
  throw new UnknownError(
    `found no subject ${JSON.stringify(id.slice(0, 120))}, expected the id of one that is watched, such as intent:0x…`,
  );
}

const MOST_RELATED = 10;

/** The subjects that led to a transfer: the imported quote, and those whose claims it has inherited. */
export function relatedTo(subject: SubjectId, { claims, promised }: SubjectEntry): SubjectId[] {
  const named = claims.map(({ key }) => parseClaimKey(key).subject);
  if (promised !== null)
    named.push(promised.quote.includes(':') ? promised.quote : `quote:${promised.quote}`);
  const ids = named.flatMap((text) => (parseSubjectId(text) === null ? [] : [asSubjectId(text)]));
  const related = ids.filter((id) => id !== subject && ['quote', 'gasless'].includes(subjectKind(id)));
  return [...new Set(related)].slice(0, MOST_RELATED);
}
