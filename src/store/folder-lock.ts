import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeFolder, makePrivateFile } from '../make-folder.ts';

/** The time that several that start at once may be in each other's way before one of them has the lock. */
const CONTENTION_MS = 2_000;

/** SQLite's code for a lock that another process holds. */
const SQLITE_BUSY = 5;

/** Another process holds the folder; `pid` is null where it has not said yet who it is. */
export class FolderInUse extends Error {
  readonly pid: number | null;

  constructor(pid: number | null) {
    super(pid === null ? 'another process holds the folder' : `process ${pid} holds the folder`);
    this.name = 'FolderInUse';
    this.pid = pid;
  }
}

/**
 * The lock of one process on a folder. The system holds it, not a file's content, so it ends with the process however
 * that ends, and nothing stale is ever in the way. Node has no `flock`; SQLite, which it brings along, takes the lock of
 * `fcntl` on an empty file, and also keeps two owners in one process apart. A pid stands beside it, for messages only.
 */
export class FolderLock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Takes the lock of a folder, which is made where there is none. Throws FolderInUse. */
  static async take(folder: string): Promise<FolderLock> {
    await makeFolder(folder);
    const file = join(folder, 'daemon.lock');
    makePrivateFile(file);
    const database = new DatabaseSync(file, { timeout: CONTENTION_MS });
    try {
      database.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      database.close();
      if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) {
        throw new FolderInUse(await readPid(folder));
      }
      throw error;
    }
    await writeFile(join(folder, 'daemon.pid'), `${process.pid}\n`, { mode: 0o600 });
    return new FolderLock(database);
  }

  /** Gives the folder up. The files stay: who waits for a lock on a file that is removed waits for another one. */
  release(): void {
    this.#database.close();
  }
}

async function readPid(folder: string): Promise<number | null> {
  const text = await readFile(join(folder, 'daemon.pid'), 'utf8').catch(() => '');
  return /^\d+\n$/.test(text) ? Number(text) : null;
}
