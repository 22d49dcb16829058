import { monitorEventLoopDelay } from 'node:perf_hooks';
import {
  collectDefaultMetrics,
  Gauge,
  type Metric,
  type OpenMetricsContentType,
  Registry,
} from 'prom-client';
import type { Signals } from '../signals.ts';
import { withTimeout } from '../with-timeout.ts';
import type { MetricSources } from './definition.ts';
import { Instruments } from './instruments.ts';
import { CountedSeries, RPC_OUTCOMES, type TokenDirectories } from './label-values.ts';
import { recordSignals } from './record-signals.ts';
import {
  showChecks,
  showDeliveries,
  showEndpointGroups,
  showLearned,
  showQueues,
  showReceivers,
  showRoutes,
  showSubjects,
  showSuspensions,
  showSweeps,
  showTransfers,
  showWaits,
} from './show.ts';

/** Longest age of gauges, however often a scrape comes. */
const EVERY_MS = 2_000;

/** Timeout of a source: in all, a scrape is answered within 1 s. */
const TIMEOUT_MS = 800;

/** A source with its request, and with the function that shows its response, or null for none. */
type SourceQuery<T> = {
  source: keyof MetricSources;
  read: () => Promise<T>;
  show: (metrics: Instruments, value: T | null) => void;
};

/** Reads the gauges from their sources. No source can delay or fail the others, or the scrape. */
class Collection {
  readonly #sources: MetricSources;
  readonly #metrics: Instruments;
  readonly #pending = new Set<keyof MetricSources>();
  #last: { startedMs: number; done: Promise<unknown> } | null = null;

  readonly #showTransfers: SourceQuery<Awaited<ReturnType<MetricSources['transfers']>>>['show'];

  constructor(
    sources: MetricSources,
    metrics: Instruments,
    { directories, named }: { directories: TokenDirectories; named: CountedSeries },
  ) {
    this.#sources = sources;
    this.#metrics = metrics;
    this.#showTransfers = (shown, answer) => showTransfers(shown, answer, { directories, named });
  }

  /** Updates the gauges, unless that began less than 2 s ago. Never rejects. */
  async refresh(): Promise<void> {
    const nowMs = performance.now();
    if (this.#last === null || nowMs - this.#last.startedMs >= EVERY_MS) {
      this.#last = { startedMs: nowMs, done: this.#readAll() };
    }
    await this.#last.done;
  }

  #readAll(): Promise<unknown> {
    const sources = this.#sources;
    return Promise.all([
      this.#read({ source: 'transfers', read: async () => sources.transfers(), show: this.#showTransfers }),
      this.#read({ source: 'subjects', read: async () => sources.subjects(), show: showSubjects }),
      this.#read({ source: 'queues', read: async () => sources.queues(), show: showQueues }),
      this.#read({ source: 'deliveries', read: async () => sources.deliveries(), show: showDeliveries }),
      this.#read({ source: 'receivers', read: async () => sources.receivers(), show: showReceivers }),
      this.#read({ source: 'suspensions', read: async () => sources.suspensions(), show: showSuspensions }),
      this.#read({
        source: 'endpointGroups',
        read: async () => sources.endpointGroups(),
        show: showEndpointGroups,
      }),
      this.#read({ source: 'routes', read: async () => sources.routes(), show: showRoutes }),
      this.#read({ source: 'learned', read: async () => sources.learned(), show: showLearned }),
      this.#read({ source: 'checks', read: async () => sources.checks(), show: showChecks }),
      this.#read({ source: 'waits', read: async () => sources.waits(), show: showWaits }),
      this.#read({ source: 'sweeps', read: async () => sources.sweeps(), show: showSweeps }),
    ]);
  }

  async #read<T>({ source, read, show }: SourceQuery<T>): Promise<void> {
    const value = await this.#answer(source, read);
    if (value === null) this.#metrics.count('scrapeErrors', { source });
    show(this.#metrics, value);
  }

  /** Requests a source; null when it fails, takes too long, or has an earlier request pending. */
  async #answer<T>(source: keyof MetricSources, read: () => Promise<T>): Promise<T | null> {
    if (this.#pending.has(source)) return null;
    this.#pending.add(source);
    try {
      return await withTimeout(
        read().finally(() => this.#pending.delete(source)),
        TIMEOUT_MS,
      );
    } catch {
      return null;
    }
  }
}

