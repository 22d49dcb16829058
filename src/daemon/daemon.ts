import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { ConfigFile } from '../config/file/config-file.ts';
import { parseRedisUrl, type RedisTarget } from '../config/sections/redis.ts';
import { COMMON_NAMES } from '../domain/transfers/chains.ts';
import { messageOf } from '../errors.ts';
import { Metrics } from '../metrics/metrics.ts';
import type { AddedReceiverDeps } from '../operations/added-receivers.ts';
import type { ConfigChanges, FileState, ReloadRequest } from '../operations/config-state.ts';
import { LogTail } from '../operations/log-tail.ts';
import { LoopWatch } from '../server/loop-watch.ts';
import { Server } from '../server/server.ts';
import { logSignals, Signals } from '../signals.ts';
import { AddedReceiverStore } from '../store/added-receivers.ts';
import type { Truncation } from '../store/append-only.ts';
import type { RedisClient } from '../store/commands.ts';
import { ConfirmationStore } from '../store/confirmations.ts';
import type { EmbeddedRedis } from '../store/embedded.ts';
import type { Epoch } from '../store/epoch.ts';
import { EventLog } from '../store/event-log.ts';
import { Keys } from '../store/keys.ts';
import type { SchemaVersion, SchemaVersionError, SchemaWatch } from '../store/schema-version.ts';
import { VERSION } from '../version.ts';
import { withTimeout } from '../with-timeout.ts';
import { type AddedReceivers, openAddedReceivers } from './added-receivers.ts';
import type { SharedConnections } from './assemble.ts';
import { type Clocks, startClocks } from './clocks.ts';
import { changesBetween, isEmpty, reportStart } from './config-changes.ts';
import { claimDataDir, logTruncation, openEpoch, openSchema, reportTruncations } from './data.ts';
import { Generation } from './generation.ts';
import { daemonMetricSources, directoryOf, metricNames } from './metric-sources.ts';
import { RedisConnections } from './redis-connections.ts';
import { ConfigReloads } from './reloads.ts';
import {
  accessRulesOf,
  apiOptionsOf,
  daemonHealth,
  daemonReadiness,
  eventUrlOf,
  healthOf,
} from './server-options.ts';

/** At shutdown: time for work under way to end before it is released; then time to close everything else. */
const GRACE_MS = 3_000;
const CLOSE_MS = 1_200;

const REPORT_RETRY_MS = 10_000;

/** State that generations share. `added`: receivers made through the API, which extend each config; `tail`: log readers. */
type Shared = SharedConnections & {
  tail: LogTail;
  version: SchemaVersion;
  epoch: Epoch;
  clocks: Clocks;
  added: AddedReceivers;
  apiReceivers: AddedReceiverDeps;
};

/** The whole program: builds a generation (all that runs by one config), replaces it at a reload, and closes it. */
export class Daemon {
  #config: Config;
  readonly #log: Logger;
  readonly #onApplied: (config: Config) => void;
  readonly signals: Signals;
  readonly #metrics: Metrics;
  readonly #server: Server;
  #shared: Shared | null = null;
  #generation: Generation | null = null;
  /** Ends of the work of replaced generations. */
  readonly #draining = new Set<Promise<void>>();
  /** Cuts off work under way when the grace period of a shutdown is over. */
  readonly #cut = new AbortController();
  /** Queue in which configs are applied one after the other. */
  #applying: Promise<void> = Promise.resolve();
  readonly #reloads: ConfigReloads | null;
  #embedded: EmbeddedRedis | null = null;
  readonly #connections: RedisConnections;
  readonly #loop = new LoopWatch();
  #url = '';
  readonly #closed = new AbortController();
  readonly #failure = Promise.withResolvers<SchemaVersionError>();
  #schemaWatch: SchemaWatch | null = null;
  #closing = false;

