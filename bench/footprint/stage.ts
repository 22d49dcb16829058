import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import type { JsonObject } from '../../src/domain/json.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { eventually } from '../../test/support/eventually.ts';
import { Hook } from '../../test/support/hook.ts';
import { Program } from '../../test/support/program.ts';
import { RedisProcess } from '../../test/support/redis-process.ts';
import {
  type Scripted,
  type ScriptedRequest,
  ScriptedUpstream,
} from '../../test/support/scripted-upstream.ts';
import { ShiftedClock } from '../../test/support/shifted-clock.ts';
import { type Footprint, footprintOf } from '../memory/footprint.ts';
import { cpuMsOf } from '../polls/cpu.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
const DAY_MS = 86_400_000;
const PER_WALLET = 20;
const RECEIVERS = ['backend', 'accounting'];

/** Longer than the default `retention`. */
const AGED_DAYS = 31;

/** The shipped daemon with two receivers on a Redis with default settings, beside an upstream with some wallets. */
export class FootprintStage {
  readonly #clock: ShiftedClock;
  readonly #server: RedisProcess;
  readonly #upstream = new ScriptedUpstream((request) => this.#answer(request));
  readonly #hooks = RECEIVERS.map(() => new Hook());
  readonly #redis: RedisClient;
  readonly #keys = new Keys('intentwatch');
  readonly #folder: string;
  readonly #wallets: readonly string[];
  #records: readonly JsonObject[] = [];
  #aheadMs = 0;
  #daemon: Program | null = null;

  private constructor(deps: {
    clock: ShiftedClock;
    server: RedisProcess;
    folder: string;
    transfers: number;
  }) {
    this.#clock = deps.clock;
    this.#server = deps.server;
    this.#folder = deps.folder;
    this.#redis = connect({ kind: 'server', url: deps.server.url });
    this.#wallets = Array.from({ length: Math.ceil(deps.transfers / PER_WALLET) }, (_, at) => walletOf(at));
  }

  static async create(transfers: number): Promise<FootprintStage> {
    const clock = new ShiftedClock();
    const server = await RedisProcess.create({ env: clock.env });
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-bench-'));
    const stage = new FootprintStage({ clock, server, folder, transfers });
    await Promise.all([stage.#upstream.start(), ...stage.#hooks.map((hook) => hook.start())]);
    await stage.#start();
    return stage;
  }

  /** The upstream's time, Unix seconds. */
  get nowSeconds(): number {
    return Math.floor((Date.now() + this.#aheadMs) / 1_000);
  }

  #answer({ query }: ScriptedRequest): Scripted {
    const headers = { date: new Date(Date.now() + this.#aheadMs).toUTCString() };
    const shown = this.#shownTo(query);
    return { status: 200, body: JSON.stringify({ results: shown, nextCursor: null }), headers };
  }

  #shownTo(query: ScriptedRequest['query']): readonly JsonObject[] {
    const { wallet, intentHash, status } = query;
    if (intentHash !== undefined) return this.#records.filter(({ id }) => id === `intent:${intentHash}`);
    const from = this.#wallets.indexOf(wallet ?? '') * PER_WALLET;
    if (from < 0) return [];
    const records = this.#records.slice(from, from + PER_WALLET);
    return status === undefined ? records : records.filter((record) => record.status === status);
  }

  async #start(): Promise<void> {
    const file = join(this.#folder, 'intentwatch.yaml');
    const config = {
      upstream: { baseUrl: this.#upstream.url, apiKey: 'sandbox-key', requestsPerSecond: 100 },
      redis: { url: this.#server.url },
      server: { host: '127.0.0.1', port: 0 },
      receivers: RECEIVERS.map((name, index) => ({
        name,
        type: 'webhook',
        url: this.#hooks[index]?.url,
        secrets: [SECRET],
        allowPrivateNetwork: true,
        allowInsecure: true,
      })),
      subscriptions: [{ name: 'treasury', wallets: this.#wallets, receivers: RECEIVERS }],
    };
    await writeFile(file, stringify(config));
    this.#daemon = await Program.start(MAIN, ['start', '--config', file], this.#clock.env);
    await this.#daemon.line(/"msg":"daemon.started"/);
  }

  /** Shows these records until the receivers have got `count` events of them in all. */
  async shows(records: readonly JsonObject[], count: number): Promise<void> {
    this.#records = records;
    await eventually(
      `${count} events have come to each receiver`,
      async () => {
        const open = await Promise.all(RECEIVERS.map((name) => this.#redis.zcard(this.#keys.pending(name))));
        return open.every((few) => few === 0) && this.#hooks.every(({ came }) => came.length >= count);
      },
      600_000,
    );
  }

  /** Shows no transfer any more, and waits until none is polled. */
  async ended(): Promise<void> {
    await eventually('no transfer is polled', async () => {
      return (await this.#redis.hlen(`${this.#keys.plan('status')}:items`)) === this.#wallets.length;
    });
    this.#records = [];
  }

  /** Lets the retention pass until nothing of the log is left, and the ended subjects have been compacted. */
  async pass(): Promise<void> {
    const fromMs = Date.now() + this.#aheadMs + DAY_MS;
    this.#aheadMs += AGED_DAYS * DAY_MS;
    this.#clock.shift(this.#aheadMs);
    await eventually(
      'the data of ended transfers has been compacted',
      async () => {
        const [[oldest] = [], whole] = await Promise.all([
          this.#redis.xrange(this.#keys.events, '-', '+', 'COUNT', 1),
          this.#redis.zcard(this.#keys.changedSubjects),
        ]);
        // The moved clock is an event too.
        return whole === 0 && Number.parseInt(oldest?.[0] ?? String(fromMs), 10) >= fromMs;
      },
      600_000,
    );
  }

  async footprint(): Promise<Footprint> {
    return footprintOf(this.#redis);
  }

  /** CPU time of the daemon and of its Redis so far, ms. */
  async cpuMs(): Promise<{ process: number; redis: number }> {
    if (!(this.#redis instanceof Redis) || this.#daemon === null) throw new Error('expected one server');
    const used = [...(await this.#redis.info('cpu')).matchAll(/used_cpu_(?:sys|user):([\d.]+)/g)];
    const redis = used.reduce((sum, [, seconds]) => sum + Number(seconds) * 1_000, 0);
    return { process: await cpuMsOf(this.#daemon.pid), redis };
  }

  async close(): Promise<void> {
    await this.#daemon?.end('SIGTERM');
    await disconnect(this.#redis);
    await this.#server.close();
    await Promise.all([this.#upstream.close(), ...this.#hooks.map((hook) => hook.close())]);
    this.#clock.close();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function walletOf(number: number): string {
  return `0x${(number + 1).toString(16).padStart(40, 'a')}`;
}
