import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { parseRedisUrl, type RedisTarget } from '../config/sections/redis.ts';
import type { Event } from '../domain/events/event.ts';
import { type Surface, surfaceOf } from '../domain/subjects/kinds.ts';
import { routesOf, subjectsOf } from '../domain/subjects/subscription.ts';
import { Metrics } from '../metrics/metrics.ts';
import { scheduleMigration } from '../queues/migrate-schedule.ts';
import { EventLinks } from '../server/event-links.ts';
import { LoopWatch } from '../server/loop-watch.ts';
import { Server } from '../server/server.ts';
import { Signals } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import { connect, disconnect } from '../store/connection.ts';
import { EmbeddedRedis } from '../store/embedded.ts';
import { EventLog } from '../store/event-log.ts';
import { Keys } from '../store/keys.ts';
import { migrate } from '../store/migrate.ts';
import { persistenceWarning } from '../store/persistence.ts';
import { PlanStore } from '../store/plan.ts';
import { RedisMonitor } from '../store/redis-monitor.ts';
import type { Wanted } from '../store/registry.ts';
import { SchemaVersion, type SchemaVersionError } from '../store/schema-version.ts';
import { SchemaWatch } from '../store/schema-watch.ts';
import { checkRedis } from '../store/startup-checks.ts';
import type { ForeignEntry } from '../store/stored.ts';
import { VERSION } from '../version.ts';
import { withTimeout } from '../with-timeout.ts';
import { assemble, type DaemonParts } from './assemble.ts';
import { daemonEvents } from './event-lookup.ts';
import { daemonHealth, daemonMetricSources, daemonReadiness, daemonStanding } from './readiness.ts';

/** How long work in flight may take at shutdown before it is handed back, and all the rest after that. */
const GRACE_MS = 3_000;
const CLOSE_MS = 1_200;

/** How many places with entries of another shape are named in the log; the metric counts on. */
const MOST_FOREIGN_LOGGED = 1_000;

/** A Redis that cannot be used, with every reason. */
class UnusableRedisError extends Error {
  constructor(reasons: readonly string[]) {
    super(reasons.join('\n'));
    this.name = 'UnusableRedisError';
  }
}

/** The whole program: from a config to running parts, and back. */
export class Daemon {
  readonly #config: Config;
  readonly #log: Logger;
  readonly signals: Signals;
  readonly #metrics: Metrics;
  readonly #server: Server;
  #parts: DaemonParts | null = null;
  #embedded: EmbeddedRedis | null = null;
  readonly #connections: RedisClient[] = [];
  readonly #monitor: RedisMonitor;
  readonly #loop = new LoopWatch();
  #url = '';
  readonly #closed = new AbortController();
  readonly #failure = Promise.withResolvers<SchemaVersionError>();
  #schemaWatch: SchemaWatch | null = null;
  #closing = false;
  readonly #foreign = new Set<string>();

