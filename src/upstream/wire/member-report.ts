import { z } from 'zod';
import { isJsonObject, type JsonValue } from '../../domain/json.ts';
import { kindOf } from './wire.ts';

/** An unknown member: the path of its object, which schemas name, and its own name, which the upstream chose. */
export type UnknownMember = { parent: string; name: string; types: Set<string> };

/**
 * Members of an answer, compared with the schema of its reader. A path has `[]` for the entries of a list. `read`: paths of
 * values that fit; `unknown`: members that no schema names; `unreadable`: paths with the reasons, none of which has a value.
 */
export type MemberReport = {
  read: Set<string>;
  unknown: Map<string, UnknownMember>;
  unreadable: Map<string, Set<string>>;
};

type AnswerSchema = z.core.$ZodType;

/** Compares an answer with the schema of its reader. Linear in the answer's size. */
export function reportMembers(schema: AnswerSchema, body: JsonValue): MemberReport {
  const report: MemberReport = { read: new Set(), unknown: new Map(), unreadable: new Map() };
  compare(schema, body, { path: '', report });
  return report;
}

type MemberPlace = { path: string; report: MemberReport };

function compare(outer: AnswerSchema, value: JsonValue | undefined, place: MemberPlace): void {
  const { path, report } = place;
  const schema = chosen(inner(outer), value);
  if (schema instanceof z.ZodObject && isJsonObject(value)) {
    compareMembers(schema, value, place);
  } else if (schema instanceof z.ZodArray && Array.isArray(value) && value.length > 0) {
    for (const entry of value) compare(schema.element, entry, { path: `${path}[]`, report });
  } else if (z.safeParse(outer, value).success) report.read.add(path);
  else addTo(report.unreadable, path === '' ? 'the answer' : path, reasonOf(schema, value));
}

function compareMembers(schema: z.ZodObject, value: { [name: string]: JsonValue }, place: MemberPlace): void {
  const { path, report } = place;
  const { shape } = schema;
  for (const [name, member] of Object.entries(shape)) {
    const at = { path: path === '' ? name : `${path}.${name}`, report };
    if (Object.hasOwn(value, name)) compare(member, value[name], at);
    else if (!z.safeParse(member, undefined).success) compare(member, undefined, at);
  }
  for (const [name, unknown] of Object.entries(value)) {
    if (Object.hasOwn(shape, name)) continue;
    const key = JSON.stringify([path, name]);
    const found = report.unknown.get(key) ?? { parent: path, name, types: new Set() };
    report.unknown.set(key, found);
    found.types.add(kindOf(unknown));
  }
}

/** The schema within those that allow absence or null, or change the value. */
function inner(schema: AnswerSchema): AnswerSchema {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return inner(schema.unwrap());
  return schema instanceof z.ZodPipe ? inner(schema.in) : schema;
}

/** Of a union the option that accepts the value, else the one of the same kind. */
function chosen(schema: AnswerSchema, value: JsonValue | undefined): AnswerSchema {
  if (!(schema instanceof z.ZodUnion)) return schema;
  const options = schema.options.map(inner);
  const isFor = (option: AnswerSchema): boolean =>
    (option instanceof z.ZodObject && isJsonObject(value)) ||
    (option instanceof z.ZodArray && Array.isArray(value));
  return (
    options.find((option) => isFor(option) && z.safeParse(option, value).success) ??
    options.find(isFor) ??
    schema
  );
}

function reasonOf(schema: AnswerSchema, value: JsonValue | undefined): string {
  const [found, expected] = [kindOf(value), kindsOf(schema)];
  return expected.includes(found)
    ? `found ${found} of another form`
    : `found ${found}, expected ${expected.join(' or ')}`;
}

/** Kinds of value that a schema accepts, as `kindOf` names them. */
function kindsOf(schema: AnswerSchema): string[] {
  const bare = inner(schema);
  if (bare instanceof z.ZodUnion) return [...new Set(bare.options.flatMap(kindsOf))];
  if (bare instanceof z.ZodArray) return ['an array'];
  if (bare instanceof z.ZodUnknown) return ['a value'];
  return [bare instanceof z.ZodObject ? 'an object' : `a ${bare._zod.def.type}`];
}

function addTo(map: Map<string, Set<string>>, key: string, value: string): void {
  const set = map.get(key) ?? new Set();
  map.set(key, set.add(value));
}
