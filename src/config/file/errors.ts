import { isJsonObject, type JsonValue } from '../../domain/json.ts';

/** A place inside the config: keys and list indexes from the top. */
export type ConfigPath = readonly (string | number)[];

/** A problem with its place in the text. `path` is empty where the text could not be read that far. */
export type PlacedProblem = { path: ConfigPath; offset: number; message: string };

/**
 * One problem of a config file. `file` is as the caller gave it, `line` and `column` count from 1, `path` is like
 * `receivers[0].url` and empty for the file as a whole. `message` states the found and the expected value. It never holds the
 * value of a secret or of an expanded variable.
 */
export type ConfigProblem = { file: string; line: number; column: number; path: string; message: string };

/** A config file that cannot be used, with all its problems, in the order of the file. */
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

/** Formats problems, one per line: `file:line:column: path: message`. */
export function renderProblems(error: ConfigError): string {
  return error.problems.map(renderProblem).join('\n');
}

/** Formats a problem: `file:line:column: path: message`. */
export function renderProblem({ file, line, column, path, message }: ConfigProblem): string {
  const place = `${file}:${line}:${column}: `;
  return path === '' ? `${place}${message}` : `${place}${path}: ${message}`;
}

/** Formats a path: `receivers[0].url`, with quotes around keys that are more than a name. */
export function renderPath(path: ConfigPath): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    if (!/^[A-Za-z0-9_-]+$/.test(key)) return `${text}[${JSON.stringify(key)}]`;
    return text === '' ? key : `${text}.${key}`;
  }, '');
}

/** A problem at a place of the config, before it has a line. Paths of a section's own findings begin at that section. */
export type Fault = {
  path: ConfigPath;
  /** Omitted: the value at the path is described, unless it is secret. Never the value of a secret. */
  found?: string;
  expected: string;
  /** Set when the value is valid by itself but occurred before. */
  repeated?: boolean;
  atKey?: boolean;
  /** Removes the key from the shown path, because it may be part of a secret. */
  hidesKey?: boolean;
};

/** Value of a key; undefined where there is none. */
export function member(value: JsonValue | undefined, key: string): JsonValue | undefined {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** Items of a list; empty for any other value. */
export function items(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

/** True for a missing list or one without items. */
export function isEmpty(list: JsonValue | undefined): boolean {
  return list === undefined || (Array.isArray(list) && list.length === 0);
}

/** Value at a path; undefined where there is none. */
export function valueAt(tree: JsonValue, path: ConfigPath): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>(
    (value, key) => (typeof key === 'number' ? items(value)[key] : member(value, key)),
    tree,
  );
}

/** Replaces the value at an existing path. */
export function replaceAt(tree: JsonValue, { path, value }: { path: ConfigPath; value: JsonValue }): void {
  const parent = valueAt(tree, path.slice(0, -1));
  const key = path.at(-1);
  if (typeof key === 'number' && Array.isArray(parent)) parent[key] = value;
  if (typeof key === 'string' && isJsonObject(parent)) parent[key] = value;
}

/** Findings for repeated items of a list, at the second. `keyOf` gives the compared key; null for an invalid item. */
export function findRepeated(
  list: JsonValue | undefined,
  { at, expected, keyOf }: { at: ConfigPath; expected: string; keyOf(item: JsonValue): string | null },
): Fault[] {
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
