import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { makeFolder } from '../files.ts';
import { JSON_TEXT } from './stored.ts';

/**
 * The progress of the data that a process has seen: the epoch; in it the revision of the config, commits and ticks (polls of
 * all processes); the digest of that config; the newest entry of the log; the time of the last tick (Redis time).
 */
export const SEEN = z.object({
  epoch: z.int().nonnegative(),
  revision: z.int().nonnegative(),
  commits: z.int().nonnegative(),
  ticks: z.int().nonnegative(),
  digest: z.string(),
  entry: z.string().regex(/^\d+-\d+$/),
  atMs: z.int().nullable(),
});

export type Seen = z.infer<typeof SEEN>;

/**
 * The place at which a process has seen it: `boot` names the run of the machine, `server` that of the Redis server (null: cannot
 * be read). `isClosed`: the process has ended in order.
 */
const RUN = z.object({ boot: z.string().nullable(), server: z.string().nullable(), isClosed: z.boolean() });

export type SeenRun = z.infer<typeof RUN>;

const STORED = SEEN.extend({ run: RUN.nullable().prefault(null) });

/** The state of a process that has seen nothing yet. */
export const NOTHING_SEEN: Seen = {
  epoch: 0,
  revision: 0,
  commits: 0,
  ticks: 0,
  digest: '',
  entry: '0-0',
  atMs: null,
};

/** The file outside Redis with the state that the processes on a `dataDir` have seen under a prefix. */
export class SeenFile {
  readonly #folder: string;
  readonly #file: string;

  constructor(dataDir: string, prefix: string) {
    this.#folder = dataDir;
    this.#file = join(dataDir, `redis-seen.${prefix}.json`);
  }

  async read(): Promise<{ seen: Seen; run: SeenRun | null } | null> {
    const text = await readFile(this.#file, 'utf8').catch(() => '');
    const { data } = JSON_TEXT.pipe(STORED).safeParse(text);
    if (data === undefined) return null;
    const { run, ...seen } = data;
    return { seen, run };
  }

  async prepare(): Promise<void> {
    await makeFolder(this.#folder);
  }

  /** Replaces it in one step that survives a power cut, unless another process on the folder has seen more. */
  async write(seen: Seen, run: SeenRun): Promise<void> {
    const stored = await this.read();
    if (stored !== null && isFurther(stored.seen, seen)) return;
    const next = `${this.#file}.${process.pid}.new`;
    const file = await open(next, 'w', 0o600);
    try {
      await file.writeFile(`${JSON.stringify({ ...seen, run })}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(next, this.#file);
    const folder = await open(this.#folder, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}

function isFurther(one: Seen, other: Seen): boolean {
  return one.epoch === other.epoch ? one.ticks > other.ticks : one.epoch > other.epoch;
}
