import type { Daemon } from '../../src/daemon/daemon.ts';
import type { Event } from '../../src/domain/events/event.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { ADMIN_TOKEN } from './api-stage.ts';
import { startDaemon, testPrefix } from './daemon.ts';
import { eventually } from './eventually.ts';
import { Hook } from './hook.ts';
import { RedisProcess } from './redis-process.ts';
import { hashOf, intentRecord, ScriptedUpstream } from './scripted-upstream.ts';
import { ShiftedClock } from './shifted-clock.ts';

export const HOUR_MS = 3_600_000;
const WALLET = `0x${'a1'.repeat(20)}`;

type Later = (close: () => Promise<unknown>) => void;

/** A Redis whose clock the test sets, and an upstream with one wallet whose answers carry a time that the test sets. */
export class ClocksStage {
  readonly clock = new ShiftedClock();
  readonly hook = new Hook();
  readonly keys = new Keys(testPrefix());
  readonly #later: Later;
  readonly #transfers: { hash: string; status: string; updatedAt: number }[] = [];
  /** The lead of the `Date` of each answer of the status endpoint, by the number of the answer; 0 is the first. */
  aheadMs: (answer: number) => number = () => 0;
  #answers = 0;
  readonly upstream = new ScriptedUpstream(({ query: { wallet, intentHash } }) => {
    const shown = this.#transfers.filter(({ hash }) => wallet !== undefined || hash === intentHash);
    const results = shown.map(({ hash, status, updatedAt }) => intentRecord(hash, status, updatedAt));
    const date = new Date(Date.now() + this.aheadMs(this.#answers++)).toUTCString();
    return { status: 200, body: JSON.stringify({ results, nextCursor: null }), headers: { date } };
  });
  #server: RedisProcess | null = null;
  daemon: Daemon | null = null;

  private constructor(later: Later) {
    this.#later = later;
    later(async () => this.clock.close());
  }

  static async of(later: Later): Promise<ClocksStage> {
    const stage = new ClocksStage(later);
    const server = await RedisProcess.create({ durable: false, env: stage.clock.env });
    later(() => server.close());
    stage.#server = server;
    for (const part of [stage.upstream, stage.hook]) {
      await part.start();
      later(() => part.close());
    }
    return stage;
  }

  get redisUrl(): string {
    return this.#server?.url ?? '';
  }

  async start(subscription: object = {}, more: object = {}): Promise<Daemon> {
    const { daemon } = await startDaemon({
      baseUrl: this.upstream.url,
      redisUrl: this.redisUrl,
      prefix: this.keys.prefix.slice(1, -1),
      receivers: { hook: { url: this.hook.url } },
      subscriptions: [{ name: 'all', wallets: [WALLET], receivers: ['hook'], ...subscription }],
      more: { server: { host: '127.0.0.1', port: 0, token: ADMIN_TOKEN }, ...more },
    });
    this.#later(() => daemon.close());
    this.daemon = daemon;
    return daemon;
  }

  add(count: number, { status, atMs }: { status: string; atMs: (index: number) => number }): string[] {
    const from = this.#transfers.length;
    const hashes = Array.from({ length: count }, (_, index) => hashOf(from + index + 1));
    hashes.forEach((hash, index) => {
      this.#transfers.push({ hash, status, updatedAt: Math.floor(atMs(index) / 1_000) });
    });
    return hashes;
  }

  move(hash: string, status: string): void {
    const transfer = this.#transfers.find((one) => one.hash === hash);
    if (transfer !== undefined)
      Object.assign(transfer, { status, updatedAt: Math.floor(Date.now() / 1_000) });
  }

  /** Resolves when each of some transfers, or a page, was requested `times` times from now on. */
  async awaitRequests(isMeant: (query: Record<string, string>) => boolean, times = 1): Promise<void> {
    const from = this.upstream.requests.length;
    await eventually('the meant subjects are polled', () => {
      const since = this.upstream.requests.slice(from);
      return since.filter(({ query }) => isMeant(query)).length >= times;
    });
  }

  async events(): Promise<Event[]> {
    const redis = connect({ kind: 'server', url: this.redisUrl });
    const { entries } = await new EventLog(redis, this.keys).after('0-0', 1_000);
    await disconnect(redis);
    return entries.flatMap((entry) => ('event' in entry && entry.event !== null ? [entry.event] : []));
  }

  /** Resolves with the ids of the subjects when the log has events of a type about `count` of them. */
  async subjects(type: string, count: number): Promise<string[]> {
    return eventually(`${count} subjects with ${type}`, async () => {
      const events = (await this.events()).filter((event) => event.type === type);
      const subjects = new Set(events.map(({ data }) => data.subject.id));
      return subjects.size >= count && [...subjects];
    });
  }
}
