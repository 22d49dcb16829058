import type { Config } from '../config.ts';
import { ConfigError } from './errors.ts';
import { readConfigFile, readInThread, stateOf } from './reading-thread.ts';
import { sizeOf } from './source.ts';

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
