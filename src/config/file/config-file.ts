import type { Config } from '../config.ts';
import { ConfigError } from './errors.ts';
import { readConfigFile, readInThread, stateOf } from './reading-thread.ts';
import { sizeOf } from './source.ts';

/** A smaller one is read sooner than a thread begins. */
const THREAD_FROM_BYTES = 65_536;

/** A config file with all files that it names: secrets, quotes, certificates. */
export class ConfigFile {
  readonly #file: string;
  readonly #env: NodeJS.ProcessEnv;
  /** Each file that was read last, as it was before it was read. */
  #read = new Map<string, string>();
  /** The state in which a poll found all files changed, to be found once more before that counts. */
  #found: string | null = null;

  /** `file` is relative to the working directory. */
  constructor(file: string, env: NodeJS.ProcessEnv) {
    this.#file = file;
    this.#env = env;
  }

  /** Reads all of it. Throws a ConfigError. A large one that is read again is read in a thread, beside the work that goes on. */
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
   * Looks at all files. `changed`: they differ from those that were read last, and were the same at the poll before;
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

  /** The number of files there that are. */
  get size(): number {
    return this.#read.size;
  }
}
