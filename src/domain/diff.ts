import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import { foldHex } from './subject.ts';

/**
 * How much an answer says.
 *
 * `grows`: at an equal or missing `updatedAt` two answers describe one state, so one can only show more of it than the
 * other: a member that is absent, null or empty is not said and keeps its stored value, a set can only gain members.
 * `replaces`: at a newer `updatedAt` a value, also null or empty, replaces the stored one. A member that is left out
 * is not said in either case: an answer that omits a member is not a transition.
 */
export type Reading = 'grows' | 'replaces';

/** The changed paths, and the record with what was said taken over and what was not said kept. */
export type Difference = { changes: string[]; merged: JsonObject };

/** Members that are sets: the order of their elements means nothing. The function names an element. */
const SETS: { readonly [member: string]: (element: JsonValue) => string } = {
  intentHashes: fold,
  quoteIds: fold,
  wallets: fold,
  subStatuses: (element) =>
    isJsonObject(element)
      ? canonicalJson([fold(element.chainId ?? null), sortedFold(element.quoteIds)])
      : fold(element),
};

/** `updatedAt` orders records; a difference in it alone says nothing. */
const IGNORED = new Set(['updatedAt']);

/** Compares a stored record with a newly said one. Both are whole records; `unreadable` members are not said. */
export function diffRecords(
  stored: JsonObject,
  said: JsonObject,
  options: { reading: Reading; unreadable: readonly string[] },
): Difference {
  const readable = Object.fromEntries(
    Object.entries(said).filter(([key]) => !options.unreadable.includes(key) || stored[key] === undefined),
  );
  const changes: string[] = [];
  const merged = mergeObject(stored, readable, { path: '', reading: options.reading, changes });
  const unreadable = new Set(options.unreadable);
  return { changes: changes.filter((path) => !IGNORED.has(path) && !unreadable.has(path)), merged };
}

type Walk = { path: string; reading: Reading; changes: string[] };

function mergeObject(stored: JsonObject, said: JsonObject, walk: Walk): JsonObject {
  const merged: JsonObject = { ...stored };
  for (const [key, value] of Object.entries(said)) {
    const path = walk.path === '' ? key : `${walk.path}.${key}`;
    merged[key] = mergeValue(stored[key], value, { ...walk, path }, SETS[key]);
  }
  return merged;
}

function mergeValue(
  stored: JsonValue | undefined,
  said: JsonValue,
  walk: Walk,
  nameElement?: (element: JsonValue) => string,
): JsonValue {
  if (stored === undefined || stored === null) {
    if (!isEmpty(said)) walk.changes.push(walk.path);
    return said;
  }
  if (isEmpty(said)) {
    if (walk.reading === 'grows') return stored;
    if (!isEmpty(stored)) walk.changes.push(walk.path);
    return said;
  }
  if (isJsonObject(stored) && isJsonObject(said)) return mergeObject(stored, said, walk);
  if (Array.isArray(stored) && Array.isArray(said)) {
    return nameElement ? mergeSet(stored, said, walk, nameElement) : mergeList(stored, said, walk);
  }
  if (fold(stored) !== fold(said)) {
    walk.changes.push(walk.path);
    return said;
  }
  return stored;
}

function mergeList(stored: JsonValue[], said: JsonValue[], walk: Walk): JsonValue[] {
  if (stored.length === said.length) {
    return said.map((value, index) => {
      const before = stored[index];
      return mergeValue(before, value, { ...walk, path: `${walk.path}[${index}]` });
    });
  }
  if (walk.reading === 'grows' && said.length < stored.length) return stored;
  walk.changes.push(walk.path);
  return said;
}

function mergeSet(
  stored: JsonValue[],
  said: JsonValue[],
  walk: Walk,
  nameElement: (element: JsonValue) => string,
): JsonValue[] {
  const before = new Map(stored.map((element) => [nameElement(element), element]));
  const names = new Set<string>();
  const merged: JsonValue[] = [];
  const inner: Walk = { ...walk, changes: [] };
  for (const element of said) {
    const name = nameElement(element);
    if (names.has(name)) continue;
    names.add(name);
    const known = before.get(name);
    if (known === undefined) inner.changes.push(walk.path);
    merged.push(known === undefined ? element : mergeValue(known, element, inner));
  }
  for (const [name, element] of before) {
    if (names.has(name)) continue;
    if (walk.reading === 'grows') merged.push(element);
    else inner.changes.push(walk.path);
  }
  if (inner.changes.length > 0) walk.changes.push(walk.path);
  return inner.changes.length > 0 ? merged : stored;
}

function isEmpty(value: JsonValue): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

/** Text by which two values are compared: amounts as strings, `0x` hex without case, base58 as it is. */
function fold(value: JsonValue): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return foldHex(value);
  return canonicalJson(value);
}

function sortedFold(value: JsonValue | undefined): JsonValue {
  return Array.isArray(value) ? value.map(fold).sort() : fold(value ?? null);
}
