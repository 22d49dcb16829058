import { mkdtemp, readlink, rm, symlink } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

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
      end(answer.startsWith('+PONG') ? 'answers' : answer.startsWith('-LOADING') ? 'loading' : 'silent');
    });
    connection.setTimeout(1_000, () => end('silent'));
  });
}
