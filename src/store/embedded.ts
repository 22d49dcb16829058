import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RedisTarget } from '../config/sections/redis.ts';
import { Duty } from '../duty.ts';
import { messageOf } from '../errors.ts';
import { withTimeout } from '../with-timeout.ts';
import {
  type AppendOnly,
  type AppendOnlyPart,
  findTruncation,
  newestPart,
  type RemovedGaps,
  readAppendOnly,
  readRecord,
  removeGaps,
  silentLoss,
  type Truncation,
  writeRecord,
} from './append-only.ts';
import {
  describeServer,
  embeddedSocket,
  FolderInUse,
  FolderLock,
  isServerAlive,
  makeSocketPath,
  PID_NAME,
  probeSocket,
  removeSocket,
  serverLock,
} from './embedded-files.ts';
import { EmbeddedRedisError, NOT_FOUND, remedyOf, repairHint, startError } from './start-failure.ts';

/**
 * Runs redis-server, and ends it when our end of the pipe closes: also `kill -9` of the daemon closes it. Its own process
 * group shields it from a Ctrl-C in the terminal, which is meant for the daemon. Only its owner can read its files. The server
 * alone inherits the pipe of embedded-files.ts.
 */
const GUARD = `umask 077
lock=$1; shift
[ -p "$lock" ] || { rm -f "$lock"; mkfifo "$lock"; } || exit 1
exec 3<&0 4<>"$lock"
redis-server "$@" 3<&- </dev/null & server=$!
exec 4<&-
{ cat <&3 >/dev/null; kill -TERM $server 2>/dev/null; } & watch=$!
wait $server; code=$?
kill $watch 2>/dev/null
exit $code`;

const START_TIMEOUT_MS = 120_000;

/** Interval of probes of a server that has no socket yet, and of one that reads its file. */
const PROBE_EVERY_MS = 3;
const LOADING_PROBE_EVERY_MS = 20;

const STOP_TIMEOUT_MS = 3_000;
const RESTART_AFTER_MS = 500;

/** Wait for the end of an earlier server before it is reported, and the interval of further reports. */
const PATIENCE_MS = STOP_TIMEOUT_MS * 2;
const REPORT_EVERY_MS = 60_000;

const RECORD_EVERY_MS = 60_000;

/**
 * `onTruncated`: writes in the append-only file are lost, found at a start. They stay in `unreported` until `markReported`.
 * `onGaps`: gaps that a full disk left were removed from the file.
 */
type EmbeddedRedisOptions = {
  dataDir: string;
  onTrouble: (reason: string) => void;
  onTruncated: (truncation: Truncation) => void;
  onGaps: (removed: RemovedGaps) => void;
};

/**
 * The daemon's private Redis: a child on a socket under `dataDir`. It is restarted when it dies, and always ends with the
 * daemon.
 */
export class EmbeddedRedis {
  readonly #dataDir: string;
  readonly #onTrouble: (reason: string) => void;
  readonly #onTruncated: (truncation: Truncation) => void;
  readonly #onGaps: (removed: RemovedGaps) => void;
  #child: ChildProcess | null = null;
  #lock: FolderLock | null = null;
  #socket: string | null = null;
  #closing = false;
  #isBlocked = false;
  #unreported: readonly Truncation[] = [];
  #recording: Promise<void> = Promise.resolve();
  readonly #recordingAgain: Duty;