type Exposed = { contentType: string; body: string };

/** Default metrics of Node with a counter's name though they can fall: the sums of others beside them. */
const MISNAMED = [
  'nodejs_active_resources_total',
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
];

const LAG = 'nodejs_eventloop_lag';

/** Gauges of the event loop's delay, by the end of their name, in nanoseconds. */
const DELAYS: { readonly [name: string]: (delays: ReturnType<typeof monitorEventLoopDelay>) => number } = {
  min: ({ min }) => min,
  max: ({ max }) => max,
  mean: ({ mean }) => mean,
  stddev: ({ stddev }) => stddev,
  p50: (delays) => delays.percentile(50),
  p90: (delays) => delays.percentile(90),
  p99: (delays) => delays.percentile(99),
};

/** Longest interval that the timer of the library's own measurement accepts, about a day, ms. */
const NEVER_MS = 86_400_000;

/**
 * Measures the delay in each iteration of the event loop, since the last scrape. The library's measurement wakes an idle
 * process a hundred times a second. So do versions of Node that do not have `samplePerIteration`.
 */
function measureLoop(registry: Registry<OpenMetricsContentType>): void {
  const delays = monitorEventLoopDelay({ samplePerIteration: true });
  delays.enable();
  const registers = [registry];
  const ofName = (name: string): Gauge => {
    registry.removeSingleMetric(`${LAG}_${name}_seconds`);
    return new Gauge({
      name: `${LAG}_${name}_seconds`,
      help: `Delay of the event loop: ${name}.`,
      registers,
    });
  };
  registry.removeSingleMetric(`${LAG}_seconds`);
  // Before the others: a scrape reads them in the order in which they were made.
  const lag: Gauge = new Gauge({
    name: `${LAG}_seconds`,
    help: 'Delay of the event loop at the last scrape.',
    registers,
    collect: () => {
      const beganMs = performance.now();
      setImmediate(() => lag.set((performance.now() - beganMs) / 1_000));
      for (const { gauge, read } of gauges) gauge.set(read(delays) / 1e9);
      delays.reset();
    },
  });
  const gauges = Object.entries(DELAYS).map(([name, read]) => ({ gauge: ofName(name), read }));
}

/** Exposes the metrics of a process as text: in that of Prometheus, or in OpenMetrics, which has exemplars. */
class Exposition {
  /** The registry of all metrics, complete before the first scrape. */
  readonly registry = new Registry<OpenMetricsContentType>();
  #plain: Registry | null = null;

  constructor() {
    // The library allows exemplars of histograms only in such a registry.
    this.registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: NEVER_MS });
    measureLoop(this.registry);
    for (const name of MISNAMED) this.registry.removeSingleMetric(name);
  }

  async expose(isOpen: boolean): Promise<Exposed> {
    this.#plain ??= plainOf(this.registry);
    const registry = isOpen ? this.registry : this.#plain;
    return { contentType: registry.contentType, body: await registry.metrics() };
  }
}

/**
 * Copies a registry with the names of plain text. In OpenMetrics the family of a counter has no `_total`, and the library
 * removes that from the metric itself: each gets its own name here first.
 */
function plainOf(registry: Registry<OpenMetricsContentType>): Registry {
  const plain = new Registry();
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    const named: Metric = Object.create(metric ?? null, { name: { value: name, enumerable: true } });
    plain.registerMetric(named);
  }
  return plain;
}

const OPEN_METRICS = 'application/openmetrics-text';

/** True when an `Accept` header prefers OpenMetrics to plain text. A header with neither gets plain text. */
export function wantsOpenMetrics(accept: string | undefined): boolean {
  const open = qualityOf(accept, OPEN_METRICS);
  return open > 0 && open >= qualityOf(accept, 'text/plain');
}

/** Returns the highest quality of a type in a header, 0 where it is missing. */
function qualityOf(accept: string | undefined, type: string): number {
  const qualities = (accept ?? '').split(',').flatMap((part) => {
    const [name = '', ...parameters] = part.split(';').map((word) => word.trim().toLowerCase());
    if (name !== type) return [];
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    return [Number(quality) || 0];
  });
  return Math.max(0, ...qualities);
}

