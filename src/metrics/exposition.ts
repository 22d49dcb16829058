import { collectDefaultMetrics, type Metric, type OpenMetricsContentType, Registry } from 'prom-client';

/** An answer to a scrape. */
export type Exposed = { contentType: string; body: string };

/** What the usual metrics of a Node process count under a name of a counter, though they fall: the sums of others beside them. */
const MISNAMED = [
  'nodejs_active_resources_total',
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
];

/** The metrics of a process as text: in that of Prometheus, or in OpenMetrics, which has exemplars, for whoever requests it. */
export class Exposition {
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
