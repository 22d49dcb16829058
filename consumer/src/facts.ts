import type { AnyEvent } from './event.ts';
import { FACTS_BY_TYPE, FACTS_BY_WORD, type FactKind } from './event-types.ts';

/** The fact of an event. `name` distinguishes the facts of one subject: `status`, `proof:destination`, `update:error` … */
export type Fact = { kind: FactKind; name: string };

const BY_TYPE: ReadonlyMap<string, FactKind> = new Map(Object.entries(FACTS_BY_TYPE));
const BY_WORD: ReadonlyMap<string, FactKind> = new Map(Object.entries(FACTS_BY_WORD));

/** Finds the fact of an event, also of a type that this version does not know. */
export function factOf(event: AnyEvent): Fact {
  const { type, data } = event;
  const word = type.slice(type.indexOf('.') + 1);
  const kind = BY_TYPE.get(type) ?? (isAboutStatus(event, word) ? 'status' : (BY_WORD.get(word) ?? 'notice'));
  switch (kind) {
    case 'status':
    case 'reminder':
    case 'route':
      return { kind, name: kind };
    case 'proof':
      return { kind, name: `proof:${data.proof?.payment ?? ''}` };
    case 'update':
    case 'notice':
      return { kind, name: `${kind}:${word}` };
    default:
      return kind satisfies never;
  }
}

/**
 * True when the status changed, or names the type. The name alone does not decide it: `quote.expired` comes from the
 * clock while the quote is `active`, and from the upstream with the status `expired`.
 */
function isAboutStatus({ data }: AnyEvent, word: string): boolean {
  const status = inLowerCase(data.status);
  return status === word || status !== inLowerCase(data.previousStatus);
}

function inLowerCase(status: unknown): string {
  return typeof status === 'string' ? status.toLowerCase() : '';
}
