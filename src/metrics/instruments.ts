import { Counter, Gauge, Histogram, type OpenMetricsContentType, type Registry } from 'prom-client';
import { BoundedMap, bytesOfTexts, CACHES } from '../domain/caches.ts';
import { ENDPOINT_GROUPS } from '../domain/subjects/kinds.ts';
import type { Definition, LabelValues } from './definition.ts';
import { DELIVERIES } from './definitions/deliveries.ts';
import { POLLING, ROUTES, UPSTREAM } from './definitions/polling.ts';
import { PROCESS } from './definitions/process.ts';
import { BOOKS, PROOFS, TRANSFERS } from './definitions/transfers.ts';
import { OTHER, REMOVED } from './label-values.ts';

/** Every metric of the program's own, in the order of exposition and documentation. */
export const DEFINITIONS = {
  ...TRANSFERS,
  ...DELIVERIES,
  ...POLLING,
  ...UPSTREAM,
  ...PROOFS,
  ...ROUTES,
  ...BOOKS,
  ...PROCESS,
} as const satisfies Record<string, Definition>;

type Table = typeof DEFINITIONS;

type MetricKey = keyof Table;

type KeysOf<Type extends Definition['type']> = {
  [Key in MetricKey]: Table[Key]['type'] extends Type ? Key : never;
}[MetricKey];

type CounterKey = KeysOf<'counter'>;
type GaugeKey = KeysOf<'gauge'>;
type HistogramKey = KeysOf<'histogram'>;

type LabelsOf<Key extends MetricKey> = { [Label in keyof Table[Key]['labels']]: string };

type Labels = { [label: string]: string };

type LabelNames = {
  receivers: readonly string[];
  routes: readonly string[];
  chains: readonly string[];
  endpoints: readonly string[];
};

type Sample<Key extends GaugeKey> = { labels: LabelsOf<Key>; value: number };

/**
 * The metrics of the table as counters, gauges and histograms. Series of closed label sets exist from the start, and a value
 * outside its set becomes `other` (for receivers `(removed)`), so that no text of the upstream makes new series. A value that
 * is no number, or would decrease a counter, is dropped without an error for the sender of the signal.
 */
