import { readFile } from 'node:fs/promises';
import { connect, disconnect } from '../../src/store/connection.ts';

/** The pid of the redis-server that listens on a socket. */
export async function redisPid(socket: string): Promise<number> {
  const client = connect({ kind: 'socket', path: socket });
  try {
    const pid = Number(/^process_id:(\d+)/m.exec(await client.info('server'))?.[1]);
    if (!Number.isSafeInteger(pid)) throw new Error(`the server at ${socket} does not report its pid`);
    return pid;
  } finally {
    await disconnect(client);
  }
}

/** True when a process runs. One that has ended but was not yet waited for does not. */
export async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  return stat !== null && stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z';
}
