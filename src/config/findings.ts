import type { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json.ts';
import type { ConfigPath } from './errors.ts';
import { nearestKey } from './nearest-key.ts';
import { isSecret, knownKeys, type SchemaContext } from './schema-path.ts';
import { type Finding, valueAt } from './tree.ts';

const MAX_SHOWN_CHARACTERS = 80;

/** An issue of a schema, whose message is what was expected, as findings. */
export function findingsOf(issue: z.core.$ZodIssue, context: SchemaContext): Finding[] {
  const path = pathOf(issue);
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = knownKeys(path, context);
      return issue.keys.map((key) => unknownKey([...path, key], { known, tree: context.tree }));
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
      return [{ path, expected: issue.message }];
  }
}

/**
 * In `{ token:abc }` and `{ token: a,bc }` a slip makes a key of a secret: what is no plain word, or has no value and is
 * like no known key, is not shown.
 */
function unknownKey(
  path: (string | number)[],
  { known, tree }: { known: string[]; tree: JsonObject },
): Finding {
  const key = String(path.at(-1));
  const nearest = nearestKey(key, known);
  const isWord = /^[A-Za-z][A-Za-z0-9_-]{0,39}$/.test(key);
  const all = known.join(', ');
  if (!isWord || (nearest === null && valueAt(tree, path) === null)) {
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

/** What was found, in words that show neither a secret nor anything from the environment. */
export function describeFound(
  finding: Finding,
  { variables, ...context }: SchemaContext & { variables: string[] },
): string {
  if (finding.atKey === true && finding.found !== undefined) return finding.found;
  const found =
    variables.length > 0
      ? `a value from ${variables.map((name) => `\${${name}}`).join(' and ')}`
      : (finding.found ?? describeValue(finding.path, context));
  if (finding.repeated !== true) return found;
  const isShown = typeof valueAt(context.tree, finding.path) === 'string' && !isSecret(finding.path, context);
  return isShown ? `${found} again` : 'the same again';
}

function describeValue(path: ConfigPath, context: SchemaContext): string {
  const value: JsonValue | undefined = valueAt(context.tree, path);
  if (value === undefined) return 'nothing';
  if (value === null) return 'no value';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (isJsonObject(value)) return 'a mapping';
  if (isSecret(path, context)) return value === '' ? 'an empty text' : 'a secret that is not shown';
  const text = JSON.stringify(value);
  return text.length <= MAX_SHOWN_CHARACTERS ? text : `${text.slice(0, MAX_SHOWN_CHARACTERS)}…"`;
}
