import { parseSubjectId, type SubjectId } from '../domain/subject.ts';

/** The upstream's surfaces, each with a budget, a price and a queue of its own. */
export const SURFACES = ['status', 'gateway', 'quotes'] as const;

export type Surface = (typeof SURFACES)[number];

/** The surface of the upstream at which a subject is asked for, and with it its queue, budget and price. */
export function surfaceOf(subject: SubjectId): Surface {
  const key = parseSubjectId(subject);
  if (key?.kind === 'route') return 'quotes';
  if (key?.kind === 'vault') return 'gateway';
  return key?.kind === 'gasless' && key.endpoint === 'gateway' ? 'gateway' : 'status';
}
