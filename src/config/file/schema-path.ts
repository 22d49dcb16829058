import { z } from 'zod';
import { isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';
import type { ConfigPath } from './errors.ts';
import { member, valueAt } from './tree.ts';

type Schema = z.core.$ZodType;

/** A schema, and the values it was applied to, which decide between the variants of a union. */
export type SchemaContext = { schema: Schema; tree: JsonObject };

/** True when the value at a path, or anything around it, is marked as secret (`writeOnly`) by the schema. */
function isSecret(path: ConfigPath, context: SchemaContext): boolean {
  return path.some((_, index) => schemasAt(path.slice(0, index + 1), context).some(isMarkedSecret));
}

/**
 * True when a scalar at a path may be a secret: it is marked as one, or it stands in the place of a section in which one is
 * marked, as in `redis: redis://user:password@host`.
 */
export function mayBeSecret(path: ConfigPath, context: SchemaContext): boolean {
  return isSecret(path, context) || schemasAt(path, context).some(holdsSecret);
}

/** True when a key at a path may be a secret by a slip, as in `headers: { abc }`: one of the user's own without a value. */
export function mayBeSecretKey(path: ConfigPath, context: SchemaContext): boolean {
  const around = schemasAt(path.slice(0, -1), context);
  const isOwn = around.some((schema) => schema instanceof z.ZodRecord && holdsSecret(schema.valueType));
  return isOwn && (valueAt(context.tree, path) ?? null) === null;
}

/** The scalars that stand where a secret may be. */
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

/** True when a schema, or anything inside it, is marked as secret. */
function holdsSecret(schema: Schema): boolean {
  const known = holding.get(schema);
  if (known !== undefined) return known;
  const holds = isMarkedSecret(schema) || partsOf(schema).some(holdsSecret);
  holding.set(schema, holds);
  return holds;
}

function partsOf(schema: Schema): readonly Schema[] {
  if (schema instanceof z.ZodArray) return [schema.element];
  if (schema instanceof z.ZodRecord) return [schema.valueType];
  if (schema instanceof z.ZodObject) return Object.values(schema.shape);
  if (schema instanceof z.ZodUnion) return schema.options;
  if (schema instanceof z.ZodPipe) return [schema.in];
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault) return [schema.unwrap()];
  return [];
}

/** The keys that the mapping at a path may have. */
export function knownKeys(path: ConfigPath, context: SchemaContext): string[] {
  return schemasAt(path, context).flatMap((schema) =>
    schema instanceof z.ZodObject ? Object.keys(schema.shape) : [],
  );
}

/** The schemas that may apply at a path, with whatever is wrapped around them. */
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

/** True when a variant of a union is the one that the value's own `type` names. */
function fitsType(option: Schema, value: JsonValue | undefined): boolean {
  const type = option instanceof z.ZodObject ? option.shape.type : undefined;
  return type instanceof z.ZodType && type.safeParse(member(value, 'type')).success;
}
