import type { z } from 'zod';
import { editDistance } from '../../domain/edit-distance.ts';
import { isJsonObject, type JsonValue } from '../../domain/json.ts';
import type { Hiding } from './hiding.ts';
import { knownKeys, mayBeSecret, mayBeSecretKey, type SchemaContext } from './schema-path.ts';
import { type Finding, valueAt } from './tree.ts';

const MAX_SHOWN_CHARACTERS = 80;

/** A schema with the values it was applied to, and what of them is not shown. */
type FindingContext = SchemaContext & { hiding: Hiding };

/** An issue of a schema, whose message is what was expected, as findings. */
export function findingsOf(issue: z.core.$ZodIssue, context: FindingContext): Finding[] {
  const path = pathOf(issue);
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = knownKeys(path, context);
      return issue.keys.map((key) => unknownKey([...path, key], { known, ...context }));
    }
    case 'invalid_union': {
      // The variant that was meant is the one that does not refuse the kind of value altogether.
      const meant = issue.errors.filter((branch) => !branch.some(isWrongKind));
      const [branch] = meant;
      if (branch === undefined || meant.length > 1) return [{ path, expected: issue.message }];
      return branch.flatMap((inner) => findingsOf({ ...inner, path: [...path, ...inner.path] }, context));
    }
    case 'custom': {
      const found: unknown = issue.params?.found;
      return [{ path, expected: issue.message, ...(typeof found === 'string' ? { found } : {}) }];
    }
    default:
      if (!mayBeSecretKey(path, context)) return [{ path, expected: issue.message }];
      return [{ path, found: 'a key without a value', expected: issue.message, atKey: true, hidesKey: true }];
  }
}

/**
 * In `{ token:abc }` and `{ token: a,bc }` a slip makes a key of a secret: what is no word of letters, or has no value and
 * is like no known key, is not shown.
 */
function unknownKey(
  path: (string | number)[],
  { known, tree, hiding }: FindingContext & { known: string[] },
): Finding {
  const key = String(path.at(-1));
  const nearest = nearestKey(key, known);
  const isWord = /^[A-Za-z][A-Za-z_-]{0,39}$/.test(key);
  const all = known.join(', ');
  if (!isWord || hiding.hides(key) || (nearest === null && valueAt(tree, path) === null)) {
    const expected = `one of ${all}, then a colon, a space and a value`;
    return { path, found: 'an unknown key that is not shown', expected, atKey: true, hidesKey: true };
  }
  const expected = nearest === null ? `one of ${all}` : JSON.stringify(nearest);
  return { path, found: `the unknown key ${JSON.stringify(key)}`, expected, atKey: true };
}

/** The path of an issue; YAML has no keys that are symbols. */
export function pathOf(issue: z.core.$ZodIssue): (string | number)[] {
  return issue.path.map((key) => (typeof key === 'number' ? key : String(key)));
}

function isWrongKind(issue: z.core.$ZodIssue): boolean {
  return issue.code === 'invalid_type' && issue.path.length === 0;
}

/** What was found, in words that show neither a secret nor anything from outside the file. */
export function describeFound(
  finding: Finding,
  { variables, hiding, ...context }: FindingContext & { variables: string[] },
): string {
  if (finding.atKey === true && finding.found !== undefined) return hiding.mask(finding.found);
  if (variables.length > 0) {
    const names = variables.map((name) => `\${${name}}`).join(' and ');
    const what = valueAt(context.tree, finding.path) === '' ? 'an empty value' : 'a value';
    return `${what} from ${names}${finding.repeated === true ? ' again' : ''}`;
  }
  if (finding.found !== undefined) return hiding.mask(finding.found);
  const { path } = finding;
  const value = valueAt(context.tree, path);
  const isHidden = isScalar(value) && (mayBeSecret(path, context) || hiding.hides(String(value)));
  if (finding.repeated === true) {
    return isHidden || typeof value !== 'string' ? 'the same again' : `${describeValue(value)} again`;
  }
  if (!isHidden) return describeValue(value);
  return value === '' ? 'an empty text' : 'a secret that is not shown';
}

function isScalar(value: JsonValue | undefined): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function describeValue(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'no value';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (isJsonObject(value)) return 'a mapping';
  const text = JSON.stringify(value);
  return text.length <= MAX_SHOWN_CHARACTERS ? text : `${text.slice(0, MAX_SHOWN_CHARACTERS)}…"`;
}

/** The known key that is most like an unknown one; null when none is like it. */
function nearestKey(unknown: string, known: string[]): string | null {
  const distances = known.map((key) => ({
    key,
    distance: editDistance(unknown.toLowerCase(), key.toLowerCase()),
  }));
  const nearest = distances.sort((a, b) => a.distance - b.distance)[0];
  if (nearest === undefined) return null;
  return nearest.distance <= Math.max(1, Math.floor(nearest.key.length / 2)) ? nearest.key : null;
}
