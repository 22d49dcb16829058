import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, rm } from 'node:fs/promises';
import type { RedisTarget } from '../config/sections/redis.ts';
import { withTimeout } from '../with-timeout.ts';
import { askSocket, embeddedSocket, makeSocketPath, removeSocket } from './embedded-socket.ts';
import { FolderInUse, FolderLock } from './folder-lock.ts';

/** A `dataDir` that another daemon uses or none does, or a machine without `redis-server`. */
export class EmbeddedRedisError extends Error {
  readonly code: 'in-use' | 'not-running' | 'not-installed' | 'not-started';

  constructor(code: EmbeddedRedisError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'EmbeddedRedisError';
    this.code = code;
  }
}

/**
 * Runs redis-server, and ends it when our end of the pipe closes: also `kill -9` of the daemon closes it. The group of
 * its own keeps a Ctrl-C in the terminal, which is meant for the daemon, away from it.
 */
const GUARD = `exec 3<&0
redis-server "$@" 3<&- </dev/null & server=$!
{ cat <&3 >/dev/null; kill -TERM $server 2>/dev/null; } & watch=$!
wait $server; code=$?
kill $watch 2>/dev/null
exit $code`;

const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 3_000;
const RESTART_AFTER_MS = 500;

/**
 * The daemon's private Redis: a child on a socket under `dataDir`, with an append-only file. It is started again when
 * it dies, and it ends with the daemon, however that ends.
 */
export class EmbeddedRedis {
  readonly #dataDir: string;
  readonly #onTrouble: (reason: string) => void;
  #child: ChildProcess | null = null;
  #lock: FolderLock | null = null;
  #socket: string | null = null;
  #closing = false;

  constructor(options: { dataDir: string; onTrouble: (reason: string) => void }) {
    this.#dataDir = options.dataDir;
    this.#onTrouble = options.onTrouble;
  }

  /** Where it listens, once it was started. */
  get target(): RedisTarget {
    if (this.#socket === null) throw new Error('the embedded Redis has not been started');
    return { kind: 'socket', path: this.#socket };
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Takes the folder, before anything else of the daemon is open to others. Throws EmbeddedRedisError. */
  async takeFolder(): Promise<void> {
    try {
      this.#lock = await FolderLock.take(this.#dataDir);
    } catch (error) {
      if (!(error instanceof FolderInUse)) {
        const found = error instanceof Error ? error.message : String(error);
        throw new EmbeddedRedisError('not-started', unusableFolder(this.#dataDir, found));
      }
      const holder = error.pid === null ? 'another daemon' : `the daemon with pid ${error.pid}`;
      throw new EmbeddedRedisError(
        'in-use',
        `dataDir ${this.#dataDir} is in use by ${holder}; end it, or choose another dataDir`,
      );
    }
  }

  /** Starts the server on the folder that was taken. Throws EmbeddedRedisError. */
  async start(): Promise<void> {
    await this.#waitForOrphan();
    this.#socket = await makeSocketPath(this.#dataDir);
    await this.#launch(this.#socket);
  }

  /**
   * A server whose daemon was killed is on its way out: its socket is gone within moments. One that is there and silent
   * has not ended, and two servers on one file destroy it.
   */
  async #waitForOrphan(): Promise<void> {
    const endMs = Date.now() + STOP_TIMEOUT_MS * 2;
    const socket = await embeddedSocket(this.#dataDir);
    while ((await askSocket(socket)) !== 'gone') {
      if (Date.now() > endMs) {
        throw new EmbeddedRedisError(
          'in-use',
          `another redis-server is still at ${socket}; end it, or choose another dataDir`,
        );
      }
      await pause(50);
    }
  }

  async #launch(socket: string): Promise<void> {
    const settings = {
      port: '0',
      unixsocket: socket,
      unixsocketperm: '700',
      dir: this.#dataDir,
      save: '',
      appendonly: 'yes',
      appendfsync: 'everysec',
      'maxmemory-policy': 'noeviction',
      // Snapshots, claims and facts are small hashes with one long member or name: packed they need half the memory.
      'hash-max-listpack-value': '2048',
      daemonize: 'no',
      loglevel: 'warning',
    };
    const args = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, value]);
    const child = spawn('sh', ['-c', GUARD, 'redis-server', ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child = child;
    let output = '';
    const listen = (chunk: Buffer): void => {
      output = `${output}${chunk.toString()}`.slice(-2_000);
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.stdin.on('error', () => undefined);
    const exit = new Promise<number | null>((resolve) => {
      child.once('error', () => resolve(null));
      child.once('exit', (code) => resolve(code));
    });
    let ended: { code: number | null } | null = null;
    void exit.then((code) => {
      ended = { code };
    });
    const endMs = Date.now() + START_TIMEOUT_MS;
    while ((await askSocket(socket)) !== 'answers') {
      if (ended !== null || Date.now() > endMs) {
        child.stdin.end();
        await withTimeout(exit, STOP_TIMEOUT_MS);
        throw startError(ended, output);
      }
      await pause(20);
    }
    await chmod(socket, 0o700);
    void exit.then((code) => this.#restart(socket, code));
  }

  async #restart(socket: string, code: number | null): Promise<void> {
    if (this.#closing) return;
    this.#onTrouble(`the embedded redis-server ended with code ${code}; starting it again`);
    await pause(RESTART_AFTER_MS);
    if (this.#closing) return;
    try {
      await rm(socket, { force: true });
      await this.#launch(socket);
    } catch (error) {
      this.#onTrouble(error instanceof Error ? error.message : String(error));
      void this.#restart(socket, null);
    }
  }

  /** Ends the server after it has written its file. */
  async close(): Promise<void> {
    this.#closing = true;
    const child = this.#child;
    if (child !== null) {
      const exited = new Promise<true>((resolve) => child.once('exit', () => resolve(true)));
      child.stdin?.end();
      const hasEnded =
        child.exitCode !== null || child.signalCode !== null || (await withTimeout(exited, STOP_TIMEOUT_MS));
      // By the socket of one that has not ended the next daemon knows that it is there.
      if (hasEnded) await removeSocket(this.#dataDir);
    }
    this.#lock?.release();
    this.#lock = null;
  }
}

/** The private Redis of the daemon that runs on a folder. Throws EmbeddedRedisError where none does. */
export async function findEmbedded(dataDir: string): Promise<RedisTarget> {
  const path = await embeddedSocket(dataDir);
  if ((await askSocket(path)) === 'answers') return { kind: 'socket', path };
  throw new EmbeddedRedisError(
    'not-running',
    `no daemon runs on dataDir ${dataDir}, and the embedded Redis runs only with it; start the daemon and try again`,
  );
}

/** What to say of a `dataDir` in which nothing can be written. */
export function unusableFolder(dataDir: string, found: string): string {
  return `dataDir ${dataDir}: found a folder that cannot be used (${found}), expected one that this user may make and write to; give it to them, or choose another dataDir`;
}

function startError(ended: { code: number | null } | null, output: string): EmbeddedRedisError {
  const words = output.trim().split('\n').slice(-3).join(' | ');
  if (ended?.code === 127 || ended?.code === null) {
    return new EmbeddedRedisError(
      'not-installed',
      'redis-server is not installed; install it (Debian: apt-get install redis-server) or set redis.url',
    );
  }
  const how =
    ended === null ? `gave no answer for ${START_TIMEOUT_MS / 1_000} s` : `ended with ${ended.code}`;
  return new EmbeddedRedisError('not-started', `the embedded redis-server ${how}: ${words}`);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
