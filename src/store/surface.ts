import { parseSubjectId, type SubjectId, type SubjectKind } from '../domain/subject.ts';

/** The upstream's surfaces, each with a budget, a plan and a queue of its own. */
export const SURFACES = ['status', 'gateway', 'quotes'] as const;

export type Surface = (typeof SURFACES)[number];

/** The surface of the upstream at which a subject is asked for. */
export function surfaceOf(subject: SubjectId): Surface {
  const key = parseSubjectId(subject);
  if (key?.kind === 'route') return 'quotes';
  if (key?.kind === 'vault') return 'gateway';
  return key?.kind === 'gasless' && key.endpoint === 'gateway' ? 'gateway' : 'status';
}

/** The kinds of subjects that are asked for at a surface. */
export function surfaceKinds(surface: Surface): readonly SubjectKind[] {
  switch (surface) {
    case 'status':
      return ['wallet', 'intent', 'quote', 'gasless', 'by-tx'];
    case 'gateway':
      return ['gasless', 'vault'];
    case 'quotes':
      return ['route'];
  }
}
