import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { z } from 'zod';
import { eventually } from '../../test/support/eventually.ts';
import { Program } from '../../test/support/program.ts';
import { RedisProcess } from '../../test/support/redis-process.ts';
import { cpuMsOf } from '../polls/cpu.ts';
import { type Arrival, Endpoint } from './endpoint.ts';
import { shipped } from './shipped.ts';

const { main: MAIN, env: ENV } = shipped();
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
const LONGEST_MS = 600_000;

const SHOWN = z.array(z.tuple([z.number(), z.number()]));
const LISTENING = z.object({ msg: z.literal('server.listening'), url: z.url() });

/** A receiver of a daemon, and the wallets (by number) that it follows. */
export type Route = { name: string; wallets: readonly number[]; receiver: object };

/** Settings of a daemon: wallets, budget (null: the default), file of the CPU profile, receivers (default: one for all). */
export type Run = {
  wallets: number;
  requestsPerSecond: number | null;
  profile?: string | null;
  routes?: readonly Route[];
};

/** CPU time of a program and of its Redis, ms. */
export type Cpu = { processMs: number; redisMs: number };

/** An upstream, a receiver and a Redis, each a process of its own, and a daemon that starts and ends on them. */
export class Stage {
  readonly upstream: Endpoint;
  readonly receiver: Endpoint;
  readonly redis: Redis;
  readonly redisUrl: string;
  readonly #server: RedisProcess;
  readonly #folder: string;
  #program: Program | null = null;

  private constructor(deps: {
    upstream: Endpoint;
    receiver: Endpoint;
    server: RedisProcess;
    folder: string;
  }) {
    this.upstream = deps.upstream;
    this.receiver = deps.receiver;
    this.redisUrl = deps.server.url;
    this.redis = new Redis(this.redisUrl);
    this.#server = deps.server;
    this.#folder = deps.folder;
  }

  static async create(): Promise<Stage> {
    const [upstream, receiver, server, folder] = await Promise.all([
      Endpoint.start('upstream.ts'),
      Endpoint.start('receiver.ts'),
      RedisProcess.create(),
      mkdtemp(join(tmpdir(), 'intentwatch-bench-')),
    ]);
    return new Stage({ upstream, receiver, server, folder });
  }

  /** Runs a function on a stage of its own. */
  static async use<T>(run: (stage: Stage) => Promise<T>): Promise<T> {
    const stage = await Stage.create();
    try {
      return await run(stage);
    } finally {
      await stage.close();
    }
  }

  get #logFile(): string {
    return join(this.#folder, 'log');
  }

