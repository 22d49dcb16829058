import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import { fold, isEmpty, leavesOf, type NameElement, setNames, sortedFold } from './leaves.ts';

type Pair = { element: JsonValue; stored: JsonValue | undefined };

/**
 * Most comparisons of elements of one set, reached only by thousands that differ in few values. The rest is paired by
 * equality and by quotes: a part of an element may count as its own element, and nothing is lost.
 */
const MOST_COMPARISONS = 500_000;

/**
 * Pairs each answered element with a stored one of the same name: an equal one, else one that contains it, else one
 * that it contains, else one with the same quotes. `left`: stored ones without a pair. Both lists are sets.
 */
function pairElements(
  stored: readonly JsonValue[],
  answered: readonly JsonValue[],
  nameElement: NameElement,
): { pairs: Pair[]; left: JsonValue[] } {
  const byText = new Map(stored.map((element) => [fold(element), element]));
  const pairs: Pair[] = answered.map((element) => ({ element, stored: byText.get(fold(element)) }));
  const spoken = new Set<JsonValue>(pairs.flatMap(({ stored }) => (stored === undefined ? [] : [stored])));
  const names = new Set(stored.map(nameElement));
  const open = pairs.filter(({ stored, element }) => stored === undefined && names.has(nameElement(element)));
  if (open.length > 0) pairOpen(open, { stored: new Elements(stored, nameElement), spoken, nameElement });
  return { pairs, left: stored.filter((element) => !spoken.has(element)) };
}

/** Elements that none of `others` contains whole. */
function notShown(elements: readonly JsonValue[], others: readonly JsonValue[]): JsonValue[] {
  if (elements.length === 0) return [];
  const shown = new Elements(others, () => '');
  return elements.filter((element) => shown.showing({ name: '', leaves: leavesOf(element) }).next().done);
}

function pairOpen(
  pairs: readonly Pair[],
  context: { stored: Elements; spoken: Set<JsonValue>; nameElement: NameElement },
): void {
  const { stored, spoken, nameElement } = context;
  const open = pairs.map((pair) => {
    const { element } = pair;
    return { pair, one: { name: nameElement(element), leaves: leavesOf(element) } };
  });
  const pairAll = (find: (one: Leafy, element: JsonValue) => JsonValue | undefined): void => {
    for (const { pair, one } of open) {
      if (pair.stored !== undefined) continue;
      pair.stored = find(one, pair.element);
      if (pair.stored !== undefined) spoken.add(pair.stored);
    }
  };
  const isFree = (stored: JsonValue): boolean => !spoken.has(stored);
  const equal = new FreeElements(stored.all, equalKey, isFree);
  pairAll((one) => equal.next(equalKey(one)));
  pairAll((one) => {
    let first: JsonValue | undefined;
    for (const { element } of stored.showing(one)) {
      if (isFree(element)) return element;
      first ??= element;
    }
    // A partial element may match several: it adds nothing, even if its match is already paired.
    return first;
  });
  pairAll((one) => stored.shownBy(one).find(({ element }) => isFree(element))?.element);
  const quotes = new FreeElements(
    stored.all.filter(({ element }) => isJsonObject(element)),
    ({ name, element }) => quotesKey(name, element),
    isFree,
  );
  pairAll(({ name }, element) => (isJsonObject(element) ? quotes.next(quotesKey(name, element)) : undefined));
}

type Leafy = { name: string; leaves: ReadonlySet<string> };

type UnpairedElement = Leafy & { element: JsonValue; at: number };

function equalKey({ name, leaves }: Leafy): string {
  return `${name} ${[...leaves].sort().join()}`;
}

function quotesKey(name: string, element: JsonValue): string {
  return `${name} ${isJsonObject(element) ? sortedFold(element.quoteIds) : ''}`;
}

/** Elements by a key, each returned while it is free. An element never becomes free again. */
class FreeElements {
  readonly #queues: Map<string, { elements: UnpairedElement[]; next: number }>;
  readonly #isFree: (element: JsonValue) => boolean;

  constructor(
    elements: readonly UnpairedElement[],
    key: (element: UnpairedElement) => string,
    isFree: (element: JsonValue) => boolean,
  ) {
    const groups = Map.groupBy(elements, key);
    this.#queues = new Map([...groups].map(([text, group]) => [text, { elements: group, next: 0 }]));
    this.#isFree = isFree;
  }

  next(key: string): JsonValue | undefined {
    const queue = this.#queues.get(key);
    if (queue === undefined) return undefined;
    for (; queue.next < queue.elements.length; queue.next += 1) {
      const candidate = queue.elements[queue.next]?.element;
      if (candidate !== undefined && this.#isFree(candidate)) return candidate;
    }
    return undefined;
  }
}

/** Elements of a set, indexed by their leaves, so that not every pair is compared. */
class Elements {
  readonly all: readonly UnpairedElement[];
  readonly #byLeaf = new Map<string, UnpairedElement[]>();
  #byRarest: Map<string, UnpairedElement[]> | null = null;
  #comparisons = 0;