  /** Without a `source` no reload is possible. `onApplied` is called with each config that a reload applied. */
  constructor(options: {
    config: Config;
    log: Logger;
    signals?: Signals;
    source?: ConfigFile;
    onApplied?: (config: Config) => void;
  }) {
    const { config, source, onApplied = () => undefined } = options;
    this.#config = config;
    this.#onApplied = onApplied;
    this.#log = options.log;
    this.signals = options.signals ?? new Signals();
    logSignals(this.signals, this.#log);
    this.#reloads =
      source === undefined
        ? null
        : new ConfigReloads({
            source,
            running: () => this.#config,
            apply: (next, options) => this.apply(next, options),
            confirmations: () => this.#confirmations(),
            log: this.#log,
            signals: this.signals,
          });
    const target = () => this.#redisTarget;
    this.#connections = new RedisConnections({
      target,
      key: this.#keys().events,
      log: this.#log,
      onBack: () => this.#shared?.epoch.checkSoon(),
    });
    const { monitor } = this.#connections;
    const readiness = daemonReadiness(() => this.#generation?.deps ?? null, {
      monitor,
      fileState: () => this.fileState,
      isBlocked: () => this.#embedded?.isBlocked ?? false,
    });
    this.#metrics = new Metrics({
      signals: this.signals,
      sources: daemonMetricSources(() => this.#generation?.deps ?? null, monitor),
      health: healthOf(readiness, monitor),
      ...metricNames(config),
      version: VERSION,
      nodeVersion: process.version,
      tokens: {
        directory: directoryOf(() => this.#generation?.deps.polling.discovery.directory ?? COMMON_NAMES),
        listed: directoryOf(() => this.#generation?.deps.polling.discovery.listed ?? COMMON_NAMES),
      },
    });
    this.signals.emit('config.moved', { state: 'running', atMs: Date.now(), removal: null });
    this.#server = new Server({
      host: config.server.host,
      port: config.server.port,
      metrics: this.#metrics,
      readiness,
      health: daemonHealth(monitor, this.#loop),
      api: apiOptionsOf(config.server, () => this.#generation?.deps.api ?? null),
    });
  }

  get url(): string {
    return this.#url;
  }

  get #redisTarget(): RedisTarget {
    const { url } = this.#config.redis;
    const external = url === null ? null : parseRedisUrl(url.reveal());
    if (external !== null) return external;
    if (this.#embedded === null) throw new Error('the embedded Redis has not been started');
    return this.#embedded.target;
  }

  /** Starts everything. Waits for an external Redis without limit, and logs that. */
  async start(): Promise<void> {
    const config = this.#config;
    // Before the port is opened, so that a second daemon in the folder fails with the error about the folder.
    if (config.redis.url === null) {
      const onTruncated = (truncation: Truncation) => void this.#onTruncated(truncation);
      this.#embedded = await claimDataDir(config, { log: this.#log, onTruncated });
    }
    this.#loop.start();
    this.#connections.start();
    await Promise.all([this.#listen(), this.#startEmbedded()]);

    const redis = this.#connections.open('commands');
    await this.#connections.awaitUsable(redis);
    const apiRedis = this.#connections.open('api');
    this.#shared = {
      redis,
      openingRedis: this.#connections.open('openings'),
      deliveryRedis: this.#connections.open('deliveries'),
      apiRedis,
      tail: new LogTail(new EventLog(apiRedis, this.#keys()), this.#connections.open('followers')),
      version: await this.#openSchema(redis),
      epoch: await openEpoch(config, {
        redis,
        keys: this.#keys(),
        signals: this.signals,
        log: this.#log,
        isTruncated: (this.#embedded?.unreported.length ?? 0) > 0,
      }),
      clocks: await startClocks({ redis, keys: this.#keys(), signals: this.signals, log: this.#log }),
      ...(await openAddedReceivers({
        store: new AddedReceiverStore(redis, this.#keys()),
        config: () => this.#config,
        apply: () => this.#applyAdded(),
        log: this.#log,
      })),
    };
    const extended = await this.#shared.added.extend(config);
    this.#metrics.configure(metricNames(extended));
    const generation = await this.#generate(extended, this.#shared);
    this.#generation = generation;
    const { registry } = generation.deps.stores;
    const confirmations = this.#confirmations();
    const removal = await reportStart({ config, registry, confirmations, log: this.#log });
    await generation.start();
    // Removed, so that the next start reports its own removals.
    if (removal !== null) await confirmations.removeReport();
    this.#logWarnings(config);
    // After the generation has stored lost receivers again, so that they get these events.
    await reportTruncations(this.#embedded, { redis, keys: this.#keys() });
    const { subscriptions, receivers } = config;
    this.#log.info({ subscriptions: subscriptions.length, receivers: receivers.length }, 'daemon.started');
    this.#reloads?.start(removal);
    this.#shared.added.start();
  }

  async #listen(): Promise<void> {
    this.#url = (await this.#server.start()).url;
    this.#log.info({ url: this.#url, version: VERSION }, 'server.listening');
  }

  async #startEmbedded(): Promise<void> {
    if (this.#embedded === null) return;
    await this.#embedded.start();
    this.#log.info({ dataDir: this.#config.dataDir }, 'redis.embedded_started');
  }

  #logWarnings({ warnings }: Config): void {
    for (const { line, column, path, message } of warnings)
      this.#log.warn({ line, column, path, reason: message }, 'config.warning');
  }

  /** Reads the config file again and applies it; a large removal waits for a confirmation (`held`). Null without a file. */
  async reload(request: ReloadRequest = {}): Promise<FileState | null> {
    return (await this.#reloads?.reload(request)) ?? null;
  }

  /** State of the config file against the running config; null without a file. */
  get fileState(): FileState | null {
    return this.#reloads?.state ?? null;
  }

  #confirmations(): ConfirmationStore {
    const { redis } = this.#shared ?? {};
    if (redis === undefined) throw new Error('the daemon has not started');
    return new ConfirmationStore(redis, this.#keys());
  }

  /**
   * Applies another config. If it throws, nothing has changed. Work under way ends with the settings with which it began.
   * `isNewest`: writes the subscriptions and receivers of the config to Redis, for all processes.
   */
  async apply(config: Config, { isNewest }: { isNewest: boolean }): Promise<ConfigChanges> {
    return this.#inTurn(async () => {
      const changes = await this.#apply(config, { isNewest });
      this.#config = config;
      this.#onApplied(config);
      if (!isEmpty(changes)) this.#logWarnings(config);
      if (changes.settings.some((key) => key.startsWith('server.')))
        await this.#server.changeAccess(accessRulesOf(config.server));
      return changes;
    });
  }

  async #applyAdded(): Promise<void> {
    await this.#inTurn(async () => {
      await this.#shared?.added.load();
      await this.#apply(this.#config, { isNewest: false });
    });
  }

  async #inTurn<T>(apply: () => Promise<T>): Promise<T> {
    const applied = this.#applying.then(apply);
    this.#applying = applied.then(
      () => undefined,
      () => undefined,
    );
    return applied;
  }

  async #apply(file: Config, { isNewest }: { isNewest: boolean }): Promise<ConfigChanges> {
    const [shared, old] = [this.#shared, this.#generation];
    if (shared === null || old === null || this.#closing) throw new Error('the daemon does not run');
    const { config, leftOut } = shared.added.addTo(file);
    const changes = changesBetween(old.config, config);
    if (isEmpty(changes)) {
      shared.added.report(leftOut);
      // Redis may hold the config of another process or, after a restore, an older one.
      if (isNewest) await old.sync();
      return changes;
    }
    const next = await this.#generate(config, shared);
    const { drained } = await next.replace(old, { cut: this.#cut.signal, isNewest });
    this.#generation = next;
    shared.added.report(leftOut);
    this.#metrics.configure(metricNames(config));
    this.#draining.add(drained);
    void drained.finally(() => this.#draining.delete(drained));
    return changes;
  }

  /** Builds a generation on the shared connections, and on two of its own for commands that block. */
  async #generate(
    config: Config,
    { version, epoch, clocks, tail, apiReceivers, added: _, ...shared }: Shared,
  ): Promise<Generation> {
    const eventUrl = await eventUrlOf(config.server);
    const own = { relay: this.#connections.open('relay'), sender: this.#connections.open('sender') };
    const release = (role: 'relay' | 'sender') => this.#connections.release(own[role]);
    const connections = { ...shared, blocking: own.relay, waking: own.sender };
    const { signals } = this;
    try {
      const log = this.#log;
      const control = {
        digest: () => this.#config.digest,
        fileState: () => this.fileState,
        reload: (request: ReloadRequest) => this.reload(request),
      };
      return new Generation({
        config,
        connections,
        tail,
        apiReceivers,
        epoch,
        clocks,
        eventUrl,
        control,
        signals,
        log,
        version,
        release,
      });
    } catch (error) {
      void Promise.allSettled([release('relay'), release('sender')]);
      throw error;
    }
  }

  /** Resolves with the error when the daemon cannot continue. Its caller then closes it. */
  get failure(): Promise<SchemaVersionError> {
    return this.#failure.promise;
  }

  async #openSchema(redis: RedisClient): Promise<SchemaVersion> {
    const fail = (error: SchemaVersionError): void => this.#failure.resolve(error);
    const { version, watch } = await openSchema(redis, this.#keys(), { log: this.#log, onChanged: fail });
    this.#schemaWatch = watch;
    return version;
  }

  /** Stops polling, and waits for polls under way. Committed events are still delivered. */
  async stopPolling(): Promise<void> {
    await this.#generation?.stopPolling(AbortSignal.timeout(GRACE_MS));
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#connections.stopWatching();
    this.#loop.close();
    this.#closed.abort();
    this.#schemaWatch?.close();
    this.#reloads?.close();
    this.#shared?.tail.close();
    this.#shared?.added.close();
    const timer = setTimeout(() => this.#cut.abort(), GRACE_MS);
    await withTimeout(this.#applying, CLOSE_MS / 4);
    await Promise.all([this.#generation?.close(this.#cut.signal), ...this.#draining]);
    clearTimeout(timer);
    this.#metrics.close();
    await withTimeout(this.#server.close(), CLOSE_MS / 4);
    await withTimeout(this.#shared?.clocks.confirmed.close() ?? Promise.resolve(), CLOSE_MS / 4);
    await withTimeout(this.#shared?.epoch.close() ?? Promise.resolve(), CLOSE_MS / 4);
    await withTimeout(this.#connections.close(), CLOSE_MS / 4);
    await this.#embedded?.close();
    this.#log.info('daemon.stopped');
  }

  /** Logs writes that the embedded Redis lost. Emits their event, unless start() does that later. */
  async #onTruncated(truncation: Truncation): Promise<void> {
    logTruncation(truncation, this.#log);
    const { redis, epoch } = this.#shared ?? {};
    if (redis === undefined || epoch === undefined) return;
    epoch.noteTruncated();
    const { signal } = this.#closed;
    for (let reported = ''; !signal.aborted; ) {
      try {
        await reportTruncations(this.#embedded, { redis, keys: this.#keys() });
        return;
      } catch (error) {
        // For example on a full disk. The record of the loss stays on disk, also over a restart.
        const reason = messageOf(error);
        if (reason !== reported) this.#log.error({ reason }, 'redis.embedded');
        reported = reason;
        await sleep(REPORT_RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  #keys(): Keys {
    return new Keys(this.#config.redis.prefix, this.#config.upstream.statusSource);
  }
}
