import { canonicalJson, isJsonObject, type JsonValue } from '../json.ts';
import { foldHex } from '../subjects/subject.ts';

/** Text by which two values are compared: amounts as strings, `0x` hex without case, base58 as it is. */
export function fold(value: JsonValue): string {
  const folded = foldDeep(value);
  return typeof folded === 'string' ? folded : canonicalJson(folded);
}

/** One text for a list in any order. */
export function sortedFold(value: JsonValue | undefined): string {
  return Array.isArray(value) ? canonicalJson(value.map(fold).sort()) : fold(value ?? null);
}

/** Whether a value says nothing. */
export function isEmpty(value: JsonValue): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

function foldDeep(value: JsonValue): JsonValue {
  if (typeof value === 'string') return foldHex(value);
  if (Array.isArray(value)) return value.map(foldDeep);
  if (!isJsonObject(value)) return value === null ? null : String(value);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, foldDeep(inner)]));
}
