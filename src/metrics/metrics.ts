import { collectDefaultMetrics, Registry } from 'prom-client';
import type { Signals } from '../signals.ts';
import { withTimeout } from '../with-timeout.ts';
import { Collection } from './collection.ts';
import { Instruments } from './instruments.ts';
import { recordSignals } from './record-signals.ts';
import type { MetricSources } from './sources.ts';

export type { MetricSources } from './sources.ts';

/** What a process says of itself, which needs no Redis. Null: it is not known, and the gauge is left out. */
export type Standing = {
  ready(): Promise<boolean>;
  redisReachable(): boolean;
  redisPersistent(): boolean | null;
};

/** How long the check of the readiness may take; then the process counts as not ready. */
const READY_TIMEOUT_MS = 800;

/** The receivers and routes of the config, which have series of their own. */
export type MetricNames = {
  receivers: readonly { name: string; type: string }[];
  routes: readonly string[];
};

/** What metrics are made from. */
export type MetricsOptions = MetricNames & {
  signals: Signals;
  sources: MetricSources;
  standing: Standing;
  version: string;
  nodeVersion: string;
};

/** The metrics of a process: counters and histograms from signals, gauges from sources. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #instruments: Instruments;
  readonly #collection: Collection;
  readonly #standing: Standing;
  readonly #stopRecording: () => void;

  constructor(options: MetricsOptions) {
    const { signals, sources, standing, receivers, routes, version, nodeVersion } = options;
    collectDefaultMetrics({ register: this.#registry });
    this.#instruments = new Instruments(this.#registry);
    this.configure({ receivers, routes });
    this.#standing = standing;
    this.#collection = new Collection(sources, this.#instruments);
    this.#stopRecording = recordSignals(signals, this.#instruments);
    this.#instruments.set('buildInfo', { version, node_version: nodeVersion }, 1);
  }

  /** Has the receivers and routes of a config counted by name from now on. */
  configure({ receivers, routes }: MetricNames): void {
    this.#instruments.name({ receivers: receivers.map(({ name }) => name), routes });
    this.#instruments.show(
      'receiverInfo',
      receivers.map(({ name, type }) => ({ labels: { receiver: name, type }, value: 1 })),
    );
  }

  /** All metrics in the text format of Prometheus. Takes less than 1 s, also without Redis, and never rejects. */
  async expose(): Promise<{ contentType: string; body: string }> {
    // Before the sources are read: it is compared with the time at which the scrape began.
    this.#instruments.set('time', {}, Date.now() / 1_000);
    await Promise.all([this.#collection.refresh(), this.#showStanding()]);
    return { contentType: this.#registry.contentType, body: await this.#registry.metrics() };
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
