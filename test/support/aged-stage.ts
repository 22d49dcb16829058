import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { configYaml, testPrefix } from './daemon.ts';
import { eventually } from './eventually.ts';
import { Hook } from './hook.ts';
import type { Program } from './program.ts';
import { RedisProcess } from './redis-process.ts';
import { intentRecord, type Scripted, type ScriptedRequest, ScriptedUpstream } from './scripted-upstream.ts';
import { ShiftedClock } from './shifted-clock.ts';
import { Stage } from './stage.ts';

type OnTestFinished = (cleanUp: () => Promise<void>) => unknown;

export const DAY_MS = 86_400_000;

type Shown = { status: string; updatedAt: number; more: JsonObject };

/** An upstream whose clock the test sets, with one wallet that has all transfers. */
class AgedUpstream {
  readonly #transfers = new Map<string, Shown>();
  readonly #quotes = new Map<string, Shown>();
  aheadMs = 0;
  isFailing = false;
  readonly server = new ScriptedUpstream((request) => this.#answer(request));

  get nowSeconds(): number {
    return Math.floor((Date.now() + this.aheadMs) / 1_000);
  }

  #answer({ query }: ScriptedRequest): Scripted {
    const headers = { date: new Date(Date.now() + this.aheadMs).toUTCString() };
    if (this.isFailing && query.wallet !== undefined) return { status: 500, body: '{}', headers };
    const results =
      query.quoteId === undefined
        ? this.#transfersOf(query.intentHash)
        : [this.#quote(`quote:${query.quoteId}`)];
    return { status: 200, body: JSON.stringify({ results, nextCursor: null }), headers };
  }

  #transfersOf(hash: string | undefined): JsonObject[] {
    const shown = [...this.#transfers].filter(([one]) => hash === undefined || one === hash);
    const records = shown.map(([one, { status, updatedAt, more }]) =>
      intentRecord(one, status, updatedAt, more),
    );
    return records.length === 0 && hash !== undefined ? [intentRecord(hash, 'unknown', null)] : records;
  }

  #quote(id: string): JsonObject {
    const shown = this.#quotes.get(id);
    if (shown === undefined) return { id, type: 'quote', status: 'unknown', updatedAt: null };
    const { status, updatedAt, more } = shown;
    return { id, type: 'quote', status, updatedAt, ...more };
  }

  set(hash: string, status: string, more: JsonObject = {}): void {
    this.#transfers.set(hash, { status, updatedAt: this.nowSeconds, more });
  }

  setQuote(uuid: string, status: string, more: JsonObject = {}): void {
    this.#quotes.set(`quote:${uuid}`, { status, updatedAt: this.nowSeconds, more });
  }

  /** Resolves after `count` more requests. */
  async answers(count: number): Promise<void> {
    const until = this.server.requests.length + count;
    while (this.server.requests.length < until) await this.server.awaitRequest(() => true);
  }
}

/** A shipped daemon on a Redis of its own, under one clock, and all that it needs. Retention is the default, 30 days. */
export class AgedStage {
  readonly upstream = new AgedUpstream();
  readonly backend = new Hook();
  readonly operator = new Hook();
  /** A receiver that no subscription names unless a test does. */
  readonly late = new Hook();
  readonly clock: ShiftedClock;
  readonly redis: RedisClient;
  readonly keys: Keys;
  readonly #stage: Stage;
  readonly #server: RedisProcess;
  readonly #folder: string;
  #daemon: Program | null = null;

  private constructor(stage: Stage, server: RedisProcess, folder: string, clock: ShiftedClock) {
    this.#stage = stage;
    this.#server = server;
    this.#folder = folder;
    this.clock = clock;
    this.redis = connect({ kind: 'server', url: server.url });
    this.keys = new Keys(testPrefix());
  }

  static async of(onTestFinished: OnTestFinished): Promise<AgedStage> {
    const stage = new Stage(onTestFinished);
    const clock = new ShiftedClock();
    onTestFinished(async () => clock.close());
    const server = await RedisProcess.create({ env: clock.env });
    onTestFinished(() => server.close());
    const one = new AgedStage(stage, server, await stage.folder(), clock);
    onTestFinished(() => disconnect(one.redis));
    for (const part of [one.upstream.server, one.backend, one.operator, one.late]) {
      await part.start();
      onTestFinished(() => part.close());
    }
    return one;
  }

  async write(subscription: object): Promise<void> {
    const file = join(this.#folder, 'intentwatch.yaml');
    const yaml = configYaml({
      baseUrl: this.upstream.server.url,
      redisUrl: this.#server.url,
      prefix: this.keys.prefix.slice(1, -1),
      receivers: {
        backend: { url: this.backend.url },
        late: { url: this.late.url },
        operator: { url: this.operator.url, more: { events: ['receiver.*', 'intentwatch.*'] } },
      },
      subscriptions: [{ receivers: ['backend', 'operator'], ...subscription }],
      more: { dataDir: join(this.#folder, 'data') },
    });
    await writeFile(`${file}.new`, yaml);
    await rename(`${file}.new`, file);
  }

  async start(): Promise<Program> {
    this.#daemon = await this.#stage.daemon(join(this.#folder, 'intentwatch.yaml'), this.clock.env);
    return this.#daemon;
  }

  get daemon(): Program {
    if (this.#daemon === null) throw new Error('no daemon was started');
    return this.#daemon;
  }

  /** Ends the daemon as `kill -9` does, after it has recorded its deliveries. */
  async kill(): Promise<void> {
    await this.drained();
    await this.#daemon?.end('SIGKILL');
    this.#daemon = null;
  }

  async drained(): Promise<void> {
    await eventually('no delivery is open', async () => {
      const open = ['backend', 'operator'].map((name) => this.redis.zcard(this.keys.pending(name)));
      return (await Promise.all(open)).every((count) => count === 0);
    });
  }

  /** Advances the clock of the daemon, its Redis and the upstream by some days. */
  pass(days: number): void {
    this.upstream.aheadMs += days * DAY_MS;
    this.clock.shift(this.upstream.aheadMs);
  }

  async came(type: string, count: number): Promise<RenderedEvent[]> {
    await this.backend.until(() => this.of(type).length >= count);
    return this.of(type);
  }

  /** The events of a type that arrived, duplicates included. */
  of(type: string): RenderedEvent[] {
    return this.backend.came.flatMap(({ event }) => (event.type === type ? [event] : []));
  }
}
