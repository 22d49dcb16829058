import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { fold, isEmpty, type NameElement, setNames } from './leaves.ts';
import { notShown, pairElements } from './pair-elements.ts';

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

/** `updatedAt` orders records; `id` is the subject's, however it is spelled. A difference in them alone says nothing. */
const IGNORED = new Set(['updatedAt', 'id']);

/** Compares a stored record with a newly said one. Both are whole records; `unreadable` members are not said. */
export function diffRecords(
  stored: JsonObject,
  answered: JsonObject,
  options: { reading: Reading; unreadable: readonly string[] },
): Difference {
  const readable = Object.fromEntries(
    Object.entries(answered).filter(
      ([key]) => !options.unreadable.includes(key) || member(stored, key) === undefined,
    ),
  );
  const changes: string[] = [];
  const merged = mergeObject(stored, readable, { path: '', reading: options.reading, changes });
  const unreadable = new Set(options.unreadable);
  return { changes: changes.filter((path) => !IGNORED.has(path) && !unreadable.has(path)), merged };
}

type Walk = { path: string; reading: Reading; changes: string[] };

function mergeObject(stored: JsonObject, answered: JsonObject, walk: Walk): JsonObject {
  const merged: JsonObject = { ...stored };
  for (const [key, value] of Object.entries(answered)) {
    const path = walk.path === '' ? key : `${walk.path}.${key}`;
    const nameElement = setNames(key, { top: walk.path === '' });
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
  answered: JsonValue,
  walk: Walk,
  nameElement?: NameElement,
): JsonValue {
  if (stored === undefined || stored === null) {
    if (!isEmpty(answered)) walk.changes.push(walk.path);
    return answered;
  }
  if (isEmpty(answered)) {
    if (walk.reading === 'grows') return stored;
    if (!isEmpty(stored)) walk.changes.push(walk.path);
    return answered;
  }
  if (isJsonObject(stored) && isJsonObject(answered)) return mergeObject(stored, answered, walk);
  if (Array.isArray(stored) && Array.isArray(answered)) {
    return nameElement ? mergeSet(stored, answered, walk, nameElement) : mergeList(stored, answered, walk);
  }
  if (fold(stored) !== fold(answered)) {
    walk.changes.push(walk.path);
    return answered;
  }
  return stored;
}

/** Elements are matched by their place. A longer list at one `updatedAt` goes on where the stored one ended. */
function mergeList(stored: JsonValue[], answered: JsonValue[], walk: Walk): JsonValue[] {
  const isLonger = answered.length > stored.length;
  if (walk.reading === 'grows' && answered.length < stored.length) return stored;
  if (stored.length !== answered.length) walk.changes.push(walk.path);
  if (stored.length !== answered.length && !(walk.reading === 'grows' && isLonger)) return answered;
  const changes = isLonger ? [] : walk.changes;
  return answered.map((value, index) => {
    const path = `${walk.path}[${index}]`;
    const before = stored[index];
    if (before === undefined) return value;
    if (!isOtherStep(before, value)) return mergeValue(before, value, { ...walk, path, changes });
    changes.push(path);
    return value;
  });
}

/** True when two elements at one place are different steps: then nothing of the one may pass into the other. */
function isOtherStep(stored: JsonValue, answered: JsonValue): boolean {
  if (!isJsonObject(stored) || !isJsonObject(answered)) return false;
  return ['type', 'intentHash'].some((key) => {
    const [before, after] = [member(stored, key) ?? null, member(answered, key) ?? null];
    return !isEmpty(before) && !isEmpty(after) && fold(before) !== fold(after);
  });
}

function mergeSet(
  stored: JsonValue[],
  answered: JsonValue[],
  walk: Walk,
  nameElement: NameElement,
): JsonValue[] {
  const inner: Walk = { ...walk, changes: [] };
  const { pairs, left } = pairElements(distinct(stored), distinct(answered), nameElement);
  const merged = pairs.map(({ known, element }) => {
    if (known !== undefined) return mergeValue(known, element, inner);
    inner.changes.push(walk.path);
    return element;
  });
  if (walk.reading === 'grows') {
    for (const element of notShown(left, merged)) merged.push(element);
  } else if (left.length > 0) inner.changes.push(walk.path);
  if (inner.changes.length > 0) walk.changes.push(walk.path);
  return inner.changes.length > 0 ? distinct(merged) : stored;
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
