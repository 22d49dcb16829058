import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { isObject } from './recorded-shape.ts';

/** The ways in which an answer is changed. */
export const CHANGES = ['missing', 'null', 'extra', 'another type', 'another case', 'another name'] as const;

/** One change: `at` chooses the place among all of them, `pick` among the values. */
export type RecordedChange = { how: (typeof CHANGES)[number]; at: number; pick: number };

/** One to three changes of one answer. */
export const changes: fc.Arbitrary<RecordedChange[]> = fc.array(
  fc.record({ how: fc.constantFrom(...CHANGES), at: fc.nat(), pick: fc.nat(1_000) }),
  { minLength: 1, maxLength: 3 },
);

type ValuePlace = { path: readonly (string | number)[]; value: JsonValue };

/** Every place of a value, its whole included. */
function places(value: JsonValue, path: readonly (string | number)[] = []): ValuePlace[] {
  const inner = Array.isArray(value)
    ? value.flatMap((one, index) => places(one, [...path, index]))
    : isObject(value)
      ? Object.entries(value).flatMap(([key, one]) => places(one, [...path, key]))
      : [];
  return [{ path, value }, ...inner];
}

const REMOVED = Symbol('removed');

/** The value with another one at a place. */
function replaced(
  whole: JsonValue,
  [key, ...rest]: readonly (string | number)[],
  by: JsonValue | typeof REMOVED,
): JsonValue | typeof REMOVED {
  if (key === undefined) return by;
  if (Array.isArray(whole)) {
    return whole.flatMap((one, index) => {
      const next = index === key ? replaced(one, rest, by) : one;
      return next === REMOVED ? [] : [next];
    });
  }
  if (!isObject(whole)) return whole;
  return Object.fromEntries(
    Object.entries(whole).flatMap(([name, one]) => {
      const next = name === key ? replaced(one, rest, by) : one;
      return next === REMOVED ? [] : [[name, next]];
    }),
  );
}

const NAMES = ['mood', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'x-new', 'länge', '0'];

function choose<T>(list: readonly T[], at: number): T {
  const item = list[at % list.length];
  if (item === undefined) throw new Error('nothing to choose from');
  return item;
}

function ofAnotherType(value: JsonValue, pick: number): JsonValue {
  if (typeof value === 'string') {
    const digits: JsonValue[] = /^\d{1,15}$/.test(value) ? [Number(value)] : [];
    return choose<JsonValue>([7, true, [], {}, [value], { value }, ...digits], pick);
  }
  if (typeof value === 'number')
    return choose<JsonValue>([String(value), true, value + 0.5, [value], 'soon', {}], pick);
  if (Array.isArray(value)) return choose<JsonValue>([{}, 'none', 0, { ...value }, value[0] ?? true], pick);
  if (isObject(value)) return choose<JsonValue>([[value], 'none', 1, [], false], pick);
  return choose<JsonValue>([{}, 5, 'text', []], pick);
}

function inAnotherCase(value: string, pick: number): string {
  const [upper, lower] = [value.toUpperCase(), value.toLowerCase()];
  return choose([upper, lower, `${value.slice(0, 1).toUpperCase()}${value.slice(1)}`, upper], pick);
}

function renamed(whole: JsonValue, path: readonly (string | number)[]): JsonValue {
  const [key, ...rest] = path;
  if (Array.isArray(whole)) return whole.map((one, index) => (index === key ? renamed(one, rest) : one));
  if (!isObject(whole)) return whole;
  return Object.fromEntries(
    Object.entries(whole).map(([name, one]): [string, JsonValue] => {
      if (name !== key) return [name, one];
      return rest.length > 0 ? [name, renamed(one, rest)] : [otherName(name), one];
    }),
  );
}

function otherName(name: string): string {
  const upper = name.toUpperCase();
  return upper === name ? name.toLowerCase() : upper;
}

/** A longer list or a richer object. */
function extended(value: JsonValue, pick: number): JsonValue {
  const junk = choose<JsonValue>([null, 1, 'extra', true, [], {}, { a: [1] }, ['x']], pick);
  if (Array.isArray(value)) return [...value, junk];
  if (!isObject(value)) return value;
  return Object.fromEntries([...Object.entries(value), [choose(NAMES, pick >>> 3), junk]]);
}

/** Changes one place. One that is null or of another type is added to `before`: changed once more it may be another status. */
function changed(whole: JsonValue, { how, at, pick }: RecordedChange, before: string[]): JsonValue {
  const all = places(whole);
  const among = all.filter(({ path, value }) => {
    if (path.some((_, length) => before.includes(JSON.stringify(path.slice(0, length + 1))))) return false;
    switch (how) {
      case 'extra':
        return typeof value === 'object' && value !== null;
      case 'another case':
        return typeof value === 'string' && value !== inAnotherCase(value, pick);
      case 'another name':
        return typeof path.at(-1) === 'string' && otherName(String(path.at(-1))) !== path.at(-1);
      case 'missing':
        return path.length > 0;
      default:
        return true;
    }
  });
  if (among.length === 0) return whole;
  const { path, value } = choose(among, at);
  if (how === 'another type' || how === 'null') before.push(JSON.stringify(path));
  const put = (by: JsonValue | typeof REMOVED): JsonValue => {
    const next = replaced(whole, path, by);
    return next === REMOVED ? null : next;
  };
  switch (how) {
    case 'missing':
      return put(REMOVED);
    case 'null':
      return put(null);
    case 'extra':
      return put(extended(value, pick));
    case 'another type':
      return put(ofAnotherType(value, pick));
    case 'another case':
      return put(inAnotherCase(String(value), pick));
    case 'another name':
      return renamed(whole, path);
  }
}

/** An answer after its changes. */
export function mutated(answer: JsonObject, all: readonly RecordedChange[]): JsonValue {
  const before: string[] = [];
  return all.reduce<JsonValue>((whole, change) => changed(whole, change, before), answer);
}
