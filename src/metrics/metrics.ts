import { collectDefaultMetrics, type Metric, type OpenMetricsContentType, Registry } from 'prom-client';
import type { Signals } from '../signals.ts';
import { withTimeout } from '../with-timeout.ts';
import { Instruments } from './instruments.ts';
import { type KnownTokens, Named, RPC_OUTCOMES } from './label-values.ts';
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
import type { MetricSources } from './sources.ts';

/** How old gauges may be, however often somebody scrapes. */
const EVERY_MS = 2_000;

/** The time that a source may take: with the rest, a scrape is answered within 1 s. */
const TIMEOUT_MS = 800;

/** One source: how it is asked, and how its gauges show what it said, or nothing of it for null. */
type Read<T> = {
  source: keyof MetricSources;
  ask: () => Promise<T>;
  show: (metrics: Instruments, value: T | null) => void;
};

/** Reads the gauges from their sources. No source can delay or fail the others, or the scrape. */
class Collection {
  readonly #sources: MetricSources;
  readonly #metrics: Instruments;
  readonly #asking = new Set<keyof MetricSources>();
  #last: { startedMs: number; done: Promise<unknown> } | null = null;

  readonly #showTransfers: Read<Awaited<ReturnType<MetricSources['transfers']>>>['show'];

  constructor(
    sources: MetricSources,
    metrics: Instruments,
    { known, named }: { known: KnownTokens; named: Named },
  ) {
    this.#sources = sources;
    this.#metrics = metrics;
    this.#showTransfers = (shown, answer) => showTransfers(shown, answer, { known, named });
  }

  /** Brings the gauges up to date, unless that began less than 2 s ago. Never rejects. */
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
      this.#read({ source: 'transfers', ask: async () => sources.transfers(), show: this.#showTransfers }),
      this.#read({ source: 'subjects', ask: async () => sources.subjects(), show: showSubjects }),
      this.#read({ source: 'queues', ask: async () => sources.queues(), show: showQueues }),
      this.#read({ source: 'deliveries', ask: async () => sources.deliveries(), show: showDeliveries }),
      this.#read({ source: 'receivers', ask: async () => sources.receivers(), show: showReceivers }),
      this.#read({ source: 'suspensions', ask: async () => sources.suspensions(), show: showSuspensions }),
      this.#read({
        source: 'endpointGroups',
        ask: async () => sources.endpointGroups(),
        show: showEndpointGroups,
      }),
      this.#read({ source: 'routes', ask: async () => sources.routes(), show: showRoutes }),
      this.#read({ source: 'learned', ask: async () => sources.learned(), show: showLearned }),
      this.#read({ source: 'checks', ask: async () => sources.checks(), show: showChecks }),
      this.#read({ source: 'waits', ask: async () => sources.waits(), show: showWaits }),
      this.#read({ source: 'sweeps', ask: async () => sources.sweeps(), show: showSweeps }),
    ]);
  }

  async #read<T>({ source, ask, show }: Read<T>): Promise<void> {
    const value = await this.#answer(source, ask);
    if (value === null) this.#metrics.count('scrapeErrors', { source });
    show(this.#metrics, value);
  }

  /** What a source says; null when it fails, takes too long, or still owes the answer of an earlier question. */
  async #answer<T>(source: keyof MetricSources, ask: () => Promise<T>): Promise<T | null> {
    if (this.#asking.has(source)) return null;
    this.#asking.add(source);
    try {
      return await withTimeout(
        ask().finally(() => this.#asking.delete(source)),
        TIMEOUT_MS,
      );
    } catch {
      return null;
    }
  }
}

type Exposed = { contentType: string; body: string };

/** What the usual metrics of a Node process count under a name of a counter, though they fall: the sums of others beside them. */
const MISNAMED = [
  'nodejs_active_resources_total',
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
];

/** The metrics of a process as text: in that of Prometheus, or in OpenMetrics, which has exemplars, for whoever requests it. */
class Exposition {
  /** The place where metrics are registered, all of them before the first scrape. */
  readonly registry = new Registry<OpenMetricsContentType>();
  #plain: Registry | null = null;

  constructor() {
    // Only in such a registry the library lets histograms have exemplars.
    this.registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    collectDefaultMetrics({ register: this.registry });
    for (const name of MISNAMED) this.registry.removeSingleMetric(name);
  }

  /** The metrics as they are now, in OpenMetrics or in plain text. */
  async expose(isOpen: boolean): Promise<Exposed> {
    this.#plain ??= plainOf(this.registry);
    const registry = isOpen ? this.registry : this.#plain;
    return { contentType: registry.contentType, body: await registry.metrics() };
  }
}

