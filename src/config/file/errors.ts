import { isJsonObject, type JsonValue } from '../../domain/json.ts';

/** A place inside the config: keys and list indexes from the top. */
export type ConfigPath = readonly (string | number)[];

/** A problem with its place in the text. `path` is empty where the text could not be read that far. */
export type PlacedProblem = { path: ConfigPath; offset: number; message: string };

/**
 * One thing that is wrong with a config file. `file` is as the caller gave it, `line` and `column` count from 1, `path`
 * is like `receivers[0].url` and empty for the file as a whole. `message` says what was found and what was expected and
 * never holds the value of a secret or of an expanded variable.
 */
export type ConfigProblem = { file: string; line: number; column: number; path: string; message: string };

/** A config file that cannot be used, with everything that is wrong with it, in the order of the file. */
export class ConfigError extends Error {
  readonly code = 'bad-config';
  readonly retryable = false;
  readonly problems: ConfigProblem[];

  constructor(problems: ConfigProblem[]) {
    super(problems.map(renderProblem).join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** The problems as a person reads them, one per line: `file:line:column: path: message`. */
export function renderProblems(error: ConfigError): string {
  return error.problems.map(renderProblem).join('\n');
}

/** A problem as a person reads it: `file:line:column: path: message`. */
export function renderProblem({ file, line, column, path, message }: ConfigProblem): string {
  const place = `${file}:${line}:${column}: `;
  return path === '' ? `${place}${message}` : `${place}${path}: ${message}`;
}

/** A path as a person writes it: `receivers[0].url`, with quotes around keys that are more than a word. */
export function renderPath(path: ConfigPath): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    if (!/^[A-Za-z0-9_-]+$/.test(key)) return `${text}[${JSON.stringify(key)}]`;
    return text === '' ? key : `${text}.${key}`;
  }, '');
}

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
