import { z } from 'zod';
import { editDistance } from '../../domain/edit-distance.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import { type ConfigPath, type Fault, member, valueAt } from './errors.ts';
import type { Hiding } from './expand.ts';

type Schema = z.core.$ZodType;

/** A schema, and the values it was applied to, which decide between the variants of a union. */
type SchemaContext = { schema: Schema; tree: JsonObject };

/** True when the value at a path, or anything around it, is marked as secret (`writeOnly`) by the schema. */
function isSecret(path: ConfigPath, context: SchemaContext): boolean {
  return path.some((_, index) => schemasAt(path.slice(0, index + 1), context).some(isMarkedSecret));
}

/** True when a scalar may be a secret: it is marked, or replaces a section that has one (`redis: redis://user:password@host`). */
function mayBeSecret(path: ConfigPath, context: SchemaContext): boolean {
  return isSecret(path, context) || schemasAt(path, context).some(holdsSecret);
}

/** True when a key at a path may be a secret by a slip, as in `headers: { abc }`: a user's own key without a value. */
function mayBeSecretKey(path: ConfigPath, context: SchemaContext): boolean {
  const around = schemasAt(path.slice(0, -1), context);
  const isOwn = around.some((schema) => schema instanceof z.ZodRecord && holdsSecret(schema.valueType));
  return isOwn && (valueAt(context.tree, path) ?? null) === null;
}

/** Scalars at places where a secret may be. */
export function secretTexts({ schema, tree }: SchemaContext): string[] {
  function texts(schemas: Schema[], value: JsonValue, marked: boolean): string[] {
    const isMarked = marked || schemas.some(isMarkedSecret);
    if (!isMarked && !schemas.some(holdsSecret)) return [];
    if (Array.isArray(value)) {
      return value.flatMap((item, index) => texts(inside(schemas, index, item), item, isMarked));
    }
    if (isJsonObject(value)) {
      return Object.entries(value).flatMap(([key, item]) =>
        texts(inside(schemas, key, item), item, isMarked),
      );
    }
    return value === null || typeof value === 'boolean' ? [] : [String(value)];
  }
  return texts(layers(schema, tree), tree, false);
}

function inside(schemas: Schema[], key: string | number, value: JsonValue | undefined): Schema[] {
  return schemas.flatMap((schema) => layers(child(schema, key), value));
}

function isMarkedSecret(schema: Schema): boolean {
  return z.globalRegistry.get(schema)?.writeOnly === true;
}

const holding = new WeakMap<Schema, boolean>();

function holdsSecret(schema: Schema): boolean {
  const cached = holding.get(schema);
  if (cached !== undefined) return cached;
  const holds = isMarkedSecret(schema) || membersOf(schema).some(holdsSecret);
  holding.set(schema, holds);
  return holds;
}

function membersOf(schema: Schema): readonly Schema[] {
  if (schema instanceof z.ZodArray) return [schema.element];
  if (schema instanceof z.ZodRecord) return [schema.valueType];
  if (schema instanceof z.ZodObject) return Object.values(schema.shape);
  if (schema instanceof z.ZodUnion) return schema.options;
  if (schema instanceof z.ZodPipe) return [schema.in];
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault) return [schema.unwrap()];
  return [];
}

function allowedKeys(path: ConfigPath, context: SchemaContext): string[] {
  return schemasAt(path, context).flatMap((schema) =>
    schema instanceof z.ZodObject ? Object.keys(schema.shape) : [],
  );
}

/** Schemas that may apply at a path, with their wrappers. */
function schemasAt(path: ConfigPath, { schema, tree }: SchemaContext): Schema[] {
  return path.reduce<Schema[]>(
    (outer, key, index) => {
      const value = valueAt(tree, path.slice(0, index + 1));
      return inside(outer, key, value);
    },
    layers(schema, tree),
  );
}

function child(schema: Schema, key: string | number): Schema | undefined {
  if (schema instanceof z.ZodArray && typeof key === 'number') return schema.element;
  if (schema instanceof z.ZodRecord) return schema.valueType;
  if (schema instanceof z.ZodObject && Object.hasOwn(schema.shape, key)) return schema.shape[key];
  return undefined;
}

function layers(schema: Schema | undefined, value: JsonValue | undefined): Schema[] {
  if (schema === undefined) return [];
  if (schema instanceof z.ZodPipe) return [schema, ...layers(schema.in, value)];
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault) {
    return [schema, ...layers(schema.unwrap(), value)];
  }
  if (schema instanceof z.ZodUnion) {
    const fitting = schema.options.filter((option) => fitsType(option, value));
    return [
      schema,
      ...(fitting.length > 0 ? fitting : schema.options).flatMap((option) => layers(option, value)),
    ];
  }
  return [schema];
}

function fitsType(option: Schema, value: JsonValue | undefined): boolean {
  const type = option instanceof z.ZodObject ? option.shape.type : undefined;
  return type instanceof z.ZodType && type.safeParse(member(value, 'type')).success;
}

const MAX_SHOWN_CHARACTERS = 80;

/** A schema with the values it was applied to, and the rule for hidden text. */
type FindingContext = SchemaContext & { hiding: Hiding };

/** Converts an issue of a schema, whose message is the expected value, to findings. */
export function findingsOf(issue: z.core.$ZodIssue, context: FindingContext): Fault[] {
  const path = pathOf(issue);
  switch (issue.code) {
    case 'unrecognized_keys': {
      const allowed = allowedKeys(path, context);
      return issue.keys.map((key) => unknownKey([...path, key], { allowed, ...context }));
    }
    case 'invalid_union': {
      // The intended variant is the one that does not refuse the kind of value altogether.
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

/** A slip such as `{ token:abc }` turns a secret into a key: a key that may be one is not shown. */
function unknownKey(
  path: (string | number)[],
  { allowed, tree, hiding }: FindingContext & { allowed: string[] },
): Fault {
  const key = String(path.at(-1));
  const nearest = nearestKey(key, allowed);
  const isWord = /^[A-Za-z][A-Za-z_-]{0,39}$/.test(key);
  const all = allowed.join(', ');
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

/** Describes the found value without any secret and without text from outside the file. */
export function describeFound(
  finding: Fault,
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
  // JSON has no number that is too large.
  const text = typeof value === 'number' ? String(value) : JSON.stringify(value);
  return text.length <= MAX_SHOWN_CHARACTERS ? text : `${text.slice(0, MAX_SHOWN_CHARACTERS)}…"`;
}

function nearestKey(unknown: string, allowed: string[]): string | null {
  const distances = allowed.map((key) => ({
    key,
    distance: editDistance(unknown.toLowerCase(), key.toLowerCase()),
  }));
  const nearest = distances.sort((a, b) => a.distance - b.distance)[0];
  if (nearest === undefined) return null;
  return nearest.distance <= Math.max(1, Math.floor(nearest.key.length / 2)) ? nearest.key : null;
}
