import { isJsonObject, type JsonValue } from '../../domain/json.ts';
import type { ConfigPath } from './errors.ts';

/** What is wrong at a place of the config, before it has a line. Paths of a part's own findings begin at that part. */
export type Finding = {
  path: ConfigPath;
  /** Left out: the value at the path is described, unless it is secret. Never the value of a secret. */
  found?: string;
  expected: string;
  /** Set when the value is right by itself but was there before. */
  repeated?: boolean;
  /** Points at the key instead of its value. */
  atKey?: boolean;
  /** Leaves the key out of the path that is shown, because it may be part of a secret. */
  hidesKey?: boolean;
};

/** The value of a key, where there is one. */
export function member(value: JsonValue | undefined, key: string): JsonValue | undefined {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** The items of a list; none when it is no list. */
export function items(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

/** True when there is nothing, or a list without items. */
export function isEmpty(list: JsonValue | undefined): boolean {
  return list === undefined || (Array.isArray(list) && list.length === 0);
}

/** The value at a path, where there is one. */
export function valueAt(tree: JsonValue, path: ConfigPath): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>(
    (value, key) => (typeof key === 'number' ? items(value)[key] : member(value, key)),
    tree,
  );
}

/** Puts a value in the place of the one at a path that exists. */
export function replaceAt(tree: JsonValue, { path, value }: { path: ConfigPath; value: JsonValue }): void {
  const parent = valueAt(tree, path.slice(0, -1));
  const key = path.at(-1);
  if (typeof key === 'number' && Array.isArray(parent)) parent[key] = value;
  if (typeof key === 'string' && isJsonObject(parent)) parent[key] = value;
}

/**
 * Findings for items of a list that were there before, reported at the second. `keyOf` gives what makes two items the same,
 * null for an item that is wrong anyway.
 */
export function findRepeated(
  list: JsonValue | undefined,
  { at, expected, keyOf }: { at: ConfigPath; expected: string; keyOf(item: JsonValue): string | null },
): Finding[] {
  const seen = new Set<string>();
  return items(list).flatMap((item, index) => {
    const key = keyOf(item);
    if (key === null || !seen.has(key)) {
      if (key !== null) seen.add(key);
      return [];
    }
    return [{ path: [...at, index], expected, repeated: true }];
  });
}
