import { chmod, lstat, readdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { FOLDER_MARKER } from '../make-folder.ts';
import { REDIS_FOLDER } from './append-only.ts';

const OTHERS = 0o077;

/** Files of the daemon and its Redis in `dataDir`. Sockets are made anew at each start. */
const OWN_FILE =
  /^((daemon|redis-server)\.(lock|pid)|redis-written\.json(\.new)?|redis-seen\.[a-z0-9-]+\.json(\.\d+\.new)?|dump\.rdb|temp-.*\.(rdb|aof)|books\.sqlite(-wal|-shm|-journal)?|\.intentwatch-folder)$/;

const REDIS_FILE = /^(appendonly\.aof\.|temp-)/;

/**
 * The permissions of others on `dataDir` at the start. `repaired`: paths in a folder of the daemon that others lost access to;
 * `command`: for any other folder the command that removes their access, null where they have none.
 */
export type FolderRights = { repaired: string[]; command: string | null };

/**
 * Removes the access of others where the daemon made the folder: to it, to the folders above it that it made, and to its own
 * files in it. A folder that existed before is not changed.
 */
export async function closeDataFolder(dataDir: string): Promise<FolderRights> {
  const real = await realpath(dataDir);
  const repaired: string[] = [];
  if (!(await isMarked(real))) {
    const { mode } = await lstat(real);
    return { repaired, command: (mode & OTHERS) === 0 ? null : `chmod 700 ${shellWord(dataDir)}` };
  }
  // Each folder before its content: then nobody else can put a link in the place of a file.
  const close = async (path: string): Promise<void> => {
    if (await takeRights(path)) repaired.push(path);
  };
  for (const folder of await markedAbove(real)) await close(folder);
  await close(real);
  for (const name of await namesIn(real, OWN_FILE)) await close(join(real, name));
  const redis = join(real, REDIS_FOLDER);
  await close(redis);
  for (const name of await namesIn(redis, REDIS_FILE)) await close(join(redis, name));
  return { repaired, command: null };
}

/** Returns the folders above one that were made together with it, the uppermost first. */
async function markedAbove(folder: string): Promise<string[]> {
  const parent = dirname(folder);
  return parent !== folder && (await isMarked(parent)) ? [...(await markedAbove(parent)), parent] : [];
}

async function isMarked(folder: string): Promise<boolean> {
  const marker = await lstat(join(folder, FOLDER_MARKER)).catch(() => null);
  return marker?.isFile() === true && isOurs(marker);
}

async function namesIn(folder: string, pattern: RegExp): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => pattern.test(name));
}

function isOurs({ uid }: { uid: number }): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

/**
 * Removes the access of others to a file, folder or pipe of this user, unless it is a link. Returns whether they had any. It
 * opens no file: closing one would give up the locks that SQLite has on it in this process.
 */
async function takeRights(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  if (found === null || !(found.isFile() || found.isDirectory() || found.isFIFO())) return false;
  if (!isOurs(found) || (found.mode & OTHERS) === 0) return false;
  await chmod(path, found.mode & 0o700);
  return true;
}

function shellWord(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
