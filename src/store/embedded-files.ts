import { constants } from 'node:fs';
import {
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { codeOf } from '../errors.ts';
import { makeFolder, makePrivateFile } from '../files.ts';

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

/** The named pipe in `dataDir` that a redis-server inherits open. */
const LOCK_NAME = 'redis-server.lock';

/** The file beside it in which that server writes its pid. */
export const PID_NAME = 'redis-server.pid';

/** Returns the path of a folder's pipe. */
export function serverLock(dataDir: string): string {
  return join(dataDir, LOCK_NAME);
}

/**
 * Returns whether a redis-server of this folder is alive, also a stopped one. The system closes the server's end of the pipe
 * when its process ends, however it ends, so no pid can be mistaken for another's: opening a pipe to write fails with ENXIO
 * when nobody has it open to read. It needs no /proc, and holds across containers that share the folder on one host.
 */
export async function isServerAlive(dataDir: string): Promise<boolean> {
  try {
    const pipe = await open(serverLock(dataDir), constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      return (await pipe.stat()).isFIFO();
    } finally {
      await pipe.close();
    }
  } catch (error) {
    if (['ENXIO', 'ENOENT'].includes(codeOf(error) ?? '')) return false;
    throw error;
  }
}

/**
 * Describes the redis-server that has a folder, and how to end it. A pid file can be older than the process that has its pid
 * now, or come from another container: a pid is named only where /proc shows that process with the pipe open.
 */
export async function describeServer(dataDir: string): Promise<string> {
  const lock = serverLock(dataDir);
  const pid = (await readFile(join(dataDir, PID_NAME), 'utf8').catch(() => '')).trim();
  if (!/^\d+$/.test(pid) || !(await hasOpen(pid, lock)))
    return `an earlier redis-server has its files open; \`lsof ${lock}\` names it; end it`;
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const isStopped = /^[Tt]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  return isStopped
    ? `an earlier redis-server (pid ${pid}) has its files open and is stopped; continue it with \`kill -CONT ${pid}\`, or end it with \`kill -KILL ${pid}\``
    : `an earlier redis-server (pid ${pid}) has its files open; end it with \`kill ${pid}\``;
}

async function hasOpen(pid: string, file: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const [real, names] = await Promise.all([
    realpath(file).catch(() => null),
    readdir(folder).catch(() => []),
  ]);
  const opened = await Promise.all(names.map((name) => readlink(join(folder, name)).catch(() => null)));
  return real !== null && opened.includes(real);
}

/** Unix socket paths hold about 100 bytes. */
const LONGEST_SOCKET_PATH = 100;

/**
 * Returns the socket of a folder's embedded Redis: `redis.sock` in it. Where that path is too long, it is a link to a socket
 * in a temporary folder with a random name, which nobody else can enter.
 */
export async function embeddedSocket(dataDir: string): Promise<string> {
  const path = join(dataDir, 'redis.sock');
  return isTooLong(path) ? readlink(path).catch(() => path) : path;
}

/** Removes the old socket of a folder that nobody else uses, and returns the path for the new one. */
export async function makeSocketPath(dataDir: string): Promise<string> {
  const path = join(dataDir, 'redis.sock');
  await removeSocket(dataDir);
  if (!isTooLong(path)) return path;
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-'));
  const socket = join(folder, 'redis.sock');
  await symlink(socket, path);
  return socket;
}

/** Removes the socket of a folder, and the temporary folder that it may be in. */
export async function removeSocket(dataDir: string): Promise<void> {
  const path = join(dataDir, 'redis.sock');
  const socket = await embeddedSocket(dataDir);
  await rm(path, { force: true });
  if (socket === path || !socket.startsWith(join(tmpdir(), 'intentwatch-'))) return;
  await rm(dirname(socket), { recursive: true, force: true });
}

function isTooLong(path: string): boolean {
  return Buffer.byteLength(path) > LONGEST_SOCKET_PATH;
}

/** The state of a server at a socket. `silent`: it reads its file for long, or is stopped. */
type SocketState = 'answers' | 'loading' | 'silent' | 'gone';

/** Sends a PING to a socket, and waits a second for the state of its server. */
export function probeSocket(path: string): Promise<SocketState> {
  return new Promise((resolve) => {
    const connection = createConnection(path);
    const end = (result: SocketState): void => {
      connection.destroy();
      resolve(result);
    };
    connection.once('error', () => end('gone'));
    // A server that ends during the request closes the connection without an error.
    connection.once('close', () => end('gone'));
    connection.once('connect', () => connection.write('PING\r\n'));
    connection.once('data', (data: Buffer) => {
      const answer = data.toString();
      // One whose disk is full refuses even this.
      const hasAnswered = answer.startsWith('+PONG') || answer.startsWith('-MISCONF');
      end(hasAnswered ? 'answers' : answer.startsWith('-LOADING') ? 'loading' : 'silent');
    });
    connection.setTimeout(1_000, () => end('silent'));
  });
}
