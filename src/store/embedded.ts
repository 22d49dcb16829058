import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RedisTarget } from '../config/redis-target.ts';
import { within } from '../within.ts';

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

/** Unix socket paths hold about 100 bytes; a longer one goes to the temporary folder. */
const LONGEST_SOCKET_PATH = 100;
const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 3_000;
const RESTART_AFTER_MS = 500;

/**
 * The daemon's private Redis: a child on a socket under `dataDir`, with an append-only file. It is started again when
 * it dies, and it ends with the daemon, however that ends.
 */
export class EmbeddedRedis {
  readonly #dataDir: string;
  readonly #socket: string;
  readonly #onTrouble: (reason: string) => void;
  #child: ChildProcess | null = null;
  #holdsFolder = false;
  #closing = false;

  constructor(options: { dataDir: string; onTrouble: (reason: string) => void }) {
    this.#dataDir = options.dataDir;
    this.#onTrouble = options.onTrouble;
    this.#socket = socketOf(options.dataDir);
  }

  get target(): RedisTarget {
    return { kind: 'socket', path: this.#socket };
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Takes the folder and starts the server. Throws EmbeddedRedisError. */
  async start(): Promise<void> {
    await mkdir(this.#dataDir, { recursive: true, mode: 0o700 });
    await takeFolder(this.#dataDir);
    this.#holdsFolder = true;
    await this.#waitForOrphan();
    await this.#launch();
  }

  /** A server whose daemon was killed is on its way out: its socket stops answering within moments. */
  async #waitForOrphan(): Promise<void> {
    const endMs = Date.now() + STOP_TIMEOUT_MS * 2;
    while (await answers(this.#socket)) {
      if (Date.now() > endMs) {
        throw new EmbeddedRedisError(
          'in-use',
          `another redis-server still answers at ${this.#socket}; end it, or choose another dataDir`,
        );
      }
      await pause(50);
    }
    await rm(this.#socket, { force: true });
  }

  async #launch(): Promise<void> {
    const settings = {
      port: '0',
      unixsocket: this.#socket,
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
    let said = '';
    const listen = (chunk: Buffer): void => {
      said = `${said}${chunk.toString()}`.slice(-2_000);
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
    while (!(await answers(this.#socket))) {
      if (ended !== null || Date.now() > endMs) {
        child.stdin.end();
        await within(exit, STOP_TIMEOUT_MS);
        throw startError(ended, said);
      }
      await pause(20);
    }
    await chmod(this.#socket, 0o700);
    void exit.then((code) => this.#restart(code));
  }

  async #restart(code: number | null): Promise<void> {
    if (this.#closing) return;
    this.#onTrouble(`the embedded redis-server ended with code ${code}; starting it again`);
    await pause(RESTART_AFTER_MS);
    if (this.#closing) return;
    try {
      await rm(this.#socket, { force: true });
      await this.#launch();
    } catch (error) {
      this.#onTrouble(error instanceof Error ? error.message : String(error));
      void this.#restart(null);
    }
  }

  /** Ends the server after it has written its file. */
  async close(): Promise<void> {
    this.#closing = true;
    const child = this.#child;
    if (child !== null && child.exitCode === null) {
      const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
      child.stdin?.end();
      await within(exited, STOP_TIMEOUT_MS);
    }
    if (this.#holdsFolder) await rm(join(this.#dataDir, PID_FILE), { force: true });
    this.#holdsFolder = false;
  }
}

function socketOf(dataDir: string): string {
  const inDataDir = join(dataDir, 'redis.sock');
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  return Buffer.byteLength(inDataDir) <= LONGEST_SOCKET_PATH
    ? inDataDir
    : join(tmpdir(), `intentwatch-${process.getuid?.() ?? 0}-${name}.sock`);
}

/** The private Redis of the daemon that runs on a folder. Throws EmbeddedRedisError where none does. */
export async function findEmbedded(dataDir: string): Promise<RedisTarget> {
  const path = socketOf(dataDir);
  if (await answers(path)) return { kind: 'socket', path };
  throw new EmbeddedRedisError(
    'not-running',
    `no daemon runs on dataDir ${dataDir}, and the embedded Redis runs only with it; start the daemon and try again`,
  );
}

const PID_FILE = 'daemon.pid';

/** Writes our pid into the folder, unless a living daemon's stands there. */
async function takeFolder(dataDir: string): Promise<void> {
  const file = join(dataDir, PID_FILE);
  const mine = JSON.stringify({ pid: process.pid, started: await processStart(process.pid) });
  for (let attempt = 0; attempt < 3; attempt += 1) {
    try {
      await writeFile(file, mine, { flag: 'wx', mode: 0o600 });
      return;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
    const holder = await readHolder(file);
    if (
      holder !== null &&
      holder.pid !== process.pid &&
      (await processStart(holder.pid)) === holder.started
    ) {
      throw new EmbeddedRedisError(
        'in-use',
        `dataDir ${dataDir} is in use by the daemon with pid ${holder.pid}; end it, or choose another dataDir`,
      );
    }
    await rm(file, { force: true });
  }
  throw new EmbeddedRedisError('in-use', `dataDir ${dataDir} is being taken by another daemon`);
}

async function readHolder(file: string): Promise<{ pid: number; started: string } | null> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const match = /^\{"pid":(\d+),"started":"([^"]*)"\}$/.exec(text);
  return match === null ? null : { pid: Number(match[1]), started: match[2] ?? '' };
}

/** When a process started, as the system tells it; `""` for a process that is no more. Pids are used again. */
async function processStart(pid: number): Promise<string> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) return '';
  }
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? 'alive';
}

function startError(ended: { code: number | null } | null, said: string): EmbeddedRedisError {
  const words = said.trim().split('\n').slice(-3).join(' | ');
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

async function answers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = createConnection(socket);
    const end = (result: boolean): void => {
      connection.destroy();
      resolve(result);
    };
    connection.once('error', () => end(false));
    connection.once('connect', () => connection.write('PING\r\n'));
    // A server that is reading its file is there as well; the connections wait until it has.
    connection.once('data', (data: Buffer) => end(/^(\+PONG|-LOADING)/.test(data.toString())));
    connection.setTimeout(1_000, () => end(false));
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
