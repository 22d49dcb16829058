import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { link, open, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { formatHmacSecret, parseSigningSecret } from '../config/fields/signing-secret.ts';
import { BadSettingError } from '../exit.ts';
import { makeFolder } from '../make-folder.ts';
import { Secret } from '../secret.ts';

const STATE = z.object({ secret: z.string().refine((text) => parseSigningSecret(text) !== null) });
const PLACE = z.object({ from: z.string(), to: z.string(), cursor: z.string() });

/** A forwarding: from a daemon to a URL. */
type Forwarding = { from: string; to: string };

const KEY_BYTES = 32;

/** The place where a listener keeps its secret and its places unless it is given another file. */
export function listenFile({ XDG_STATE_HOME: home }: NodeJS.ProcessEnv): string {
  const folder = home === undefined || home === '' ? join(homedir(), '.local', 'state') : home;
  return join(folder, 'intentwatch', 'listen.json');
}

/**
 * What a listener keeps from one run to the next, in files that only its user can read: the secret that it signs with, made
 * at the first run and no daemon's, and how far it has come. The place of each forwarding stands in a file of its own, so
 * that listeners can run side by side.
 */
export class ListenState {
  readonly file: string;
  /** What the listener signs with. */
  readonly secret: Secret;

  private constructor(file: string, secret: string) {
    this.file = file;
    this.secret = new Secret(secret);
  }

  /** Reads the file, or makes it with a new secret. Of several who make it at once, all get the secret of the first. */
  static async open(file: string): Promise<ListenState> {
    const known = await readKept(file);
    if (known !== null) return new ListenState(file, parseKept(STATE, known, file).secret);
    const part = await writePart(file, { secret: formatHmacSecret(randomBytes(KEY_BYTES)) });
    try {
      await link(part, file);
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error;
    } finally {
      await rm(part);
    }
    return ListenState.open(file);
  }

  /** The cursor behind what was forwarded last; null where nothing was. */
  async cursor(forwarding: Forwarding): Promise<string | null> {
    const file = this.#placeOf(forwarding);
    const text = await readKept(file);
    return text === null ? null : parseKept(PLACE, text, file).cursor;
  }

  /** Keeps how far a forwarding has come. */
  async advance({ from, to, cursor }: z.infer<typeof PLACE>): Promise<void> {
    const file = this.#placeOf({ from, to });
    await rename(await writePart(file, { from, to, cursor }), file);
  }

  #placeOf({ from, to }: Forwarding): string {
    return `${this.file}.${createHash('sha256').update(`${from} ${to}`).digest('hex').slice(0, 16)}`;
  }
}

/** Writes beside a file what is to take its place: whole or not at all, as a listener can be killed at any time. */
async function writePart(file: string, content: object): Promise<string> {
  await makeFolder(dirname(file));
  const part = `${file}.${randomUUID()}`;
  const handle = await open(part, 'wx', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(content, null, 2)}\n`);
  } finally {
    await handle.close();
  }
  return part;
}

async function readKept(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  });
}

function parseKept<T>(schema: z.ZodType<T>, text: string, file: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new BadSettingError(
      `${file}: found something else, expected what listen keeps there; remove it to begin anew`,
    );
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
