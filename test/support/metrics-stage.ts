import { COMMON_NAMES, type Directory } from '../../src/domain/transfers/chains.ts';
import { type Health, type MetricSources, Metrics, type MetricsOptions } from '../../src/metrics/metrics.ts';
import { Signals } from '../../src/signals.ts';
import { HEALTH, NO_TRANSFERS } from './health.ts';

const NOTHING: MetricSources = {
  transfers: async () => NO_TRANSFERS,
  subjects: async () => [],
  queues: async () => [],
  deliveries: async () => [],
  receivers: async () => [],
  suspensions: async () => ({ claimKeys: 0, waiting: 0 }),
  endpointGroups: async () => [],
  waits: async () => [],
  sweeps: async () => [],
  learned: async () => ({ stages: [], newTransfersPerSecond: 0 }),
  routes: async () => [],
  checks: async () => ({ chains: [], unreadSeconds: null }),
};

/** The inputs of the metrics that a test sets; the others have no values. */
type Wanted = Partial<Omit<MetricsOptions, 'sources' | 'health'>> & {
  sources?: Partial<MetricSources>;
  health?: Partial<Health>;
  /** The known tokens, all of them listed. */
  directory?: Directory;
};

/** The metrics of a process that is ready, with one receiver. */
export function metricsOf({
  sources = {},
  health = {},
  directory = COMMON_NAMES,
  ...wanted
}: Wanted = {}): Metrics {
  return new Metrics({
    signals: new Signals(),
    tokens: { directory, listed: directory },
    receivers: [{ name: 'backend', type: 'webhook' }],
    routes: [],
    version: '1.2.3',
    nodeVersion: 'v26.0.0',
    ...wanted,
    sources: { ...NOTHING, ...sources },
    health: { ...HEALTH, ...health },
  });
}
