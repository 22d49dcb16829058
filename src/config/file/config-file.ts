import { statSync } from 'node:fs';
import type { Config } from '../config.ts';
import { loadConfig } from './load.ts';

/** A config file with all files that it names: secrets, quotes, certificates. */
export class ConfigFile {
  readonly #file: string;
  readonly #env: NodeJS.ProcessEnv;
  /** Each file that was read last, as it was before it was read. */
  #read = new Map<string, string>();
  /** The state in which a look found all files changed, to be found once more before that counts. */
  #found: string | null = null;

  /** `file` is relative to the working directory. */
  constructor(file: string, env: NodeJS.ProcessEnv) {
    this.#file = file;
    this.#env = env;
  }

  /** Reads all of it. Throws a ConfigError. */
  async load(): Promise<Config> {
    const read = new Map<string, string>();
    this.#found = null;
    try {
      return await loadConfig(this.#file, this.#env, {
        onFile: (path) => {
          if (!read.has(path)) read.set(path, stateOf(path));
        },
        isAgain: this.#read.size > 0,
      });
    } finally {
      this.#read = read;
    }
  }

  /**
   * Looks at all files. `changed`: they differ from those that were read last, and were the same at the look before;
   * `changing`: they were not, and who writes is given the time to end. Links are followed, so that it does not matter how
   * a file comes into its place.
   */
  look(): 'same' | 'changing' | 'changed' {
    const now = [...this.#read.keys()].map(stateOf).join('\n');
    if (now === [...this.#read.values()].join('\n')) {
      this.#found = null;
      return 'same';
    }
    const isSettled = now === this.#found;
    this.#found = now;
    return isSettled ? 'changed' : 'changing';
  }

  /** How many files there are. */
  get size(): number {
    return this.#read.size;
  }
}

/** What changes with a file's content, or with the file that stands behind its path. */
function stateOf(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    // The times of a pipe are those of its writer, and nothing more comes from it.
    if (!stat.isFile()) return 'no file';
    const { dev, ino, size, mtimeNs, ctimeNs } = stat;
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'no file';
  }
}
