import { randomBytes, randomUUID } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { formatHmacSecret, parseSigningSecret } from '../config/fields/signing-secret.ts';
import { BadSettingError } from '../exit.ts';
import { makeFolder } from '../make-folder.ts';
import { Secret } from '../secret.ts';

const STATE = z.object({
  secret: z.string().refine((text) => parseSigningSecret(text) !== null),
  /** How far each forwarding has come: from a daemon to a URL. */
  cursors: z.record(z.string(), z.string()),
});

const KEY_BYTES = 32;

/** Where a listener keeps its secret and its places unless it is told another file. */
export function listenFile({ XDG_STATE_HOME: home }: NodeJS.ProcessEnv): string {
  const folder = home === undefined || home === '' ? join(homedir(), '.local', 'state') : home;
  return join(folder, 'intentwatch', 'listen.json');
}

/**
 * What a listener keeps from one run to the next, in a file that only its user can read: the secret that it signs with, made
 * at the first run and no daemon's, and how far it has come.
 */
export class ListenState {
  readonly file: string;
  #state: z.infer<typeof STATE>;

  private constructor(file: string, state: z.infer<typeof STATE>) {
    this.file = file;
    this.#state = state;
  }

  /** Reads the file, or makes it with a new secret. */
  static async open(file: string): Promise<ListenState> {
    const text = await readFile(file, 'utf8').catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
      throw error;
    });
    if (text !== null) return new ListenState(file, readState(text, file));
    const made = new ListenState(file, { secret: formatHmacSecret(randomBytes(KEY_BYTES)), cursors: {} });
    await made.#write();
    return made;
  }

  /** The secret that the listener signs with. */
  get secret(): Secret {
    return new Secret(this.#state.secret);
  }

  /** The cursor behind what was forwarded last; null where nothing was. */
  cursor(from: string, to: string): string | null {
    return this.#state.cursors[nameOf(from, to)] ?? null;
  }

  /** Keeps how far a forwarding has come. */
  async advance({ from, to, cursor }: { from: string; to: string; cursor: string }): Promise<void> {
    this.#state.cursors[nameOf(from, to)] = cursor;
    await this.#write();
  }

  /** Whole or not at all: a listener can be killed at any time. */
  async #write(): Promise<void> {
    await makeFolder(dirname(this.file));
    const part = `${this.file}.${randomUUID()}`;
    const handle = await open(part, 'wx', 0o600);
    try {
      await handle.writeFile(`${JSON.stringify(this.#state, null, 2)}\n`);
    } finally {
      await handle.close();
    }
    await rename(part, this.file);
  }
}

function nameOf(from: string, to: string): string {
  return `${from} ${to}`;
}

function readState(text: string, file: string): z.infer<typeof STATE> {
  try {
    return STATE.parse(JSON.parse(text));
  } catch {
    throw new BadSettingError(
      `${file}: found something else, expected what listen keeps there; remove it for a new secret`,
    );
  }
}
