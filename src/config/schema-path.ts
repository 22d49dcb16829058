import { z } from 'zod';
import type { JsonObject, JsonValue } from '../domain/json.ts';
import type { ConfigPath } from './errors.ts';
import { member, valueAt } from './tree.ts';

type Schema = z.core.$ZodType;

/** A schema, and the values it was applied to, which decide between the variants of a union. */
export type SchemaContext = { schema: Schema; tree: JsonObject };

/** Whether the value at a path, or anything around it, is marked as secret (`writeOnly`) by the schema. */
export function isSecret(path: ConfigPath, context: SchemaContext): boolean {
  return path.some((_, index) =>
    schemasAt(path.slice(0, index + 1), context).some(
      (schema) => z.globalRegistry.get(schema)?.writeOnly === true,
    ),
  );
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
      return outer.flatMap((each) => layers(child(each, key), value));
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

/** Whether a variant of a union is the one that the value's own `type` names. */
function fitsType(option: Schema, value: JsonValue | undefined): boolean {
  const type = option instanceof z.ZodObject ? option.shape.type : undefined;
  return type instanceof z.ZodType && type.safeParse(member(value, 'type')).success;
}
