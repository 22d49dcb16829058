import { collectDefaultMetrics, Registry } from 'prom-client';
import type { Signals } from '../signals.ts';
import { Collection } from './collection.ts';
import { Instruments } from './instruments.ts';
import { recordSignals } from './record-signals.ts';
import type { MetricSources } from './sources.ts';

export type { MetricSources } from './sources.ts';

/** What metrics are made from; `receivers` and `routes` are those of the config. */
export type MetricsOptions = {
  signals: Signals;
  sources: MetricSources;
  receivers: readonly { name: string; type: string }[];
  routes: readonly string[];
  version: string;
  nodeVersion: string;
};

/** The metrics of a process: counters and histograms from signals, gauges from sources. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #instruments: Instruments;
  readonly #collection: Collection;
  readonly #stopRecording: () => void;

  constructor(options: MetricsOptions) {
    const { signals, sources, receivers, routes, version, nodeVersion } = options;
    collectDefaultMetrics({ register: this.#registry });
    this.#instruments = new Instruments(this.#registry, {
      receivers: receivers.map(({ name }) => name),
      routes,
    });
    this.#collection = new Collection(sources, this.#instruments);
    this.#stopRecording = recordSignals(signals, this.#instruments);
    this.#instruments.set('buildInfo', { version, node_version: nodeVersion }, 1);
    for (const { name, type } of receivers)
      this.#instruments.set('receiverInfo', { receiver: name, type }, 1);
  }

  /** All metrics in the text format of Prometheus. Takes little more than 2 s at the most, and never rejects. */
  async expose(): Promise<{ contentType: string; body: string }> {
    // Before the sources are read: it is compared with the time at which the scrape began.
    this.#instruments.set('time', {}, Date.now() / 1_000);
    await this.#collection.refresh();
    return { contentType: this.#registry.contentType, body: await this.#registry.metrics() };
  }

  /** Stops listening. What was counted can still be read. */
  close(): void {
    this.#stopRecording();
  }
}
