import { statSync } from 'node:fs';
import { LIMITS } from '../../domain/limits.ts';
import { codeOf } from '../../errors.ts';
import { sizeOf } from '../../files.ts';
import { Secret } from '../../secret.ts';
import { Thread, ThreadError } from '../../thread.ts';
import type { Config } from '../config.ts';
import { ExpiringSecret } from '../fields/signing-secret.ts';
import { ConfigError, type ConfigPath, type ConfigProblem } from './errors.ts';
import { loadConfig } from './load.ts';

/** A smaller file is read sooner than a thread starts. */
const THREAD_FROM_BYTES = 65_536;

/** A config file with all files that it names: secrets, quotes, certificates. */
export class ConfigFile {
  readonly #file: string;
  readonly #env: NodeJS.ProcessEnv;
  /** State of each file before it was last read. */
  #read = new Map<string, string>();
  /** State of the files in which the last poll found them changed; it must be found again before the change counts. */
  #found: string | null = null;

  /** `file` is relative to the working directory. */
  constructor(file: string, env: NodeJS.ProcessEnv) {
    this.#file = file;
    this.#env = env;
  }

  /** Reads all files. Throws a ConfigError. A large config that is read again is read in a thread, beside other work. */
  async load(): Promise<Config> {
    const [file, env] = [this.#file, this.#env];
    const isAgain = this.#read.size > 0;
    this.#found = null;
    this.#read = new Map([...this.#read.keys()].map((path) => [path, stateOf(path)]));
    const isApart = isAgain && sizeOf(file) > THREAD_FROM_BYTES;
    const { files, result } = await (isApart
      ? readInThread({ file, env })
      : readConfigFile(file, { env, isAgain }));
    this.#read = files;
    if (result instanceof ConfigError) throw result;
    return result;
  }

  /**
   * Polls all files. `changed`: they differ from those read last, and were the same at the poll before. `changing`: they were
   * not the same, so the writer gets time to finish. Links are followed, so that any way of replacing a file works.
   */
  check(): 'same' | 'changing' | 'changed' {
    const now = [...this.#read.keys()].map(stateOf).join('\n');
    if (now === [...this.#read.values()].join('\n')) {
      this.#found = null;
      return 'same';
    }
    const isSettled = now === this.#found;
    this.#found = now;
    return isSettled ? 'changed' : 'changing';
  }

  get size(): number {
    return this.#read.size;
  }
}

/** A config that was read. `files` maps each read file to its state before it was read. */
type LoadResult = { files: Map<string, string>; result: Config | ConfigError };

/** Reads a config file with all files that it names. `isAgain` where it was read before. */
export async function readConfigFile(
  file: string,
  { env, isAgain }: { env: NodeJS.ProcessEnv; isAgain: boolean },
): Promise<LoadResult> {
  const files = new Map<string, string>();
  const onFile = (path: string): void => {
    if (!files.has(path)) files.set(path, stateOf(path));
  };
  const result = await loadConfig(file, env, { onFile, isAgain }).catch((error: unknown) => {
    if (error instanceof ConfigError) return error;
    throw error;
  });
  return { files, result };
}

/** A value that changes with a file's content, or with the file behind its path. */
export function stateOf(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    // A pipe has the times of its writer, and can be read only once.
    if (!stat.isFile()) return 'no file';
    const { dev, ino, size, mtimeNs, ctimeNs } = stat;
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return codeOf(error) ?? 'no file';
  }
}

type ThreadTask = { file: string; env: NodeJS.ProcessEnv };

/** Answer of the thread: a LoadResult in a form that can be copied between threads. */
type ThreadAnswer = { files: Map<string, string>; outcome: CopiedConfig | ConfigProblem[] };

/** A config, and the secrets that a copy loses, with their places. */
type CopiedConfig = { config: Config; secrets: CopiedSecret[] };
type CopiedSecret = { path: ConfigPath; value: string; untilMs: number | null };

const MOST_MS = 1_000 * LIMITS.config.seconds;

/** Reads a config in a thread, so that it delays no other work. Throws a ConfigError when it takes too much time or memory. */
export async function readInThread(task: ThreadTask): Promise<LoadResult> {
  const thread = new Thread<ThreadTask, ThreadAnswer>({ module: import.meta.url, mostMs: MOST_MS });
  try {
    const { files, outcome } = await thread.run({ ...task, env: { ...task.env } });
    return { files, result: Array.isArray(outcome) ? new ConfigError(outcome) : pasted(outcome) };
  } catch (error) {
    throw error instanceof ThreadError ? tooLarge(task.file, error.message) : error;
  } finally {
    thread.close();
  }
}

/** Task of the thread: reads one config that was read before. */
export async function work({ file, env }: ThreadTask): Promise<ThreadAnswer> {
  return answerOf(await readConfigFile(file, { env, isAgain: true }));
}

function tooLarge(file: string, found: string): ConfigError {
  const message = `found a config that ${found}, expected a smaller one`;
  return new ConfigError([{ file, line: 1, column: 1, path: '', message }]);
}

function answerOf({ files, result }: LoadResult): ThreadAnswer {
  if (result instanceof ConfigError) return { files, outcome: result.problems };
  return { files, outcome: { config: result, secrets: secretsIn(result, []) } };
}

function secretsIn(value: unknown, path: ConfigPath): CopiedSecret[] {
  if (value instanceof Secret) {
    return [{ path, value: value.reveal(), untilMs: value instanceof ExpiringSecret ? value.untilMs : null }];
  }
  if (Array.isArray(value)) return value.flatMap((item, index) => secretsIn(item, [...path, index]));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => secretsIn(item, [...path, key]));
}

function pasted({ config, secrets }: CopiedConfig): Config {
  for (const { path, value, untilMs } of secrets) {
    const holder = path.slice(0, -1).reduce<object>((outer, key) => Reflect.get(outer, key), config);
    const secret = untilMs === null ? new Secret(value) : new ExpiringSecret(value, untilMs);
    Reflect.set(holder, path.at(-1) ?? '', secret);
  }
  return config;
}
