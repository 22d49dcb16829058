import { canonicalJson, isJsonObject, type JsonValue } from '../json.ts';
import { foldHex } from '../subjects/subject.ts';

export type NameElement = (element: JsonValue) => string;

/**
 * Members that are sets: the order of their elements means nothing. The function says which elements may be one and
 * the same; several may share a name. A map, for the upstream may well have a member called `constructor`.
 */
const SETS: ReadonlyMap<string, NameElement> = new Map<string, NameElement>([
  ['intentHashes', fold],
  ['quoteIds', fold],
  ['wallets', fold],
  ['subStatuses', (element) => fold(isJsonObject(element) ? (element.chainId ?? null) : element)],
]);

/**
 * How the elements of a member are named; undefined for a member that is no set. `top`: it is a member of the record
 * itself. Sub-statuses within others are no part of the interface; to match those would cost time without bound.
 */
export function setNames(key: string, { top }: { top: boolean }): NameElement | undefined {
  return key === 'subStatuses' && !top ? undefined : SETS.get(key);
}

/**
 * All that a value shows, each piece a text of path and value. One value shows all that another shows exactly where it
 * has every leaf of the other. What is empty is not said and has no leaf.
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
      // A list that is longer shows more, also where its last element says nothing.
      leaves.add(`${path}[${index}]`);
      collect(element, { path: `${path}[${index}]`, isSet: false }, leaves);
    });
  }
}

/** Text by which two values are compared: amounts as strings, `0x` hex without case, base58 as it is. */
export function fold(value: JsonValue): string {
  const folded = foldDeep(value);
  return typeof folded === 'string' ? folded : canonicalJson(folded);
}

/** One text for a list in any order. */
export function sortedFold(value: JsonValue | undefined): string {
  return Array.isArray(value) ? canonicalJson(value.map(fold).sort()) : fold(value ?? null);
}

/** True when a value says nothing. */
export function isEmpty(value: JsonValue): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

function foldDeep(value: JsonValue): JsonValue {
  if (typeof value === 'string') return foldHex(value);
  if (Array.isArray(value)) return value.map(foldDeep);
  if (!isJsonObject(value)) return value === null ? null : String(value);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, foldDeep(inner)]));
}