  constructor(options: EmbeddedRedisOptions) {
    this.#dataDir = options.dataDir;
    this.#onTrouble = options.onTrouble;
    this.#onTruncated = options.onTruncated;
    this.#onGaps = options.onGaps;
    this.#recordingAgain = new Duty({
      everyMs: RECORD_EVERY_MS,
      isShared: true,
      run: () => this.#recordWritten(),
      onError: () => undefined,
    });
  }

  get target(): RedisTarget {
    if (this.#socket === null) throw new Error('the embedded Redis has not been started');
    return { kind: 'socket', path: this.#socket };
  }

  /** Locks the folder, before anything else of the daemon is open to others. Throws EmbeddedRedisError. */
  async takeFolder(): Promise<void> {
    try {
      this.#lock = await FolderLock.take(this.#dataDir);
    } catch (error) {
      if (!(error instanceof FolderInUse)) {
        const found = messageOf(error);
        throw new EmbeddedRedisError('not-started', unusableFolder(this.#dataDir, found));
      }
      const holder = error.pid === null ? 'another daemon' : `the daemon with pid ${error.pid}`;
      throw new EmbeddedRedisError(
        'in-use',
        `dataDir ${this.#dataDir} is in use by ${holder}; end it, or choose another dataDir`,
      );
    }
  }

  get isBlocked(): boolean {
    return this.#isBlocked;
  }

  /** Truncations at starts that no operator event reports yet, oldest first. */
  get unreported(): readonly Truncation[] {
    return this.#unreported;
  }

  async markReported(truncation: Truncation): Promise<void> {
    this.#unreported = this.#unreported.filter((one) => one !== truncation);
    await this.#recordWritten();
  }

  /** Starts the server on the locked folder, once an earlier one has ended. Throws EmbeddedRedisError. */
  async start(): Promise<void> {
    await this.#awaitEnd();
    this.#socket = await makeSocketPath(this.#dataDir);
    this.#unreported = (await readRecord(this.#dataDir))?.unreported ?? [];
    await this.#launch(this.#socket);
    this.#recordingAgain.start();
  }

  /**
   * Waits without limit until no server has the files open: two servers on one file destroy it. A server whose daemon was
   * killed ends quickly; a stopped one is reported. A server whose pipe was removed still has its socket.
   */
  async #awaitEnd(): Promise<void> {
    const sinceMs = performance.now();
    let reportedMs = Number.NEGATIVE_INFINITY;
    while (
      (await isServerAlive(this.#dataDir).catch((error: unknown) => this.#refuseFolder(error))) ||
      (await probeSocket(await embeddedSocket(this.#dataDir))) !== 'gone'
    ) {
      if (this.#closing) throw new EmbeddedRedisError('in-use', 'ended before an earlier redis-server has');
      const nowMs = performance.now();
      if (nowMs - sinceMs > PATIENCE_MS && nowMs - reportedMs > REPORT_EVERY_MS) {
        [this.#isBlocked, reportedMs] = [true, nowMs];
        this.#onTrouble(
          `dataDir ${this.#dataDir}: ${await describeServer(this.#dataDir)}. Waiting for its end`,
        );
      }
      await pause(this.#isBlocked ? 500 : 50);
    }
    this.#isBlocked = false;
  }

  #refuseFolder(error: unknown): never {
    const found = messageOf(error);
    throw new EmbeddedRedisError('not-started', unusableFolder(this.#dataDir, found));
  }

  /** Returns the part that Redis will append to, or null. Throws where Redis would ignore data. */
  async #inspectFiles(): Promise<AppendOnlyPart | null> {
    const files = await readAppendOnly(this.#dataDir).catch((error: unknown) => this.#refuseFolder(error));
    const loss = silentLoss(files);
    if (loss !== null) {
      throw new EmbeddedRedisError(
        'damaged',
        `dataDir ${this.#dataDir}: ${loss}; Redis would start without that data: ${repairHint(this.#dataDir)}`,
      );
    }
    const hasChanged = await this.#removeGaps(files);
    return newestPart(hasChanged ? await readAppendOnly(this.#dataDir) : files);
  }

  /** Returns whether the files had any. */
  async #removeGaps(files: AppendOnly): Promise<boolean> {
    const unreported = this.#unreported;
    const work = this.#recording.then(() => removeGaps(this.#dataDir, { files, unreported }));
    // A size that is recorded meanwhile could be that of the file with its gaps.
    this.#recording = work.then(
      () => undefined,
      () => undefined,
    );
    const removed = await work.catch((error: unknown) => {
      const found = messageOf(error);
      const remedy = remedyOf(found, this.#dataDir) ?? repairHint(this.#dataDir);
      const message = `dataDir ${this.#dataDir}: found an append-only file whose gaps cannot be found or removed (${found}); ${remedy}`;
      throw new EmbeddedRedisError('not-started', message);
    });
    const losses = removed.flatMap(({ lost }) => lost ?? []);
    this.#unreported = [...this.#unreported, ...losses];
    for (const one of removed) this.#onGaps(one);
    for (const one of losses) this.#onTruncated(one);
    return removed.length > 0;
  }

  /** Reports the loss of a start. `before` is the newest part before it, `output` the output of the server. */
  async #noteTruncation(before: AppendOnlyPart | null, output: string): Promise<void> {
    const record = await readRecord(this.#dataDir);
    const truncation =
      before === null ? null : await findTruncation(this.#dataDir, { before, record, output });
    if (truncation !== null) this.#unreported = [...this.#unreported, truncation];
    await this.#recordWritten();
    if (truncation !== null) this.#onTruncated(truncation);
  }

  /** Records the size of the append-only file. On a full disk the older record stays, which states a smaller size. */
  async #recordWritten(): Promise<void> {
    const record = async (): Promise<void> => {
      const newest = newestPart(await readAppendOnly(this.#dataDir));
      if (newest === null) return;
      const { name: file, bytes } = newest;
      await writeRecord(this.#dataDir, { file, bytes, unreported: [...this.#unreported] });
    };
    // A full disk must not stop the daemon: the sizes are recorded again in a minute.
    this.#recording = this.#recording.then(record).catch(() => undefined);
    await this.#recording;
  }

  async #launch(socket: string): Promise<void> {
    const before = await this.#inspectFiles();
    if (this.#closing)
      throw new EmbeddedRedisError('not-started', 'ended before the embedded redis-server began');
    const settings = {
      port: '0',
      unixsocket: socket,
      unixsocketperm: '700',
      dir: this.#dataDir,
      save: '',
      appendonly: 'yes',
      appendfsync: 'everysec',
      // An unfinished command at the end, as a power cut leaves it, is cut off; see append-only.ts.
      'aof-load-truncated': 'yes',
      // These show from when on writes are lost at the end of the file.
      'aof-timestamp-enabled': 'yes',
      'maxmemory-policy': 'noeviction',
      // Snapshots, claims and facts are small hashes with one long member or name: packed they need half the memory.
      'hash-max-listpack-value': '2048',
      daemonize: 'no',
      pidfile: join(this.#dataDir, PID_NAME),
      loglevel: 'warning',
    };
    const args = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, value]);
    const child = spawn('sh', ['-c', GUARD, 'redis-server', serverLock(this.#dataDir), ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child = child;
    let output = '';
    const listen = (chunk: Buffer): void => {
      output = `${output}${chunk.toString()}`.slice(-8_000);
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.stdin.on('error', () => undefined);
    const exit = new Promise<number | null>((resolve) => {
      child.once('error', () => resolve(NOT_FOUND));
      child.once('exit', (code) => resolve(code));
    });
    let ended: { code: number | null } | null = null;
    void exit.then((code) => {
      ended = { code };
    });
    let endMs = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      const state = await probeSocket(socket);
      if (state === 'answers') break;
      if (state === 'loading') endMs = performance.now() + START_TIMEOUT_MS;
      if (ended !== null || performance.now() > endMs) {
        child.stdin.end();
        await withTimeout(exit, STOP_TIMEOUT_MS);
        throw startError(ended, { output, dataDir: this.#dataDir, timeoutMs: START_TIMEOUT_MS });
      }
      await pause(state === 'gone' ? PROBE_EVERY_MS : LOADING_PROBE_EVERY_MS);
    }
    await chmod(socket, 0o700);
    void exit.then((code) => this.#restart(socket, code));
    await this.#noteTruncation(before, output);
  }

  async #restart(socket: string, code: number | null): Promise<void> {
    if (this.#closing) return;
    const how = code === null ? 'was killed' : `ended with code ${code}`;
    this.#onTrouble(`the embedded redis-server or its guard ${how}; starting it again`);
    // A folder that is read-only for hours would fill the log with one reason.
    let [reported, reportedMs] = ['', Number.NEGATIVE_INFINITY];
    for (;;) {
      await pause(RESTART_AFTER_MS);
      if (this.#closing) return;
      try {
        await this.#endServer();
        await this.#awaitEnd();
        await rm(socket, { force: true });
        await this.#launch(socket);
        return;
      } catch (error) {
        if (this.#closing) return;
        const [reason, nowMs] = [messageOf(error), performance.now()];
        if (reason === reported && nowMs - reportedMs < REPORT_EVERY_MS) continue;
        [reported, reportedMs] = [reason, nowMs];
        this.#onTrouble(reason);
      }
    }
  }

  /** Ends the server through its guard, or where that was killed, through the process group that it was started with. */
  async #endServer(): Promise<void> {
    const child = this.#child;
    child?.stdin?.end();
    if (child?.pid === undefined || (child.exitCode === null && child.signalCode === null)) return;
    if (!(await isServerAlive(this.#dataDir))) return;
    try {
      process.kill(-child.pid, 'SIGTERM');
    } catch {
      // Already ended.
    }
  }

  async close(): Promise<void> {
    this.#closing = true;
    void this.#recordingAgain.close();
    const child = this.#child;
    if (child !== null) {
      const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
      await this.#endServer();
      if (child.exitCode === null && child.signalCode === null) await withTimeout(exited, STOP_TIMEOUT_MS);
      // A server that has not ended still uses its socket.
      if (!(await isServerAlive(this.#dataDir))) {
        await this.#recordWritten();
        await removeSocket(this.#dataDir);
      }
    }
    this.#lock?.release();
    this.#lock = null;
  }
}

/** Finds the private Redis of the daemon that runs on a folder. Throws EmbeddedRedisError where none does. */
export async function findEmbedded(dataDir: string): Promise<RedisTarget> {
  const path = await embeddedSocket(dataDir);
  const state = await probeSocket(path);
  if (state === 'answers' || state === 'loading') return { kind: 'socket', path };
  throw new EmbeddedRedisError(
    'not-running',
    `no daemon runs on dataDir ${dataDir}, and the embedded Redis runs only with it; start the daemon and try again`,
  );
}

/** Formats the error for a `dataDir` that cannot be written to. */
export function unusableFolder(dataDir: string, found: string): string {
  return `dataDir ${dataDir}: found a folder that cannot be used (${found}), expected one that this user may make and write to; give it to them, or choose another dataDir`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
