import { isJsonObject, type JsonValue } from '../json.ts';
import { fold, leavesOf, type NameElement, sortedFold } from './leaves.ts';

export type Pair = { element: JsonValue; known: JsonValue | undefined };

/**
 * The interval at which two elements of one set are held against each other at most. Only a set of thousands that differ in few
 * values comes to that; what is left then is paired by equality and by quotes alone: a part of an element may count as
 * an element of its own, and nothing is lost.
 */
const MOST_COMPARISONS = 500_000;

/**
 * Finds for each said element the stored one that it speaks of. Among those of the same name that is one that is
 * equal, else one that shows all that the said one shows, else one that shows less, else one with the same quotes.
 * `left` are the stored ones that nothing spoke of. No element stands twice in either list.
 */
export function pairElements(
  stored: readonly JsonValue[],
  answered: readonly JsonValue[],
  nameElement: NameElement,
): { pairs: Pair[]; left: JsonValue[] } {
  const byText = new Map(stored.map((element) => [fold(element), element]));
  const pairs: Pair[] = answered.map((element) => ({ element, known: byText.get(fold(element)) }));
  const spoken = new Set<JsonValue>(pairs.flatMap(({ known }) => (known === undefined ? [] : [known])));
  const names = new Set(stored.map(nameElement));
  const open = pairs.filter(({ known, element }) => known === undefined && names.has(nameElement(element)));
  if (open.length > 0) pairOpen(open, { stored: new Elements(stored, nameElement), spoken, nameElement });
  return { pairs, left: stored.filter((element) => !spoken.has(element)) };
}

/** Those of some elements that none of the others shows whole. */
export function notShown(elements: readonly JsonValue[], others: readonly JsonValue[]): JsonValue[] {
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
      if (pair.known !== undefined) continue;
      pair.known = find(one, pair.element);
      if (pair.known !== undefined) spoken.add(pair.known);
    }
  };
  const isFree = (known: JsonValue): boolean => !spoken.has(known);
  const equal = new FreeElements(stored.all, equalKey, isFree);
  pairAll((one) => equal.next(equalKey(one)));
  pairAll((one) => {
    let first: JsonValue | undefined;
    for (const { element } of stored.showing(one)) {
      if (isFree(element)) return element;
      first ??= element;
    }
    // What is shown in part may be any of several: it adds nothing, also where another spoke of that one already.
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

/** What of an element says which others it may be: its name, and all that it shows. */
type Leafy = { name: string; leaves: ReadonlySet<string> };

type Element = Leafy & { element: JsonValue; at: number };

function equalKey({ name, leaves }: Leafy): string {
  return `${name} ${[...leaves].sort().join()}`;
}

function quotesKey(name: string, element: JsonValue): string {
  return `${name} ${isJsonObject(element) ? sortedFold(element.quoteIds) : ''}`;
}

/** Elements by a key, each given out while it is free. What is not free never becomes so again. */
class FreeElements {
  readonly #queues: Map<string, { elements: Element[]; next: number }>;
  readonly #isFree: (element: JsonValue) => boolean;

  constructor(
    elements: readonly Element[],
    key: (element: Element) => string,
    isFree: (element: JsonValue) => boolean,
  ) {
    const groups = Map.groupBy(elements, key);
    this.#queues = new Map([...groups].map(([text, group]) => [text, { elements: group, next: 0 }]));
    this.#isFree = isFree;
  }

  /** The first free element of a key. */
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

/** Elements of a set, found by what they show without holding each against each. */
class Elements {
  readonly all: readonly Element[];
  readonly #byLeaf = new Map<string, Element[]>();
  #byRarest: Map<string, Element[]> | null = null;
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

  /** The elements of the same name that show all that one shows, in their order. */
  *showing({ name, leaves }: Leafy): Generator<Element> {
    let rarest: readonly Element[] = this.all;
    for (const leaf of leaves) {
      const having = this.#byLeaf.get(leaf) ?? [];
      if (having.length < rarest.length) rarest = having;
    }
    for (const candidate of rarest) {
      if (!this.#mayCompare()) return;
      if (candidate.name === name && leaves.isSubsetOf(candidate.leaves)) yield candidate;
    }
  }

  /** The elements of the same name of which one shows all, in their order. */
  shownBy({ name, leaves }: Leafy): Element[] {
    this.#byRarest ??= this.#indexByRarest();
    const found: Element[] = [];
    for (const leaf of leaves) {
      for (const candidate of this.#byRarest.get(leaf) ?? []) {
        if (!this.#mayCompare()) break;
        if (candidate.name === name && candidate.leaves.isSubsetOf(leaves)) found.push(candidate);
      }
    }
    return found.sort((one, other) => one.at - other.at);
  }

  /** Each element under that of its leaves that the fewest have: whoever shows the element has this leaf. */
  #indexByRarest(): Map<string, Element[]> {
    const byRarest = new Map<string, Element[]>();
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