  constructor(elements: readonly JsonValue[], nameElement: NameElement) {
    this.all = elements.map((element, at) => ({
      element,
      at,
      name: nameElement(element),
      leaves: leavesOf(element),
    }));
    for (const one of this.all) for (const leaf of one.leaves) push(this.#byLeaf, leaf, one);
  }

  /** Elements of the same name that have all leaves of one, in order. */
  *showing({ name, leaves }: Leafy): Generator<UnpairedElement> {
    let rarest: readonly UnpairedElement[] = this.all;
    for (const leaf of leaves) {
      const having = this.#byLeaf.get(leaf) ?? [];
      if (having.length < rarest.length) rarest = having;
    }
    for (const candidate of rarest) {
      if (!this.#mayCompare()) return;
      if (candidate.name === name && leaves.isSubsetOf(candidate.leaves)) yield candidate;
    }
  }

  /** Elements of the same name whose leaves one all has, in order. */
  shownBy({ name, leaves }: Leafy): UnpairedElement[] {
    this.#byRarest ??= this.#indexByRarest();
    const found: UnpairedElement[] = [];
    for (const leaf of leaves) {
      for (const candidate of this.#byRarest.get(leaf) ?? []) {
        if (!this.#mayCompare()) break;
        if (candidate.name === name && candidate.leaves.isSubsetOf(leaves)) found.push(candidate);
      }
    }
    return found.sort((one, other) => one.at - other.at);
  }

  /** Indexes each element by its rarest leaf: whatever contains the element has this leaf. */
  #indexByRarest(): Map<string, UnpairedElement[]> {
    const byRarest = new Map<string, UnpairedElement[]>();
    const count = (leaf: string): number => this.#byLeaf.get(leaf)?.length ?? 0;
    for (const one of this.all) {
      const [first, ...rest] = one.leaves;
      if (first === undefined) continue;
      push(
        byRarest,
        rest.reduce((rarest, leaf) => (count(leaf) < count(rarest) ? leaf : rarest), first),
        one,
      );
    }
    return byRarest;
  }

  #mayCompare(): boolean {
    this.#comparisons += 1;
    return this.#comparisons <= MOST_COMPARISONS;
  }
}

function push<V>(lists: Map<string, V[]>, key: string, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/**
 * Completeness of an answer.
 *
 * `grows`: at an equal or missing `updatedAt` two answers describe one state, so one can only show more of it.
 * A member that is absent, null or empty is omitted and retains its stored value; a set can only gain members.
 *
 * `replaces`: at a newer `updatedAt` a value, also null or empty, replaces the stored one.
 *
 * In both, a missing member is omitted, not removed: an omission is not a transition.
 */
export type Completeness = 'grows' | 'replaces';

type Difference = { changes: string[]; merged: JsonObject };

/** `updatedAt` only orders records; `id` is the subject's in any spelling. A difference in them alone is not a change. */
const IGNORED = new Set(['updatedAt', 'id']);

/** Compares a stored record with an answered one. Both are whole records; `unreadable` members count as omitted. */
export function diffRecords(
  stored: JsonObject,
  answered: JsonObject,
  options: { completeness: Completeness; unreadable: readonly string[] },
): Difference {
  const readable = Object.fromEntries(
    Object.entries(answered).filter(
      ([key]) => !options.unreadable.includes(key) || member(stored, key) === undefined,
    ),
  );
  const changes: string[] = [];
  const merged = mergeObject(stored, readable, { path: '', completeness: options.completeness, changes });
  const unreadable = new Set(options.unreadable);
  return { changes: changes.filter((path) => !IGNORED.has(path) && !unreadable.has(path)), merged };
}

type Walk = { path: string; completeness: Completeness; changes: string[] };

function mergeObject(stored: JsonObject, answered: JsonObject, walk: Walk): JsonObject {
  const merged: JsonObject = { ...stored };
  for (const [key, value] of Object.entries(answered)) {
    const path = walk.path === '' ? key : `${walk.path}.${key}`;
    const nameElement = setNames(key, { top: walk.path === '' });
    merged[key] = mergeValue(member(stored, key), value, { ...walk, path }, nameElement);
  }
  return merged;
}

/** Own member of an object: inherited ones were not in the answer. */
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
    if (walk.completeness === 'grows') return stored;
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

/** Matches elements by position. A longer list at one `updatedAt` continues the stored one. */
function mergeList(stored: JsonValue[], answered: JsonValue[], walk: Walk): JsonValue[] {
  const isLonger = answered.length > stored.length;
  if (walk.completeness === 'grows' && answered.length < stored.length) return stored;
  if (stored.length !== answered.length) walk.changes.push(walk.path);
  if (stored.length !== answered.length && !(walk.completeness === 'grows' && isLonger)) return answered;
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

/** True when two elements at one position are different steps, so that they must not be merged. */
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
  const merged = pairs.map(({ stored, element }) => {
    if (stored !== undefined) return mergeValue(stored, element, inner);
    inner.changes.push(walk.path);
    return element;
  });
  if (walk.completeness === 'grows') {
    for (const element of notShown(left, merged)) merged.push(element);
  } else if (left.length > 0) inner.changes.push(walk.path);
  if (inner.changes.length > 0) walk.changes.push(walk.path);
  return inner.changes.length > 0 ? distinct(merged) : stored;
}

function distinct(elements: JsonValue[]): JsonValue[] {
  const byText = new Map<string, JsonValue>();
  for (const element of elements) {
    const text = fold(element);
    if (!isEmpty(element) && !byText.has(text)) byText.set(text, element);
  }
  return [...byText.values()];
}
