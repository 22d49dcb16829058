import { AsyncLocalStorage } from 'node:async_hooks';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import type { FeedSources } from '../../src/books/books.ts';
import { ConfigFile } from '../../src/config/file/config-file.ts';
import { AddedReceivers } from '../../src/daemon/added-receivers.ts';
import { Daemon } from '../../src/daemon/daemon.ts';
import { Generation } from '../../src/daemon/generation.ts';
import { RedisConnections } from '../../src/daemon/redis-connections.ts';
import { ConfigReloads } from '../../src/daemon/reloads.ts';
import type { FileState } from '../../src/operations/config-state.ts';
import { UnknownError } from '../../src/operations/operation.ts';
import { removeSuspended } from '../../src/operations/suspended.ts';
import { ChainDiscovery } from '../../src/queues/chain-discovery.ts';
import { CheckFeed, PaymentChecks } from '../../src/queues/checks/checks.ts';
import { Reconcile } from '../../src/queues/deliveries/reconcile.ts';
import { Relay } from '../../src/queues/deliveries/relay.ts';
import { Sender } from '../../src/queues/deliveries/sender.ts';
import { Heartbeat } from '../../src/queues/heartbeat.ts';
import { Dispatcher } from '../../src/queues/polls/dispatcher.ts';
import { Learning } from '../../src/queues/polls/learning.ts';
import { PollQueues, type SentPoll } from '../../src/queues/polls/poll-queues.ts';
import { PollWorker } from '../../src/queues/polls/run-poll.ts';
import { LoopWatch } from '../../src/server/loop-watch.ts';
import { Server } from '../../src/server/server.ts';
import type { RedisClient } from '../../src/store/commands.ts';
import { ConfirmedTime } from '../../src/store/confirmed-time.ts';
import { RedisMonitor } from '../../src/store/redis-monitor.ts';
import { SchemaWatch } from '../../src/store/schema-version.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A line of the log of a process. */
export type LogLine = { level: number; msg: string; [field: string]: unknown };

/** Number of further commands before a process dies, and whether Redis executes the last one, whose reply is lost. */
export type Dying = { commands: number; isLastMade: boolean };

const acting = new AsyncLocalStorage<VirtualProcess>();

/** Rounds of polls in one step: enough for all due polls, and no endless loop where some poll is always due. */
const MOST_ROUNDS = 60;

/** Between two rounds of polls: a poll that is due shortly after belongs to the same step. */
const ROUND_MS = 100;

/**
 * Stops every loop of the daemons of this process, and the servers for people: a step makes each round. Claimed polls wait in the
 * process instead of in BullMQ.
 */
function holdLoops(): void {
  for (const held of [
    Dispatcher,
    PollWorker,
    Relay,
    PaymentChecks,
    AddedReceivers,
    LoopWatch,
    RedisMonitor,
    SchemaWatch,
    Sender,
  ])
    held.prototype.start = () => undefined;
  for (const held of [ChainDiscovery, Learning]) held.prototype.start = async () => undefined;
  Heartbeat.prototype.start = async function (this: Heartbeat) {
    await this.beat();
  };
  Reconcile.prototype.start = async function (this: Reconcile) {
    await this.check();
  };
  CheckFeed.prototype.start = function (this: CheckFeed) {
    const process = acting.getStore();
    if (process !== undefined) process.checkFeed = this;
  };
  ConfirmedTime.prototype.start = async function (this: ConfirmedTime) {
    const process = acting.getStore();
    if (process !== undefined) process.clock = this;
    await this.compare();
  };
  Server.prototype.start = async () =>
    ({ url: '', address: { address: '', family: 'IPv4', port: 0 } }) as never;
  ConfigReloads.prototype.start = function (this: ConfigReloads) {
    const process = acting.getStore();
    if (process !== undefined) process.reloads = this;
  };
  PollQueues.prototype.add = async (endpointGroup, polls) =>
    void acting.getStore()?.jobs.push({ endpointGroup, polls: polls.flat() });
  PollQueues.prototype.missing = async () => [];
  const { start, replace } = Generation.prototype;
  Generation.prototype.start = async function (this: Generation) {
    acting.getStore()?.generated(this);
    return start.call(this);
  };
  Generation.prototype.replace = async function (
    this: Generation,
    ...given: Parameters<Generation['replace']>
  ) {
    const replaced = await replace.apply(this, given);
    acting.getStore()?.generated(this);
    return replaced;
  };
  const { open } = RedisConnections.prototype;
  RedisConnections.prototype.open = function (this: RedisConnections, role: string) {
    const redis = open.call(this, role);
    acting.getStore()?.watch(redis);
    return redis;
  };
}

holdLoops();

/** A daemon whose every round is made by a step, and that can die between any two commands to Redis. */
export class VirtualProcess {
  readonly #daemon: Daemon;
  readonly #time: VirtualTime;
  readonly jobs: { endpointGroup: string; polls: readonly SentPoll[] }[] = [];
  reloads: ConfigReloads | null = null;
  clock: ConfirmedTime | null = null;
  checkFeed: CheckFeed | null = null;
  readonly lines: LogLine[] = [];
  readonly #clients: RedisClient[] = [];
  #generation: Generation | null = null;
  #isAlive = true;
  #dying: Dying | null = null;
  readonly #died = Promise.withResolvers<void>();
  onPoll: () => void = () => undefined;
  /** Stores the books at the end of each step: their sources, and whether a day may be closed. */
  onBooks: (sources: FeedSources, isCertain: (redisMs: number) => boolean) => Promise<void> = async () =>
    undefined;