/**
 * The same metrics under their names in plain text. In OpenMetrics the family of a counter goes without `_total`, and the
 * library takes that off the metric itself: each gets a name of its own here, before that is done.
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

/** True when an `Accept` header prefers OpenMetrics to plain text. Who names neither gets plain text. */
export function wantsOpenMetrics(accept: string | undefined): boolean {
  const open = qualityOf(accept, OPEN_METRICS);
  return open > 0 && open >= qualityOf(accept, 'text/plain');
}

/** The highest quality at which a header names a type, 0 where it does not. */
function qualityOf(accept: string | undefined, type: string): number {
  const qualities = (accept ?? '').split(',').flatMap((part) => {
    const [name = '', ...parameters] = part.split(';').map((word) => word.trim().toLowerCase());
    if (name !== type) return [];
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    return [Number(quality) || 0];
  });
  return Math.max(0, ...qualities);
}

export type { MetricSources } from './sources.ts';

/** What a process says of itself, which needs no Redis. Null: it is not known, and the gauge is left out. */
export type Standing = {
  ready(): Promise<boolean>;
  redisReachable(): boolean;
  redisPersistent(): boolean | null;
};

/** The time that the check of the readiness may take; then the process counts as not ready. */
const READY_TIMEOUT_MS = 800;

/** The receivers and routes of the config, which have series of their own. */
export type MetricNames = {
  receivers: readonly { name: string; type: string }[];
  routes: readonly string[];
  /** The chains with RPC endpoints, and the names of those. */
  chains?: readonly { chainId: string; endpoints: readonly string[] }[];
};

/** What metrics are made from. */
export type MetricsOptions = MetricNames & {
  signals: Signals;
  sources: MetricSources;
  standing: Standing;
  version: string;
  nodeVersion: string;
  tokens: KnownTokens;
};

/** The metrics of a process: counters and histograms from signals, gauges from sources. */
export class Metrics {
  readonly #exposition = new Exposition();
  readonly #instruments: Instruments;
  readonly #named = new Named();
  readonly #collection: Collection;
  readonly #standing: Standing;
  readonly #stopRecording: () => void;
  /** The texts that are being made, by whether they are in OpenMetrics. */
  readonly #exposing = new Map<boolean, Promise<Exposed>>();

  constructor(options: MetricsOptions) {
    const { signals, sources, standing, receivers, routes, chains = [], version } = options;
    const { nodeVersion, tokens } = options;
    this.#instruments = new Instruments(this.#exposition.registry);
    this.configure({ receivers, routes, chains });
    this.#standing = standing;
    const known = { known: tokens, named: this.#named };
    this.#collection = new Collection(sources, this.#instruments, known);
    this.#stopRecording = recordSignals(signals, this.#instruments, known);
    this.#instruments.set('buildInfo', { version, node_version: nodeVersion }, 1);
  }

  /** Has the receivers, routes and chains of a config counted by name from now on. */
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
   * All metrics, in the text format of Prometheus or in OpenMetrics, as the `Accept` header wants it. Takes less than 1 s,
   * also without Redis, and never rejects. Scrapes at once get one text: however many come, one is made at a time.
   */
  async expose(accept?: string): Promise<Exposed> {
    const isOpen = wantsOpenMetrics(accept);
    const exposing =
      this.#exposing.get(isOpen) ?? this.#expose(isOpen).finally(() => this.#exposing.delete(isOpen));
    this.#exposing.set(isOpen, exposing);
    return exposing;
  }

  async #expose(isOpen: boolean): Promise<Exposed> {
    // Before the sources are read: it is compared with the time at which the scrape began.
    this.#instruments.set('time', {}, Date.now() / 1_000);
    await Promise.all([this.#collection.refresh(), this.#showStanding()]);
    return this.#exposition.expose(isOpen);
  }

  async #showStanding(): Promise<void> {
    const standing = this.#standing;
    const ready = await withTimeout(standing.ready(), READY_TIMEOUT_MS).catch(() => false);
    this.#instruments.set('ready', {}, ready === true ? 1 : 0);
    this.#instruments.set('redisReachable', {}, standing.redisReachable() ? 1 : 0);
    const kept = standing.redisPersistent();
    this.#instruments.show('redisPersistent', kept === null ? null : [{ labels: {}, value: kept ? 1 : 0 }]);
  }

  /** Stops listening. What was counted can still be read. */
  close(): void {
    this.#stopRecording();
  }
}
