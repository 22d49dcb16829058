import { editDistance, globDistance } from '../edit-distance.ts';
import { EVENT_TYPES } from './event-types.ts';
import { matchGlob, wantsType } from './filter.ts';

/** The words before the first dot of the types in the catalogue. */
const KINDS: readonly string[] = [...new Set(EVENT_TYPES.map(kindOf))];

/** True when a pattern of a receiver's `events` lets through, or with a leading `!` takes away, any type of the catalogue. */
export function isKnownPattern(pattern: string): boolean {
  const glob = pattern.startsWith('!') ? pattern.slice(1) : null;
  return EVENT_TYPES.some((type) =>
    glob === null ? wantsType([pattern], type) : matchGlob(glob, type).matches,
  );
}

/**
 * The pattern that was meant by one whose kind is one edit away from a kind of the catalogue; null for any other. A kind
 * with a `*` may mean several kinds, so it is never a misspelling.
 */
export function correctedPattern(pattern: string): string | null {
  const negation = pattern.startsWith('!') ? '!' : '';
  const glob = pattern.slice(negation.length);
  const kind = kindOf(glob);
  if (kind.includes('*') || KINDS.includes(kind)) return null;
  // The length first: a text that is no pattern at all may be very long.
  const meant = KINDS.find(
    (known) => Math.abs(known.length - kind.length) <= 1 && editDistance(kind, known) === 1,
  );
  return meant === undefined ? null : `${negation}${meant}${glob.slice(kind.length)}`;
}

/** The type of the catalogue that is most like a pattern, of the pattern's kind where that is known; null when none is like it. */
export function nearestType(pattern: string): string | null {
  const glob = pattern.replace(/^!/, '');
  const ofKind = EVENT_TYPES.filter((type) => kindOf(type) === kindOf(glob));
  const distances = (ofKind.length > 0 ? ofKind : EVENT_TYPES).map((type) => ({
    type,
    distance: globDistance(glob, type),
  }));
  const nearest = distances.reduce((best, one) => (one.distance < best.distance ? one : best));
  return ofKind.length > 0 || nearest.distance <= glob.length / 3 ? nearest.type : null;
}

function kindOf(type: string): string {
  return type.split('.', 1)[0] ?? '';
}
