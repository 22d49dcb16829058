import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { foldHex } from '../subjects/subject.ts';

export type NameElement = (element: JsonValue) => string;

/**
 * Members that are sets: the order of their elements means nothing. The function names an element; several may share
 * a name. A Map, since the upstream may have a member called `constructor`.
 */
const SETS: ReadonlyMap<string, NameElement> = new Map<string, NameElement>([
  ['intentHashes', fold],
  ['quoteIds', fold],
  ['wallets', fold],
  ['subStatuses', (element) => fold(isJsonObject(element) ? (element.chainId ?? null) : element)],
]);

/**
 * Returns the function that names a member's elements; undefined for a member that is no set. `top`: it is a member
 * of the record itself. Nested sub-statuses are no part of the interface; matching them would cost unbounded time.
 */
export function setNames(key: string, { top }: { top: boolean }): NameElement | undefined {
  return key === 'subStatuses' && !top ? undefined : SETS.get(key);
}

/**
 * All leaves of a value, each a text of path and value. One value contains another exactly when it has all its
 * leaves. An empty value counts as omitted and has no leaf.
 */
export function leavesOf(value: JsonValue): Set<string> {
  const leaves = new Set<string>();
  collect(value, { path: '', isSet: false }, leaves);
  return leaves;
}

function collect(value: JsonValue, at: { path: string; isSet: boolean }, leaves: Set<string>): void {
  const { path } = at;
  if (isEmpty(value)) return;
  if (isJsonObject(value)) {
    leaves.add(`${path}{}`);
    for (const [key, inner] of Object.entries(value)) {
      const isSet = setNames(key, { top: false }) !== undefined;
      collect(inner, { path: `${path}.${JSON.stringify(key)}`, isSet }, leaves);
    }
  } else if (!Array.isArray(value)) {
    leaves.add(`${path}=${fold(value)}`);
  } else if (at.isSet) {
    leaves.add(`${path}[]`);
    for (const element of value) if (!isEmpty(element)) leaves.add(`${path}[]=${fold(element)}`);
  } else {
    value.forEach((element, index) => {
      // A longer list shows more, even if its last element is empty.
      leaves.add(`${path}[${index}]`);
      collect(element, { path: `${path}[${index}]`, isSet: false }, leaves);
    });
  }
}

/** Text by which two values are compared: amounts as strings, `0x` hex without case, base58 unchanged. */
export function fold(value: JsonValue): string {
  const folded = foldDeep(value);
  return typeof folded === 'string' ? folded : canonicalJson(folded);
}

/** One text for a list in any order. */
export function sortedFold(value: JsonValue | undefined): string {
  return Array.isArray(value) ? canonicalJson(value.map(fold).sort()) : fold(value ?? null);
}

/** True for null, an empty text or an empty list, which count as omitted. */
export function isEmpty(value: JsonValue): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

function foldDeep(value: JsonValue): JsonValue {
  if (typeof value === 'string') return foldHex(value);
  if (Array.isArray(value)) return value.map(foldDeep);
  if (!isJsonObject(value)) return value === null ? null : String(value);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, foldDeep(inner)]));
}

/** Most stored characters of an event's old values, and of one value: the log holds every event for the retention. */
const MOST_OF_ALL = 2_000;
const MOST_OF_ONE = 1_000;

/**
 * The value at a path as `diffRecords` writes it (`steps[0].status`); null when there is none, undefined when the
 * path does not lead through this record. A member with a dot in its name is found as well.
 */
function valueAt(record: JsonValue, path: string): JsonValue | undefined {
  if (path === '') return record;
  if (Array.isArray(record)) {
    const [whole, index] = /^\[(\d{1,9})\]/.exec(path) ?? [];
    if (whole === undefined) return undefined;
    const element = record[Number(index)];
    return element === undefined ? null : valueAt(element, withoutDot(path.slice(whole.length)));
  }
  if (!isJsonObject(record)) return null;
  // The longest name first. The path is cut instead of trying every name: a record may have any number of members.
  for (let end = path.length; end > 0; end = lastCut(path, end - 1)) {
    const key = path.slice(0, end);
    if (!Object.hasOwn(record, key)) continue;
    const found = valueAt(record[key] ?? null, withoutDot(path.slice(end)));
    if (found !== undefined) return found;
  }
  return null;
}

/** Last position, at or before `from`, of a dot or bracket that may end a member's name; -1 for none. */
function lastCut(path: string, from: number): number {
  return Math.max(path.lastIndexOf('.', from), path.lastIndexOf('[', from));
}

function withoutDot(path: string): string {
  return path.startsWith('.') ? path.slice(1) : path;
}

/** The values at some paths, null for one that is too long to store; missing and empty values are omitted. */
export function valuesAt(record: JsonObject, paths: readonly string[]): JsonObject {
  let left = MOST_OF_ALL;
  return Object.fromEntries(
    paths.flatMap((path) => {
      if (path.length > MOST_OF_ONE) return [[path, null]];
      const value = valueAt(record, path) ?? null;
      if (isEmpty(value)) return [];
      const { length } = canonicalJson(value);
      if (length > Math.min(left, MOST_OF_ONE)) return [[path, null]];
      left -= length;
      return [[path, value]];
    }),
  );
}