  private constructor(daemon: (log: pino.Logger) => Daemon, time: VirtualTime) {
    const write = (line: string): void => {
      if (this.#isAlive) this.lines.push(JSON.parse(line));
    };
    this.#daemon = daemon(pino({ base: null }, { write }));
    this.#time = time;
  }

  static async on(file: string, time: VirtualTime): Promise<VirtualProcess> {
    const source = new ConfigFile(file, {});
    const config = await source.load();
    return new VirtualProcess((log) => new Daemon({ config, log, source }), time);
  }

  /** Starts it. Resolves with false where it died in the middle. */
  async start(): Promise<boolean> {
    return this.#do(() => this.#daemon.start());
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get fileState(): FileState | null {
    return this.#daemon.fileState;
  }

  generated(generation: Generation): void {
    this.#generation = generation;
  }

  /** Counts the commands of a connection, and cuts it off when the process dies. */
  watch(redis: RedisClient): void {
    this.#clients.push(redis);
    if (!(redis instanceof Redis)) throw new Error('the model has one Redis');
    const send = redis.sendCommand.bind(redis);
    const never = new Promise<never>(() => undefined);
    redis.sendCommand = (...[command, stream]: Parameters<Redis['sendCommand']>) => {
      if (!this.#isAlive) return never;
      const isLast = this.#dying !== null && this.#dying.commands-- <= 0;
      const isSent = !isLast || this.#dying?.isLastMade === true;
      const reply = isSent ? send(command, stream) : never;
      if (isLast) this.kill();
      return new Promise((resolve, reject) => {
        Promise.resolve(reply).then(
          (value) => (this.#isAlive ? resolve(value) : undefined),
          (error) => (this.#isAlive ? reject(error) : undefined),
        );
      });
    };
  }

  die(dying: Dying): void {
    this.#dying = { ...dying };
  }

  /** Dies at once: none of its work goes on. */
  kill(): void {
    if (!this.#isAlive) return;
    this.#isAlive = false;
    this.#died.resolve();
    // The commands that it has sent reach Redis.
    setTimeout(() => {
      for (const redis of this.#clients) redis.disconnect();
    }, 20).unref();
  }

  /** Polls its config file as it does every second, twice: a changed file is read once it has stayed the same. */
  async check(): Promise<boolean> {
    return this.#do(async () => {
      await this.reloads?.check();
      await this.reloads?.check();
    });
  }

  /** `intentwatch reload`, also with `--confirm`. Resolves with null where it died, and the reason where it is refused. */
  async reload(confirm?: string): Promise<FileState | string | null> {
    let state: FileState | string | null = null;
    await this.#do(async () => {
      state = await this.#daemon
        .reload(confirm === undefined ? {} : { confirm })
        .catch((error: unknown) => String(error));
    });
    return state;
  }

  /** Does its own work of some seconds: polls all due items, relays, delivers and checks. */
  async step({ checksFirst = false } = {}): Promise<boolean> {
    return this.#do(async () => {
      const { deps } = this.#alive();
      await this.clock?.compare();
      await deps.heartbeat.beat();
      if (checksFirst) await deps.reconcile.check();
      await this.#poll();
      await this.#deliver();
      await this.clock?.compare();
      await this.#alive().deps.reconcile.check();
      await this.#deliver();
      await this.#readLog();
    });
  }

  /** Compares Redis with what it knows of it, as it does every 5 s. */
  async compare(): Promise<boolean> {
    return this.#do(async () => void (await this.#alive().deps.reconcile.check()));
  }

  /** The other readers of the log beside the relay: the checks of payments, and the books. */
  async #readLog(): Promise<void> {
    while (this.checkFeed !== null && (await this.checkFeed.step()) === 'more');
    await this.onBooks(this.bookSources, (redisMs) => this.clock?.mayActAt(redisMs) === true);
  }

  get bookSources(): FeedSources {
    const { stores, polling } = this.#alive().deps;
    const { events, registry, subjects, deliveries, lease } = stores;
    return { events, registry, subjects, deliveries, lease, directory: polling.discovery.directory };
  }

  /** `intentwatch remove`. Resolves with false where nothing is suspended under the id. */
  async remove(id: string): Promise<boolean> {
    let isFound = true;
    await this.#do(async () => {
      await removeSuspended(id, this.#alive().deps.api.endSuspended).catch((error: unknown) => {
        if (!(error instanceof UnknownError)) throw error;
        isFound = false;
      });
    });
    return isFound;
  }

  #alive(): Generation {
    if (this.#generation === null) throw new Error('the process has not started');
    return this.#generation;
  }

  async #poll(): Promise<void> {
    const { signal } = new AbortController();
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      let polled = 0;
      for (const { dispatcher, worker } of this.#alive().deps.polling.pollers) {
        await dispatcher.round();
        for (const job of this.jobs.splice(0).flatMap(({ polls }) => polls)) {
          polled += 1;
          this.onPoll();
          await worker.run({ polls: [job] }, signal);
        }
      }
      if (polled === 0) return;
      this.#time.advance(ROUND_MS);
    }
  }

  async #deliver(): Promise<void> {
    const { heartbeat, delivering } = this.#alive().deps;
    const { relay, workers } = delivering;
    await heartbeat.beat();
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const { more } = await relay.round();
      if (!more) break;
    }
    for (const worker of workers) {
      worker.wake();
      await worker.idle();
    }
  }

  async close(): Promise<void> {
    await this.#do(() => this.#daemon.close());
    this.#isAlive = false;
  }

  /** Does some work unless it dies first. */
  async #do(what: () => Promise<unknown>): Promise<boolean> {
    if (!this.#isAlive) return false;
    const done = acting.run(this, what);
    done.catch(() => undefined);
    await Promise.race([done, this.#died.promise]);
    return this.#isAlive;
  }
}
