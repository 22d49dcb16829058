import { parseClaimRoot } from '../domain/subjects/claim.ts';
import { asSubjectId, parseSubjectId, type SubjectId, subjectKind } from '../domain/subjects/subject.ts';
import type { Known } from '../store/subjects.ts';
import { UnknownError } from './errors.ts';
import type { OperationParts } from './parts.ts';

/** What is known of a subject. Throws an UnknownError for one that is not watched. */
export async function knownSubject(
  id: string,
  { stores: { subjects } }: OperationParts,
): Promise<{ subject: SubjectId; known: Known }> {
  if (parseSubjectId(id) !== null) {
    const subject = asSubjectId(id);
    const [known] = await subjects.peek([subject]);
    const isKnown =
      known !== undefined && (known.snapshot !== null || known.seenAtMs !== null || known.claims.length > 0);
    if (isKnown) return { subject, known };
  }
  throw new UnknownError(
    `found no subject ${JSON.stringify(id.slice(0, 120))}, expected the id of one that is watched, such as intent:0x…`,
  );
}

/** The number of subjects a timeline that has beside its own. */
const MOST_RELATED = 10;

/** The subjects that led to a transfer: the quote that was imported, and those whose claims it has taken over. */
export function relatedTo(subject: SubjectId, { claims, promised }: Known): SubjectId[] {
  const named = claims.map(({ root }) => parseClaimRoot(root).subject);
  if (promised !== null)
    named.push(promised.quote.includes(':') ? promised.quote : `quote:${promised.quote}`);
  const ids = named.flatMap((text) => (parseSubjectId(text) === null ? [] : [asSubjectId(text)]));
  const related = ids.filter((id) => id !== subject && ['quote', 'gasless'].includes(subjectKind(id)));
  return [...new Set(related)].slice(0, MOST_RELATED);
}
