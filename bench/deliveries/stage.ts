import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { z } from 'zod';
import type { Event } from '../../src/domain/events/event.ts';
import { makeEvent } from '../../src/domain/events/make-event.ts';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { claimKey } from '../../src/domain/subjects/subscription.ts';
import { type RedisClient, SCHEMA_VERSION } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { eventually } from '../../test/support/eventually.ts';
import { logEntries } from '../../test/support/log-entries.ts';
import { Program } from '../../test/support/program.ts';
import { RedisProcess } from '../../test/support/redis-process.ts';
import { cpuMsOf } from '../polls/cpu.ts';
import { Endpoint } from './endpoint.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
const SUBSCRIPTION = 'all';

const AT_ONCE = 1_000;

const SHOWN = z.array(z.tuple([z.number(), z.number()]));
const ATTEMPTED = z.object({
  msg: z.literal('delivery.attempted'),
  eventId: z.string(),
  openedAt: z.iso.datetime().transform((text) => Date.parse(text)),
});

/** Settings of a daemon: wallets, budget, file of the CPU profile (null: none), receiver (default: the webhook receiver). */
export type Run = { wallets: number; requestsPerSecond: number; profile: string | null; receiver?: object };

/** An upstream, a receiver and a Redis, each a process of its own, and a daemon that starts and ends on them. */
export class Stage {
  readonly #upstream: Endpoint;
  readonly #receiver: Endpoint;
  readonly #redis: RedisProcess;
  readonly #client: RedisClient;
  readonly #keys = new Keys('intentwatch');
  readonly #folder: string;
  #program: Program | null = null;

  private constructor(deps: {
    upstream: Endpoint;
    receiver: Endpoint;
    redis: RedisProcess;
    folder: string;
  }) {
    this.#upstream = deps.upstream;
    this.#receiver = deps.receiver;
    this.#redis = deps.redis;
    this.#folder = deps.folder;
    this.#client = connect({ kind: 'server', url: deps.redis.url });
  }

  static async create(): Promise<Stage> {
    const [upstream, receiver, redis, folder] = await Promise.all([
      Endpoint.start('upstream.ts'),
      Endpoint.start('receiver.ts'),
      RedisProcess.create(),
      mkdtemp(join(tmpdir(), 'intentwatch-bench-')),
    ]);
    return new Stage({ upstream, receiver, redis, folder });
  }

  get #logFile(): string {
    return join(this.#folder, 'log');
  }