  /** Starts the shipped daemon with default settings except the budget; its log goes to a file. */
  async start({ wallets, requestsPerSecond, profile = null, routes }: Run): Promise<void> {
    const file = join(this.#folder, 'intentwatch.yaml');
    const all = Array.from({ length: wallets }, (_, at) => at);
    const wanted = routes ?? [{ name: 'backend', wallets: all, receiver: webhook(this.receiver) }];
    const budget = requestsPerSecond === null ? {} : { requestsPerSecond };
    const config = {
      upstream: { baseUrl: this.upstream.url, apiKey: 'sandbox-key', ...budget },
      redis: { url: this.redisUrl },
      server: { host: '127.0.0.1', port: 0 },
      receivers: wanted.map(({ name, receiver }) => ({ name, ...receiver })),
      subscriptions: wanted.map((route) => ({
        name: `to-${route.name}`,
        wallets: route.wallets.map(walletOf),
        receivers: [route.name],
      })),
    };
    await Promise.all([writeFile(file, stringify(config)), writeFile(this.#logFile, '')]);
    const flags = profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
    const command = [process.execPath, ...flags, MAIN, 'start', '--config', file];
    this.#program = await Program.run(['sh', '-c', 'exec "$@" > "$0"', this.#logFile, ...command], ENV);
    await eventually('the daemon has started', async () =>
      (await readFile(this.#logFile, 'utf8')).includes('"daemon.started"'),
    );
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.#program?.end(signal);
    this.#program = null;
  }

  /** Acts on the receiver as an operator does. */
  async act(act: 'pause' | 'resume'): Promise<void> {
    const { status } = await fetch(`${await this.#url()}/api/v1/receivers/backend/${act}`, {
      method: 'POST',
    });
    if (status !== 200) throw new Error(`${act}: found ${status}, expected 200`);
  }

  /** Longest delay of the event loop since the last call, as the daemon measures it, ms. */
  async longestDelayMs(): Promise<number> {
    const text = await (await fetch(`${await this.#url()}/metrics`)).text();
    const [, seconds] = /^nodejs_eventloop_lag_max_seconds (\S+)/m.exec(text) ?? [];
    return 1_000 * Number(seconds);
  }

  async #url(): Promise<string> {
    const lines = (await readFile(this.#logFile, 'utf8')).split('\n').filter((line) => line !== '');
    for (const line of lines) {
      const { data } = LISTENING.safeParse(JSON.parse(line));
      if (data !== undefined) return data.url;
    }
    throw new Error('the daemon does not listen');
  }

  /** Resolves once every wallet was requested `times` times, on average. */
  async polled(times: number, wallets: number): Promise<void> {
    await eventually('all wallets were requested', async () => {
      return (await this.upstream.number('/requests')) >= times * wallets;
    });
  }

  /** Sets the number of new transfers a second. Returns the number of earlier transfers. */
  async pace(perSecond: number): Promise<number> {
    return this.upstream.number(`/pace?perSecond=${perSecond}`);
  }

  /** Time (Unix ms) at which each transfer was shown, by number. */
  async shown(): Promise<Map<number, number>> {
    return new Map(SHOWN.parse(await this.upstream.request('/shown')));
  }

  async came(): Promise<Arrival[]> {
    return this.receiver.came();
  }

  async cpu(): Promise<Cpu> {
    return cpuOf(this.#program, this.redis);
  }

  /** Number of commands that Redis ran, those inside scripts too. */
  async commands(): Promise<number> {
    return commandsOf(this.redis);
  }

  async delivered(count: number): Promise<void> {
    await deliveredTo(this.receiver, count);
  }

  /**
   * Has so many changes stored for a receiver that is paused, as they come from the upstream. The receiver is still paused in a
   * daemon with the smallest budget, so that no poll takes part in what follows.
   */
  async store(count: number, daemon: Run): Promise<void> {
    await this.start({ ...daemon, profile: null });
    await this.polled(1, daemon.wallets);
    await this.act('pause');
    await this.upstream.number(`/make?count=${count}`);
    await eventually(
      `${count} events are stored`,
      async () => (await this.redis.xlen('{intentwatch}:events')) >= count,
      LONGEST_MS,
    );
    await this.stop();
    await this.start({ ...daemon, requestsPerSecond: 1 });
  }

  async close(): Promise<void> {
    await this.stop();
    this.redis.disconnect();
    await this.#server.close();
    await Promise.all([this.upstream.end(), this.receiver.end()]);
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function cpuOf(program: Program | null, redis: Redis): Promise<Cpu> {
  const [processMs, redisMs] = await Promise.all([
    program === null ? 0 : cpuMsOf(program.pid),
    redisCpuMsOf(redis),
  ]);
  return { processMs, redisMs };
}

/** CPU time of a Redis server, all threads. */
export async function redisCpuMsOf(redis: Redis): Promise<number> {
  const info = await redis.info('cpu');
  const seconds = (kind: string): number =>
    Number(new RegExp(`^used_cpu_${kind}:([\\d.]+)`, 'm').exec(info)?.[1]);
  return 1_000 * (seconds('sys') + seconds('user'));
}

/** Number of commands that a Redis ran, those inside scripts too. */
export async function commandsOf(redis: Redis): Promise<number> {
  const info = await redis.info('commandstats');
  return [...info.matchAll(/^cmdstat_.*?:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

export async function deliveredTo(receiver: Endpoint, count: number): Promise<void> {
  const came = async (): Promise<boolean> => (await receiver.number('/count')) >= count;
  await eventually(`${count} deliveries have come`, came, LONGEST_MS);
}

export function webhook(receiver: Endpoint): object {
  return {
    type: 'webhook',
    url: `${receiver.url}/`,
    secrets: [SECRET],
    allowPrivateNetwork: true,
    allowInsecure: true,
  };
}

export function walletOf(number: number): string {
  return `0x${(number + 1).toString(16).padStart(40, '0')}`;
}

/** The subject of a transfer of the upstream. */
export function subjectOf(number: number): string {
  return `intent:0x${number.toString(16).padStart(64, '0')}`;
}

/** The bare worker at its work. `beganMs`: Unix ms. */
export type BareRun = {
  receiver: Endpoint;
  beganMs: number;
  cpu: () => Promise<Cpu>;
};

/** Events of a bare worker: published before it begins, all at once beside it, or so many a second. */
export type Publishing = { events: number; publish: 'before' | 'at-once' | { perSecond: number } };

/** Runs the bare worker on a receiver and a Redis of its own. */
export async function onBare<T>(
  { events, publish }: Publishing,
  run: (bare: BareRun) => Promise<T>,
): Promise<T> {
  const [receiver, server] = await Promise.all([Endpoint.start('receiver.ts'), RedisProcess.create()]);
  const redis = new Redis(server.url);
  const paced = typeof publish === 'string' ? [publish] : ['paced', `--per-second=${publish.perSecond}`];
  const program = await Program.start(join(import.meta.dirname, 'bare.ts'), [
    ...[`--redis=${server.url}`, `--receiver=${receiver.url}`, `--events=${events}`, '--publish', ...paced],
  ]);
  try {
    const [, beganMs] = await program.line(/began ([\d.]+)/);
    return await run({ receiver, beganMs: Number(beganMs), cpu: () => cpuOf(program, redis) });
  } finally {
    await program.end('SIGKILL');
    redis.disconnect();
    await Promise.all([receiver.end(), server.close()]);
  }
}
