import { constants } from 'node:fs';
import { open, readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';

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
    if (error instanceof Error && 'code' in error && (error.code === 'ENXIO' || error.code === 'ENOENT'))
      return false;
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
