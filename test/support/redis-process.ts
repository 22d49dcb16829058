import { type ChildProcess, spawn } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './port.ts';

const AOF_FOLDER = 'appendonlydir';

/** `durable`: with an append-only file; `env` as of a `ShiftedClock`. */
type RedisOptions = { durable?: boolean; env?: Readonly<Record<string, string>> };

type Running = { child: ChildProcess; exited: Promise<void> };

/** A redis-server with an append-only file that can be stopped, and started again on the same port with its data. */
export class RedisProcess {
  readonly #folder: string;
  readonly #port: number;
  readonly #durable: boolean;
  readonly #env: Readonly<Record<string, string>>;
  #running: Running | null = null;
  #backups = 0;

  private constructor(folder: string, port: number, { durable, env }: Required<RedisOptions>) {
    this.#folder = folder;
    this.#port = port;
    this.#durable = durable;
    this.#env = env;
  }

  static async create({ durable = true, env = {} }: RedisOptions = {}): Promise<RedisProcess> {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-test-redis-'));
    const server = new RedisProcess(folder, await freePort(), { durable, env });
    await server.start();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const settings = {
      port: String(this.#port),
      bind: '127.0.0.1',
      dir: this.#folder,
      save: '',
      appendonly: this.#durable ? 'yes' : 'no',
      'maxmemory-policy': 'noeviction',
      // The purging thread of the allocator waits until a wall time: under a shifted clock it never sleeps.
      'jemalloc-bg-thread': 'no',
    };
    const args = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, value]);
    const env = { ...process.env, ...this.#env };
    const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'], env });
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    this.#running = { child, exited };
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`redis-server ended with ${code} before it was ready`)));
      child.stdout.on('data', (chunk: Buffer) => {
        if (chunk.toString().includes('Ready to accept connections')) resolve();
      });
    });
  }

  async stop(): Promise<void> {
    this.#running?.child.kill('SIGCONT');
    this.#running?.child.kill('SIGTERM');
    await this.#running?.exited;
    this.#running = null;
  }

  /** Ends it with `kill -9`; its append-only file has all that it acknowledged. */
  async kill(): Promise<void> {
    this.#running?.child.kill('SIGKILL');
    await this.#running?.exited;
    this.#running = null;
  }

  /** Copies its data as it is on the disk now, as a backup does. Returns the copy's folder, which `restore` takes. */
  async backUp(): Promise<string> {
    const copy = join(this.#folder, `backup-${this.#backups++}`);
    // The copy could have a later state of one file than of a file that was copied before it.
    this.freeze();
    try {
      await cp(join(this.#folder, AOF_FOLDER), copy, { recursive: true });
    } finally {
      this.thaw();
    }
    return copy;
  }

  /** Ends the server, puts a copy in place of its data and starts it again. */
  async restore(copy: string): Promise<void> {
    await this.kill();
    await rm(join(this.#folder, AOF_FOLDER), { recursive: true, maxRetries: 5 });
    await cp(copy, join(this.#folder, AOF_FOLDER), { recursive: true });
    await this.start();
  }

  freeze(): void {
    this.#running?.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#running?.child.kill('SIGCONT');
  }

  async close(): Promise<void> {
    await this.stop();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
