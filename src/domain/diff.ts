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

type NameElement = (element: JsonValue) => string;

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

/** `updatedAt` orders records; `id` is the subject's, however it is spelled. A difference in them alone says nothing. */
const IGNORED = new Set(['updatedAt', 'id']);

/** Compares a stored record with a newly said one. Both are whole records; `unreadable` members are not said. */
export function diffRecords(
  stored: JsonObject,
  said: JsonObject,
  options: { reading: Reading; unreadable: readonly string[] },
): Difference {
  const readable = Object.fromEntries(
    Object.entries(said).filter(
      ([key]) => !options.unreadable.includes(key) || member(stored, key) === undefined,
    ),
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
    // Sub-statuses within others are no part of the interface; to match those would cost time without bound.
    const nameElement = key === 'subStatuses' && walk.path !== '' ? undefined : SETS.get(key);
    merged[key] = mergeValue(member(stored, key), value, { ...walk, path }, nameElement);
  }
  return merged;
}

/** A member of the object's own: what every object inherits was not said. */
function member(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function mergeValue(
  stored: JsonValue | undefined,
  said: JsonValue,
  walk: Walk,
  nameElement?: NameElement,
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

/** Elements are matched by their place. A longer list at one `updatedAt` goes on where the stored one ended. */
function mergeList(stored: JsonValue[], said: JsonValue[], walk: Walk): JsonValue[] {
  const isLonger = said.length > stored.length;
  if (walk.reading === 'grows' && said.length < stored.length) return stored;
  if (stored.length !== said.length) walk.changes.push(walk.path);
  if (stored.length !== said.length && !(walk.reading === 'grows' && isLonger)) return said;
  const changes = isLonger ? [] : walk.changes;
  return said.map((value, index) => {
    const path = `${walk.path}[${index}]`;
    const before = stored[index];
    if (before === undefined) return value;
    if (!isOtherStep(before, value)) return mergeValue(before, value, { ...walk, path, changes });
    changes.push(path);
    return value;
  });
}

/** Whether two elements at one place are different steps: then nothing of the one may pass into the other. */
function isOtherStep(stored: JsonValue, said: JsonValue): boolean {
  if (!isJsonObject(stored) || !isJsonObject(said)) return false;
  return ['type', 'intentHash'].some((key) => {
    const [before, after] = [member(stored, key) ?? null, member(said, key) ?? null];
    return !isEmpty(before) && !isEmpty(after) && fold(before) !== fold(after);
  });
}

function mergeSet(stored: JsonValue[], said: JsonValue[], walk: Walk, nameElement: NameElement): JsonValue[] {
  const inner: Walk = { ...walk, changes: [] };
  const { pairs, left } = pairElements(distinct(stored), distinct(said), nameElement);
  const merged = pairs.map(({ known, element }) => {
    if (known !== undefined) return mergeValue(known, element, inner);
    inner.changes.push(walk.path);
    return element;
  });
  if (walk.reading === 'grows') {
    merged.push(...left.filter((element) => !merged.some((other) => shows(other, element))));
  } else if (left.length > 0) inner.changes.push(walk.path);
  if (inner.changes.length > 0) walk.changes.push(walk.path);
  return inner.changes.length > 0 ? distinct(merged) : stored;
}

type Pair = { element: JsonValue; known: JsonValue | undefined };

/**
 * Finds for each said element the stored one that it speaks of. Among those of the same name that is one that is
 * equal, else one that shows all that the said one shows, else one that shows less, else one with the same quotes.
 * `left` are the stored ones that nothing spoke of.
 */
function pairElements(
  stored: JsonValue[],
  said: JsonValue[],
  nameElement: NameElement,
): { pairs: Pair[]; left: JsonValue[] } {
  const byName = Map.groupBy(stored, nameElement);
  const byText = new Map(stored.map((element) => [fold(element), element]));
  const pairs: Pair[] = said.map((element) => ({ element, known: byText.get(fold(element)) }));
  const spoken = new Set<JsonValue>(pairs.flatMap(({ known }) => (known === undefined ? [] : [known])));
  for (const fits of [isEqual, shows, isShownBy, hasSameQuotes]) {
    for (const pair of pairs) {
      if (pair.known !== undefined) continue;
      const fitting = (byName.get(nameElement(pair.element)) ?? []).filter((known) =>
        fits(known, pair.element),
      );
      // What is shown in part may be any of several: it adds nothing, also where another spoke of that one already.
      pair.known = fitting.find((known) => !spoken.has(known)) ?? (fits === shows ? fitting[0] : undefined);
      if (pair.known !== undefined) spoken.add(pair.known);
    }
  }
  return { pairs, left: stored.filter((element) => !spoken.has(element)) };
}

/** Equal in spite of the order of sets within. */
function isEqual(one: JsonValue, other: JsonValue): boolean {
  return shows(one, other) && shows(other, one);
}

/** Whether one value shows all that another shows. */
function shows(one: JsonValue, other: JsonValue): boolean {
  const changes: string[] = [];
  mergeValue(one, other, { path: 'element', reading: 'grows', changes });
  return changes.length === 0;
}

function isShownBy(one: JsonValue, other: JsonValue): boolean {
  return shows(other, one);
}

function hasSameQuotes(one: JsonValue, other: JsonValue): boolean {
  if (!isJsonObject(one) || !isJsonObject(other)) return false;
  return sortedFold(one.quoteIds) === sortedFold(other.quoteIds);
}

/** The elements of a set, each once; an empty one says nothing. */
function distinct(elements: JsonValue[]): JsonValue[] {
  const byText = new Map<string, JsonValue>();
  for (const element of elements) {
    const text = fold(element);
    if (!isEmpty(element) && !byText.has(text)) byText.set(text, element);
  }
  return [...byText.values()];
}

function isEmpty(value: JsonValue): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

/** Text by which two values are compared: amounts as strings, `0x` hex without case, base58 as it is. */
function fold(value: JsonValue): string {
  const folded = foldDeep(value);
  return typeof folded === 'string' ? folded : canonicalJson(folded);
}

function foldDeep(value: JsonValue): JsonValue {
  if (typeof value === 'string') return foldHex(value);
  if (Array.isArray(value)) return value.map(foldDeep);
  if (!isJsonObject(value)) return value === null ? null : String(value);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, foldDeep(inner)]));
}

/** One text for a list in any order. */
function sortedFold(value: JsonValue | undefined): string {
  return Array.isArray(value) ? canonicalJson(value.map(fold).sort()) : fold(value ?? null);
}
