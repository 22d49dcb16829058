import { z } from 'zod';
import { isExactNumber, isJsonObject, type JsonObject, type JsonValue } from '../../domain/json.ts';

/** Result of the read of a body: the value, or a description of the unexpected content. */
export type Parsed<T> = { value: T } | { mismatch: string };

/** Integer, or its digits as a string: Unix seconds, chain ids. */
export const integerMember = z.union([z.int(), z.string().regex(/^\d{1,15}$/)]);

/** The same as a number. */
export const numberMember = integerMember.transform(Number);

/** A name, hash or address: text that was sent as text. */
export const textMember = z.string().refine((text) => !isExactNumber(text));

/** The same, and not empty. */
export const nameMember = textMember.min(1);

/** A member that is stored as it comes: it has a name, and no schema. */
export const passedMember = z.unknown().optional();

/** An amount in base units. A number counts by its digits. */
export const amountMember = z.string().refine((text) => !isExactNumber(text) || /^\d+$/.test(text));

/** Optional members of one kind of record, by name. */
export type Members = Readonly<Record<string, z.ZodType>>;

/** Names of the members that do not match their schema; the record itself stays valid. */
export function unreadableMembers(raw: JsonObject, members: Members): string[] {
  return Object.entries(members)
    .filter(([name, schema]) => Object.hasOwn(raw, name) && !schema.safeParse(raw[name]).success)
    .map(([name]) => name);
}

/** Reads the members without which a record is none. Of another record, names the first that does not match. */
export function readCore<T>(
  raw: JsonObject,
  core: z.ZodType<T>,
): { value: T } | { member: string; found: string } {
  const parsed = core.safeParse(raw);
  if (parsed.success) return { value: parsed.data };
  const path = (parsed.error.issues[0]?.path ?? []).map(String);
  let value: JsonValue | undefined = raw;
  for (const name of path) value = isJsonObject(value) ? value[name] : undefined;
  return { member: path.join('.'), found: kindOf(value) };
}

/** The schema of a whole record: its core, and its optional members. */
export function recordSchema(core: z.ZodRawShape, members: Members): z.ZodObject {
  const optional = Object.entries(members).map(([name, schema]) => [name, schema.optional()]);
  return z.object({ ...Object.fromEntries(optional), ...core });
}

/** An integer member as a number; null when it is absent, null or unreadable. */
export function integerOrNull(value: JsonValue | undefined): number | null {
  const parsed = integerMember.safeParse(value);
  return parsed.success ? Number(parsed.data) : null;
}

/** A text member; null when it is absent, empty or anything else, such as a number too large to be held. */
export function textOrNull(value: JsonValue | undefined): string | null {
  return typeof value === 'string' && value !== '' && !isExactNumber(value) ? value : null;
}

/**
 * Reads the entries of a list: at most `most` of them, and as many unreadable ones; the last of these counts the
 * rest. A hostile list would otherwise exceed what the loop can receive from a thread at once.
 */
export function readEntries<T>(
  list: readonly JsonValue[],
  { most, read }: { most: number; read: (entry: JsonValue) => Parsed<T> },
): { entries: T[]; unreadable: { index: number; reason: string }[] } {
  const entries: T[] = [];
  const unreadable: { index: number; reason: string }[] = [];
  for (const [index, entry] of list.entries()) {
    if (entries.length >= most || unreadable.length >= most) {
      unreadable.push({ index, reason: `${list.length - index} more entries, expected at most ${most}` });
      break;
    }
    const parsed = read(entry);
    if ('value' in parsed) entries.push(parsed.value);
    else unreadable.push({ index, reason: parsed.mismatch });
  }
  return { entries, unreadable };
}

/** Names the kind of a value without quoting it. */
export function kindOf(value: JsonValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (value === '') return 'an empty string';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A whole number that fits 256 bits, as digits: an amount or a nonce. */
export const digitsField = z.string().regex(/^\d{1,78}$/, { error: 'base units as digits' });

export const chainField = z
  .int({ error: 'a chain id as a whole number' })
  .min(1, { error: 'a chain id from 1' });

export const addressField = z.string().regex(/^[0-9A-Za-z]{20,90}$/, { error: 'an address' });

/** Serializes a request once, for identical resends. Throws a RangeError that names every bad field, without its value. */
export function payloadOf(schema: z.ZodType, value: unknown): string {
  const parsed = schema.safeParse(value);
  if (parsed.success) return JSON.stringify(parsed.data);
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'request'}: ${message}`);
  throw new RangeError(`request not sent: ${faults.join('; ')}`);
}
