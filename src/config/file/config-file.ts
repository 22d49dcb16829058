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
      return await loadConfig(this.#file, this.#env, (path) => {
        if (!read.has(path)) read.set(path, stateOf(path));
      });
    } finally {
      this.#read = read;
    }
  }

  /**
   * Looks at all files. True when they differ from those that were read last, and were the same at the look before: who
   * writes is given the time to end. Links are followed, so that it does not matter how a file comes into its place.
   */
  hasChanged(): boolean {
    const now = [...this.#read.keys()].map(stateOf).join('\n');
    if (now === [...this.#read.values()].join('\n')) {
      this.#found = null;
      return false;
    }
    const isSettled = now === this.#found;
    this.#found = now;
    return isSettled;
  }

  /** How many files there are. */
  get size(): number {
    return this.#read.size;
  }
}

/** What changes with a file's content, or with the file that stands behind its path. */
function stateOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'no file';
  }
}
