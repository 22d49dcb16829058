import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import type { RedisClient } from '../../src/store/commands.ts';
import { parseInfo } from '../../src/store/redis-checks.ts';
import { eventually } from './eventually.ts';

/** Limits the size of the files of a process, which is like a full disk where the signal for it (XFSZ) is ignored. */
export async function limitFiles(pid: number, bytes: number | 'unlimited'): Promise<void> {
  await promisify(execFile)('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
}

/** Has a Redis rewrite its append-only file. Only a server that has done so goes on behind a gap after a full disk. */
export async function rewriteFile(redis: RedisClient): Promise<void> {
  await redis.bgrewriteaof();
  await eventually('the file is written anew', async () => {
    const info = parseInfo(await redis.info('persistence'));
    return info.get('aof_rewrite_in_progress') === '0' && info.get('aof_rewrite_scheduled') === '0';
  });
}

/** Writes keys until one is refused. Returns those that were acknowledged. */
export async function writeUntilRefused(redis: RedisClient, prefix: string): Promise<string[]> {
  const written: string[] = [];
  await eventually('writes are refused', async () => {
    const key = `${prefix}-${written.length}`;
    const answer = await redis.set(key, 'x'.repeat(3_000)).catch(() => null);
    if (answer !== null) written.push(key);
    return answer === null;
  });
  return written;
}

/** Writes keys, once a Redis writes again. */
export async function writeAgain(redis: RedisClient, keys: readonly string[]): Promise<void> {
  for (const key of keys)
    await eventually('writes succeed', async () => (await redis.set(key, 'y').catch(() => null)) !== null);
}

/** A redis-server with an append-only file in a folder, whose files can be limited. */
export class LimitedRedis {
  readonly #folder: string;
  readonly #port: number;
  #child: ChildProcess | null = null;

  constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
  }

  /** Each write is written at once: `everysec` collects them during an `fsync`, and the gap would have any length. */
  start(): void {
    const settings = `--port ${this.#port} --bind 127.0.0.1 --dir ${this.#folder} --appendonly yes --save ''`;
    const command = `trap '' XFSZ; exec redis-server ${settings} --aof-timestamp-enabled yes --appendfsync no`;
    this.#child = spawn('sh', ['-c', command], { stdio: 'ignore' });
  }

  async limit(bytes: number | 'unlimited'): Promise<void> {
    const { pid } = this.#child ?? {};
    if (pid === undefined) throw new Error('found no redis-server, expected a started one');
    await limitFiles(pid, bytes);
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    this.#child = null;
    const ended = child === null ? null : once(child, 'exit');
    child?.kill(signal);
    await ended;
  }
}
