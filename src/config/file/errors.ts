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