export type { MetricSources } from './definition.ts';

/** The state of a process without Redis. Null: it is not known, and the gauge is omitted. */
export type Health = {
  ready(): Promise<boolean>;
  redisReachable(): boolean;
  redisPersistent(): boolean | null;
};

/** Timeout of the check of readiness; after it the process counts as not ready. */
const READY_TIMEOUT_MS = 800;

/** The receivers and routes of the config, which have their own series. */
export type MetricNames = {
  receivers: readonly { name: string; type: string }[];
  routes: readonly string[];
  chains?: readonly { chainId: string; endpoints: readonly string[] }[];
};

/** The dependencies of metrics. */
export type MetricsOptions = MetricNames & {
  signals: Signals;
  sources: MetricSources;
  health: Health;
  version: string;
  nodeVersion: string;
  tokens: TokenDirectories;
};

/** The metrics of a process: counters and histograms from signals, gauges from sources. */
export class Metrics {
  readonly #exposition = new Exposition();
  readonly #instruments: Instruments;
  readonly #named = new CountedSeries();
  readonly #collection: Collection;
  readonly #health: Health;
  readonly #stopRecording: () => void;
  /** The texts in progress, by whether they are in OpenMetrics. */
  readonly #exposing = new Map<boolean, Promise<Exposed>>();

  constructor(options: MetricsOptions) {
    const { signals, sources, health, receivers, routes, chains = [], version } = options;
    const { nodeVersion, tokens } = options;
    this.#instruments = new Instruments(this.#exposition.registry);
    this.configure({ receivers, routes, chains });
    this.#health = health;
    const labels = { directories: tokens, named: this.#named };
    this.#collection = new Collection(sources, this.#instruments, labels);
    this.#stopRecording = recordSignals(signals, this.#instruments, labels);
    this.#instruments.set('buildInfo', { version, node_version: nodeVersion }, 1);
  }

  /** Sets the receivers, routes and chains that are counted by name from now on. */
  configure({ receivers, routes, chains = [] }: MetricNames): void {
    this.#instruments.name({
      receivers: receivers.map(({ name }) => name),
      routes,
      chains: chains.map(({ chainId }) => chainId),
      endpoints: chains.flatMap(({ endpoints }) => endpoints),
    });
    this.#named.areChecked = chains.length > 0;
    for (const { chainId: chain, endpoints } of chains) {
      for (const endpoint of endpoints) {
        this.#instruments.expect('rpcDuration', { chain, endpoint });
        for (const outcome of RPC_OUTCOMES)
          this.#instruments.expect('rpcCalls', { chain, endpoint, outcome });
      }
    }
    this.#instruments.show(
      'receiverInfo',
      receivers.map(({ name, type }) => ({ labels: { receiver: name, type }, value: 1 })),
    );
  }

  /**
   * Returns all metrics, as text of Prometheus or OpenMetrics by the `Accept` header. Takes less than 1 s, also without Redis,
   * and never rejects. Concurrent scrapes share one text.
   */
  async expose(accept?: string): Promise<Exposed> {
    const isOpen = wantsOpenMetrics(accept);
    const exposing =
      this.#exposing.get(isOpen) ?? this.#expose(isOpen).finally(() => this.#exposing.delete(isOpen));
    this.#exposing.set(isOpen, exposing);
    return exposing;
  }

  async #expose(isOpen: boolean): Promise<Exposed> {
    // Before the sources are read: it is compared with the begin of the scrape.
    this.#instruments.set('time', {}, Date.now() / 1_000);
    await Promise.all([this.#collection.refresh(), this.#showHealth()]);
    return this.#exposition.expose(isOpen);
  }

  async #showHealth(): Promise<void> {
    const health = this.#health;
    const ready = await withTimeout(health.ready(), READY_TIMEOUT_MS).catch(() => false);
    this.#instruments.set('ready', {}, ready === true ? 1 : 0);
    this.#instruments.set('redisReachable', {}, health.redisReachable() ? 1 : 0);
    const isPersistent = health.redisPersistent();
    this.#instruments.show(
      'redisPersistent',
      isPersistent === null ? null : [{ labels: {}, value: isPersistent ? 1 : 0 }],
    );
  }

  /** Stops listening. The counts can still be read. */
  close(): void {
    this.#stopRecording();
  }
}