  constructor(options: { config: Config; log: Logger; signals?: Signals }) {
    const { config } = options;
    this.#config = config;
    this.#log = options.log;
    this.signals = options.signals ?? new Signals();
    this.signals.on('event.committed', ({ event }) => this.#logEvent(event));
    this.#monitor = this.#newMonitor();
    const readiness = daemonReadiness(() => this.#parts, this.#monitor);
    this.signals.on('store.foreign', (found) => this.#logForeign(found));
    this.#metrics = new Metrics({
      signals: this.signals,
      sources: daemonMetricSources(() => this.#parts, this.#monitor),
      standing: daemonStanding(readiness, this.#monitor),
      receivers: config.receivers.map(({ name, type }) => ({ name, type })),
      routes: routesOf(config.subscriptions).map(({ name }) => name),
      version: VERSION,
      nodeVersion: process.version,
    });
    this.#server = new Server({
      host: config.server.host,
      port: config.server.port,
      metrics: this.#metrics,
      readiness,
      health: daemonHealth(this.#monitor, this.#loop),
      api:
        config.server.token === null
          ? null
          : {
              token: config.server.token,
              links: new EventLinks(config.server.token),
              findEvent: daemonEvents(() => this.#parts),
            },
    });
  }

  /** Where the daemon serves metrics and health. */
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

  /** Starts everything. Waits for an external Redis as long as it takes, and says so. */
  async start(): Promise<void> {
    const config = this.#config;
    // Before the port: who starts a second daemon is told that, and not that the port is in use.
    if (config.redis.url === null) this.#embedded = await this.#takeDataDir();
    this.#loop.start();
    this.#monitor.start();
    this.#url = (await this.#server.start()).url;
    this.#log.info({ url: this.#url, version: VERSION }, 'server.listening');
    if (this.#embedded !== null) {
      await this.#embedded.start();
      this.#log.info({ dataDir: config.dataDir }, 'redis.embedded_started');
    }

    const redis = this.#connect('commands');
    await this.#awaitRedis(redis);
    const version = await this.#prepareSchema(redis);
    const parts: DaemonParts = assemble({
      config,
      connections: {
        redis,
        opening: this.#connect('openings'),
        delivering: this.#connect('deliveries'),
        blocking: this.#connect('relay'),
        waking: this.#connect('sender'),
      },
      signals: this.signals,
      log: this.#log,
      upkeep: {
        resync: async () => {
          await version.claim();
          await this.#sync(parts, await parts.stores.plan.setBudgets(parts.polling.budgets));
        },
        keep: () => this.#keep(parts),
      },
    });
    this.#parts = parts;

    const { polling, delivering } = parts;
    await polling.learning.start();
    const lost = await parts.stores.plan.setBudgets(polling.budgets);
    for (const { dispatcher, worker, capacity } of polling.pollers) {
      worker.start({ capacity });
      dispatcher.start();
    }
    await this.#sync(parts, lost);
    await polling.discovery.start();
    await parts.reconcile.start();
    await delivering.sender.start();
    delivering.relay.start();
    for (const worker of delivering.workers) worker.start();
    const { subscriptions, receivers } = config;
    this.#log.info({ subscriptions: subscriptions.length, receivers: receivers.length }, 'daemon.started');
  }

  /** Resolves when the daemon cannot go on, with the reason; whoever started it closes it then. */
  get failure(): Promise<SchemaVersionError> {
    return this.#failure.promise;
  }

  /** Brings what is stored to our version, before anything works on it, and sees to it that it stays so. */
  async #prepareSchema(redis: RedisClient): Promise<SchemaVersion> {
    const keys = this.#keys();
    const plan = new PlanStore(redis, keys);
    const migrations = [scheduleMigration(async (subjects) => void (await plan.track(subjects)))];
    await migrate({ redis, keys, migrations, log: this.#log, signal: this.#closed.signal });
    const version = new SchemaVersion(redis, keys);
    const fail = (error: SchemaVersionError): void => {
      this.#log.error({ reason: error.message }, 'schema.changed');
      this.#failure.resolve(error);
    };
    this.#schemaWatch = new SchemaWatch({ version, log: this.#log, onChanged: fail });
    this.#schemaWatch.start();
    return version;
  }

  /**
   * Makes Redis what the config wants: receivers, subscriptions, and polls whatever is new. In a plan that
   * was `lost` everything is: what is wanted may have been kept.
   */
  async #sync({ redis, stores, polling }: DaemonParts, lost: readonly Surface[]): Promise<void> {
    const { plan, registry, handedQuotes } = stores;
    const newest = await new EventLog(redis, this.#keys()).newest();
    const unverified = await handedQuotes.sync(this.#config.handedQuotes);
    const wanted = wantedOf(this.#config);
    await registry.sync(wanted, newest);
    const named = wanted.subscriptions.flatMap(({ subjects }) => subjects);
    await plan.track(named.filter((subject) => lost.includes(surfaceOf(subject))));
    if (unverified.length > 0) await plan.ask(unverified);
    for (const { dispatcher } of polling.pollers) dispatcher.wake();
  }

  /** Sees to it that what the config wants is still there: a failover may have lost any part of it. */
  async #keep(parts: DaemonParts): Promise<void> {
    const { plan, registry } = parts.stores;
    const lost = await plan.setBudgets(parts.polling.budgets);
    const isForgotten = (await registry.isForgotten()) && this.#config.subscriptions.length > 0;
    if (lost.length === 0 && !isForgotten) return;
    this.#log.error({ surfaces: lost, wanted: !isForgotten }, 'plan.lost');
    await this.#sync(parts, lost);
  }

  /** Ends polling: polls under way end, nothing new is asked; what was committed is still delivered. */
  async stopPolling(): Promise<void> {
    const pollers = this.#parts?.polling.pollers ?? [];
    for (const { dispatcher } of pollers) dispatcher.stop();
    const abort = AbortSignal.timeout(GRACE_MS);
    await Promise.all(pollers.map(({ worker }) => worker.close(abort)));
    await Promise.all(pollers.map(({ dispatcher }) => dispatcher.close()));
  }

  /** Stops taking work, gives work in flight its time, hands the rest back, and lets go of everything. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#monitor.close();
    this.#loop.close();
    this.#closed.abort();
    this.#schemaWatch?.close();
    const parts = this.#parts;
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), GRACE_MS);
    if (parts !== null) {
      const { polling, delivering, reconcile } = parts;
      const { relay, sender } = delivering;
      const deliveries = delivering.workers.map((worker) => worker.close(abort.signal));
      const polled = this.stopPolling().then(() => polling.learning.close());
      const flow = [polled, ...deliveries, polling.discovery.close(), relay.close(), reconcile.close()];
      await withTimeout(Promise.allSettled(flow), GRACE_MS + CLOSE_MS / 2);
      await withTimeout(Promise.allSettled([polling.queues.close(), sender.close()]), CLOSE_MS / 4);
    }
    clearTimeout(timer);
    this.#metrics.close();
    await withTimeout(
      Promise.allSettled([this.#server, ...(parts?.clients ?? [])].map((part) => part.close())),
      CLOSE_MS / 4,
    );
    await withTimeout(Promise.allSettled(this.#connections.map(disconnect)), CLOSE_MS / 2);
    await this.#embedded?.close();
    this.#log.info('daemon.stopped');
  }

  #logEvent({ id, type, data }: Event): void {
    const { subject, sequence, status, previousStatus, changes, detectionDelaySeconds } = data;
    const line = { subject: subject.id, eventId: id, eventType: type, sequence, status, previousStatus };
    this.#log.info({ ...line, changes, detectionDelaySeconds }, 'event.committed');
  }

  /** Says once of each place that what stands there has another shape: it can be read in every poll. */
  #logForeign(found: ForeignEntry): void {
    if (this.#foreign.has(found.where) || this.#foreign.size >= MOST_FOREIGN_LOGGED) return;
    this.#foreign.add(found.where);
    this.#log.warn(found, 'store.foreign');
  }

  #keys(): Keys {
    return new Keys(this.#config.redis.prefix);
  }

  async #takeDataDir(): Promise<EmbeddedRedis> {
    const embedded = new EmbeddedRedis({
      dataDir: this.#config.dataDir,
      onTrouble: (reason) => this.#log.error({ reason }, 'redis.embedded'),
    });
    await embedded.takeFolder();
    return embedded;
  }

  #newMonitor(): RedisMonitor {
    return new RedisMonitor({
      key: this.#keys().events,
      openFresh: () => connect(this.#redisTarget),
      onAway: (role, reason) => {
        if (!this.#closing) this.#log.warn({ role, reason }, 'redis.away');
      },
      onBack: (role) => this.#log.info({ role }, 'redis.back'),
      onPersistence: (persistence) => {
        const warning = persistenceWarning(persistence);
        if (warning === null) this.#log.info(persistence, 'redis.persistent');
        else this.#log.warn({ ...persistence, warning }, 'redis.not_persistent');
      },
    });
  }

  #connect(role: string): RedisClient {
    const redis = connect(this.#redisTarget, { onTrouble: (reason) => this.#monitor.lost(role, reason) });
    this.#connections.push(redis);
    this.#monitor.watch(role, redis);
    return redis;
  }

  async #awaitRedis(redis: RedisClient): Promise<void> {
    const findings = await checkRedis(redis);
    for (const finding of findings) this.#log[finding.fatal ? 'error' : 'warn'](finding.message);
    const fatal = findings.filter((finding) => finding.fatal).map((finding) => finding.message);
    if (fatal.length > 0) throw new UnusableRedisError(fatal);
  }
}

function wantedOf(config: Config): Wanted {
  return {
    digest: config.digest,
    routes: routesOf(config.subscriptions),
    receivers: config.receivers.map(({ name, type, events, filter, ordering }) => ({
      name,
      type,
      events,
      filter,
      ordering,
    })),
    subscriptions: config.subscriptions.map((subscription) => {
      const { name, receivers, metadata, history, overdueAfterMs, warnBeforeMs } = subscription;
      const subjects = subjectsOf(subscription);
      return { name, receivers, metadata, history, overdueAfterMs, warnBeforeMs, subjects };
    }),
  };
}
