import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeFolder, makePrivateFile } from '../make-folder.ts';

/** Longest conflict of several processes that start at once, before one of them has the lock. */
const CONTENTION_MS = 2_000;

const SQLITE_BUSY = 5;

/** The error when another process holds the folder; `pid` is null where that has not written it yet. */
export class FolderInUse extends Error {
  readonly pid: number | null;

  constructor(pid: number | null) {
    super(pid === null ? 'another process holds the folder' : `process ${pid} holds the folder`);
    this.name = 'FolderInUse';
    this.pid = pid;
  }
}

/**
 * The lock of one process on a folder. The system holds it, not a file's content: it ends with the process however that ends,
 * and never becomes stale. Node has no `flock`; its SQLite acquires the lock of `fcntl` on an empty file, and also
 * separates two owners in one process. A pid file is for messages only.
 */
export class FolderLock {
  readonly #database: DatabaseSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Takes the lock of a folder, and makes the folder if needed. Throws FolderInUse. */
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

  /** Releases the lock. The files stay: a process that waits for a lock on a removed file would wait for another one. */
  release(): void {
    this.#database.close();
  }
}

async function readPid(folder: string): Promise<number | null> {
  const text = await readFile(join(folder, 'daemon.pid'), 'utf8').catch(() => '');
  return /^\d+\n$/.test(text) ? Number(text) : null;
}