  get #webhook(): object {
    return {
      type: 'webhook',
      url: `${this.#receiver.url}/`,
      secrets: [SECRET],
      allowPrivateNetwork: true,
      allowInsecure: true,
    };
  }

  /** Starts the shipped daemon with default settings except the budget; its log goes to a file. */
  async start({ wallets, requestsPerSecond, profile, receiver = this.#webhook }: Run): Promise<void> {
    const file = join(this.#folder, 'intentwatch.yaml');
    const config = {
      upstream: { baseUrl: this.#upstream.url, apiKey: 'sandbox-key', requestsPerSecond },
      redis: { url: this.#redis.url },
      server: { host: '127.0.0.1', port: 0 },
      receivers: [{ name: 'backend', ...receiver }],
      subscriptions: [
        {
          name: SUBSCRIPTION,
          wallets: Array.from({ length: wallets }, (_, at) => walletOf(at)),
          receivers: ['backend'],
        },
      ],
    };
    await Promise.all([writeFile(file, stringify(config)), writeFile(this.#logFile, '')]);
    const flags = profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
    this.#program = await Program.run([
      ...['sh', '-c', 'exec "$@" > "$0"', this.#logFile, process.execPath],
      ...[...flags, MAIN, 'start', '--config', file],
    ]);
    await eventually('the daemon has started', async () =>
      (await readFile(this.#logFile, 'utf8')).includes('"daemon.started"'),
    );
  }

  async stop(): Promise<void> {
    await this.#program?.end('SIGTERM');
    this.#program = null;
  }

  /** Resolves once every wallet was requested `times` times, on average. */
  async polled(times: number, wallets: number): Promise<void> {
    await eventually('all wallets were requested', async () => {
      return (await this.#upstream.number('/asked')) >= times * wallets;
    });
  }

  /** Sets the number of new transfers a second. Returns the number of earlier transfers. */
  async pace(perSecond: number): Promise<number> {
    return this.#upstream.number(`/pace?perSecond=${perSecond}`);
  }

  /** Time (Unix ms) at which each transfer was shown, by number. */
  async shown(): Promise<Map<number, number>> {
    return new Map(SHOWN.parse(await this.#upstream.request('/shown')));
  }

  async came(): Promise<[id: string, atMs: number][]> {
    return this.#receiver.came();
  }

  async cpuMs(): Promise<number> {
    return this.#program === null ? 0 : cpuMsOf(this.#program.pid);
  }

  async delivered(count: number): Promise<void> {
    await eventually(
      `${count} deliveries have come`,
      async () => (await this.#receiver.number('/count')) >= count,
      600_000,
    );
  }

  async committed(): Promise<{ id: string; subject: string; atMs: number }[]> {
    return (await logEntries(this.#client, this.#keys)).flatMap((entry) => {
      if (entry.kind !== 'event') return [];
      const { id, data } = entry.event;
      return [{ id, subject: data.subject.id, atMs: Number.parseInt(entry.id, 10) }];
    });
  }

  /** Time (Unix ms) at which the delivery of each event was opened, by the daemon's log. */
  async opened(): Promise<Map<string, number>> {
    const lines = (await readFile(this.#logFile, 'utf8')).split('\n').filter((line) => line !== '');
    return new Map(
      lines.flatMap((line) => {
        const { data } = ATTEMPTED.safeParse(JSON.parse(line));
        return data === undefined ? [] : [[data.eventId, data.openedAt] as const];
      }),
    );
  }

  /** Appends events to the log as a commit does: of several transfers in turn, or each of a transfer of its own. */
  async fill(count: number, transfers = count): Promise<void> {
    const claimKeys = JSON.stringify([claimKey(SUBSCRIPTION, asSubjectId(`wallet:${walletOf(0)}`))]);
    for (let from = 0; from < count; from += AT_ONCE) {
      const pipeline = this.#client.pipeline();
      for (let at = from; at < Math.min(from + AT_ONCE, count); at += 1) {
        const event = eventOf(at, transfers);
        const fields = { v: SCHEMA_VERSION, kind: 'event', subject: event.data.subject.id };
        const entry = { ...fields, event: JSON.stringify(event), claimKeys };
        pipeline.xadd(this.#keys.events, '*', ...Object.entries(entry).flat());
      }
      await pipeline.exec();
    }
  }

  /** Runs the bare worker on the same receiver and a Redis of its own until all events have come. Returns its CPU time, ms. */
  async bare({ events, concurrency }: { events: number; concurrency: number }): Promise<number> {
    const redis = await RedisProcess.create();
    const program = await Program.start(join(import.meta.dirname, 'bare.ts'), [
      ...[`--redis=${redis.url}`, `--receiver=${this.#receiver.url}`, `--events=${events}`],
      ...[`--concurrency=${concurrency}`, `--body=${JSON.stringify(eventOf(0, 1))}`],
    ]);
    try {
      await program.line(/added/);
      const beforeMs = await cpuMsOf(program.pid);
      await this.delivered(events);
      return (await cpuMsOf(program.pid)) - beforeMs;
    } finally {
      await program.end('SIGKILL');
      await redis.close();
    }
  }

  async close(): Promise<void> {
    await this.stop();
    await disconnect(this.#client);
    await this.#redis.close();
    await Promise.all([this.#upstream.end(), this.#receiver.end()]);
    await rm(this.#folder, { recursive: true, force: true });
  }
}

function walletOf(number: number): string {
  return `0x${(number + 1).toString(16).padStart(40, '0')}`;
}

/** The subject of a transfer of the upstream. */
export function subjectOf(number: number): string {
  return `intent:0x${number.toString(16).padStart(64, '0')}`;
}

/** An event of one of several transfers, which have them in turn. */
export function eventOf(number: number, transfers: number): Event {
  const nowMs = Date.now();
  const subject = subjectOf(number % transfers);
  const hash = subject.slice('intent:'.length);
  const record = {
    id: subject,
    type: 'intent',
    status: 'filled',
    updatedAt: Math.floor(nowMs / 1_000),
    sourceTx: { chainId: 8453, txHash: hash, amount: '1250000000' },
    destinationTx: { chainId: 42161, txHash: hash, amount: '1249000000' },
  };
  return makeEvent({
    subject: { kind: 'intent', id: subject },
    sequence: Math.floor(number / transfers) + 1,
    epoch: 1,
    transition: {
      type: 'intent.filled',
      status: 'filled',
      previousStatus: null,
      changes: Object.keys(record),
      skipped: false,
      regression: false,
    },
    record,
    updatedAt: record.updatedAt,
    nowMs,
  });
}