export class Instruments {
  #receivers: readonly string[] = [];
  #routes: readonly string[] = [];
  #chains: readonly string[] = [];
  #endpoints: readonly string[] = [];
  #isNamed = false;
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #zeroed = new Set<string>();
  /** Label values that are in their sets, by metric and values. Emptied when the sets change. */
  readonly #folded = new BoundedMap<string, Labels>({
    ...CACHES.labelSets,
    bytesOf: (name, labels) => bytesOfTexts(name, ...Object.values(labels).map(String)),
  });
  readonly #histograms = new Map<string, Histogram>();

  constructor(registry: Registry<OpenMetricsContentType>) {
    for (const [key, definition] of Object.entries<Definition>(DEFINITIONS)) {
      const { name, help, buckets } = definition;
      const options = { name, help, labelNames: Object.keys(definition.labels), registers: [registry] };
      switch (definition.type) {
        case 'counter':
          this.#counters.set(key, new Counter(options));
          break;
        case 'gauge':
          this.#gauges.set(key, new Gauge(options));
          break;
        case 'histogram':
          this.#histograms.set(
            key,
            new Histogram({ ...options, buckets: [...(buckets ?? [])], enableExemplars: true }),
          );
          break;
        default:
          throw new Error(`${name} is of no known type: ${definition.type satisfies never}`);
      }
    }
  }

  /** Makes missing series of some receivers and routes, and of closed sets. Other counts stay, and no longer change. */
  name({ receivers, routes, chains, endpoints }: LabelNames): void {
    const isFirst = !this.#isNamed;
    this.#isNamed = true;
    this.#receivers = receivers;
    this.#routes = routes;
    this.#chains = chains;
    this.#endpoints = endpoints;
    this.#folded.clear();
    for (const [key, definition] of Object.entries<Definition>(DEFINITIONS)) {
      const values = Object.values(definition.labels);
      const isNamed = values.some(
        (value) => value === 'receivers' || value === 'routes' || value === 'queues' || value === 'chains',
      );
      if (isFirst || isNamed) this.#begin(key, definition);
    }
  }

  /** Makes the series that exist from the start. A gauge with a source has none before its first read. */
  #begin(key: string, definition: Definition): void {
    if (definition.source !== undefined) {
      this.#clear(this.#gauge(key));
      return;
    }
    for (const labels of this.#initial(definition)) {
      this.#counters.get(key)?.inc(labels, 0);
      this.#gauges.get(key)?.set(labels, 0);
      this.#zero(key, labels);
    }
  }

  /** Sets a series to 0 before its first count: an increase from nothing to 1 cannot be detected. */
  expect<Key extends CounterKey | HistogramKey>(
    key: Key,
    labels: LabelsOf<Key>,
    extra: readonly string[] = [],
  ): void {
    const folded = this.#fold(key, labels, extra);
    this.#counters.get(key)?.inc(folded, 0);
    this.#zero(key, folded);
  }

  /** Makes a series of a histogram, once: again would clear it. */
  #zero(key: string, labels: Labels): void {
    const histogram = this.#histograms.get(key);
    const name = nameOf(key, labels);
    if (histogram === undefined || this.#zeroed.has(name)) return;
    this.#zeroed.add(name);
    histogram.zero(labels);
  }

  count<Key extends CounterKey>(
    key: Key,
    labels: LabelsOf<Key>,
    by = 1,
    extra: readonly string[] = [],
  ): void {
    if (Number.isFinite(by) && by > 0) this.#counters.get(key)?.inc(this.#fold(key, labels, extra), by);
  }

  /** Records a value; `eventId` is the event that it was measured on, as an example of its bucket. */
  observe<Key extends HistogramKey>(
    key: Key,
    labels: LabelsOf<Key>,
    value: number,
    { extra = [], eventId }: { extra?: readonly string[]; eventId?: string } = {},
  ): void {
    if (!Number.isFinite(value) || value < 0) return;
    const named: Definition = DEFINITIONS[key];
    const isNamed = named.exemplars === true && eventId !== undefined;
    const folded = this.#fold(key, labels, extra);
    this.#zeroed.add(nameOf(key, folded));
    this.#histograms.get(key)?.observe({
      labels: folded,
      value,
      ...(isNamed ? { exemplarLabels: { event_id: eventId } } : {}),
    });
  }

  set<Key extends GaugeKey>(key: Key, labels: LabelsOf<Key>, value: number): void {
    this.#gauge(key).set(this.#fold(key, labels), value);
  }

  /** Replaces all values of a gauge; those of one series add up. Null removes the gauge. */
  show<Key extends GaugeKey>(
    key: Key,
    samples: readonly Sample<Key>[] | null,
    extra: readonly string[] = [],
  ): void {
    const gauge = this.#gauge(key);
    this.#clear(gauge);
    if (samples === null) return;
    for (const labels of this.#initial(DEFINITIONS[key])) gauge.set(labels, 0);
    for (const { labels, value } of samples) {
      if (Number.isFinite(value)) gauge.inc(this.#fold(key, labels, extra), value);
    }
  }

  #gauge(key: string): Gauge {
    const gauge = this.#gauges.get(key);
    if (gauge === undefined) throw new Error(`${key} is no gauge`);
    return gauge;
  }

  /** Removes all series; `reset` alone would leave a gauge without labels at 0. */
  #clear(gauge: Gauge): void {
    gauge.reset();
    gauge.remove({});
  }

  /** Maps label values to their closed sets; `extra` are receivers and routes that are allowed beside the config's. */
  #fold(key: keyof typeof DEFINITIONS, labels: Labels, extra: readonly string[] = []): Labels {
    const definition: Definition = DEFINITIONS[key];
    const name = nameOf(key, labels);
    const before = this.#folded.peek(name);
    if (before !== undefined) return before;
    let isInSets = true;
    const folded = Object.fromEntries(
      Object.entries(definition.labels).map(([label, values]) => {
        const word = labels[label] ?? '';
        if (this.#words(values).includes(word)) return [label, word];
        isInSets = false;
        if (values === 'one' || (typeof values === 'string' && extra.includes(word))) return [label, word];
        return [label, isBounded(values) ? OTHER : REMOVED];
      }),
    );
    if (isInSets) this.#folded.set(name, folded);
    return folded;
  }

  #words(values: LabelValues): readonly string[] {
    switch (values) {
      case 'one':
      case 'learned':
      case 'tokens':
        return [];
      case 'receivers':
        return this.#receivers;
      case 'routes':
        return this.#routes;
      case 'chains':
        return this.#chains;
      case 'endpoints':
        return this.#endpoints;
      case 'queues':
        return [...ENDPOINT_GROUPS, ...this.#receivers.map((name) => `deliver-${name}`)];
      default:
        return values;
    }
  }

  #initial(definition: Definition): readonly Labels[] {
    if (definition.series !== undefined) return definition.series;
    let combinations: Labels[] = [{}];
    for (const [label, values] of Object.entries(definition.labels)) {
      combinations = this.#words(values).flatMap((word) =>
        combinations.map((labels) => ({ ...labels, [label]: word })),
      );
    }
    return combinations;
  }
}

function nameOf(key: string, labels: Labels): string {
  let name = key;
  // No value of a closed set has this separator, so that no text of the upstream passes for two of them.
  for (const label of Object.keys(labels)) name += `\u0000${label}=${labels[label]}`;
  return name;
}

/** True when values beyond a set become `other`: texts of the upstream, not names removed from the config. */
function isBounded(values: LabelValues): boolean {
  return typeof values !== 'string' || values === 'learned' || values === 'tokens';
}
