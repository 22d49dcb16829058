import type { HealthState } from '../store/health.ts';
import type { ReceiverState } from '../store/receivers.ts';
import type { OpenSums, UnsweptState } from '../store/wallets.ts';

/**
 * The values that a label can have: a closed set, the receivers of the config (`receivers`), the queues that follow
 * from them (`queues`), the routes of the config (`routes`), its chains with RPC endpoints (`chains`) and the names of those
 * (`endpoints`), pairs of chains (`learned`) and symbols of tokens (`tokens`),
 * both the first or largest few, or the one value that a process has (`one`).
 */
export type LabelValues =
  | readonly string[]
  | 'receivers'
  | 'queues'
  | 'routes'
  | 'chains'
  | 'endpoints'
  | 'learned'
  | 'tokens'
  | 'one';

/**
 * A metric. `series` replaces the label combinations that exist from the start (every one of closed sets). `source`: where a
 * gauge is read at scrape time; such a gauge is equal in every process on one Redis. `exemplars`: an observation may name its
 * event.
 */
export type Definition = {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
  labels: { readonly [label: string]: LabelValues };
  buckets?: readonly number[];
  series?: readonly { readonly [label: string]: string }[];
  source?: SourceName;
  exemplars?: true;
};

/** Most series of a receiver of the config. */
export const MOST_PER_RECEIVER = 65;

/** Most series of a pair of chains, with one token. */
export const MOST_PER_ROUTE = 170;

/** The sources of gauges, by name. */
export const SOURCES = [
  'transfers',
  'subjects',
  'queues',
  'deliveries',
  'receivers',
  'suspensions',
  'endpointGroups',
  'waits',
  'sweeps',
  'routes',
  'learned',
  'checks',
] as const;

export type SourceName = (typeof SOURCES)[number];

/**
 * The sources of gauges, read at scrape time. Each may fail or hang: the scrape then omits its gauges. `removed`: the receiver
 * was removed from the config; `waits`: time since the last successful poll of the longest-waiting subject of a kind. `routes`
 * are those of this config with a response; null is a value that the quote does not state.
 */
export type MetricSources = {
  transfers(): Promise<OpenSums & { nowMs: number }>;
  subjects(): Promise<{ kind: string; status: string; count: number }[]>;
  queues(): Promise<{ queue: string; state: 'waiting' | 'delayed' | 'active'; count: number }[]>;
  deliveries(): Promise<{ receiver: string; pending: number; dead: number; removed: boolean }[]>;
  receivers(): Promise<ReceiverStatus[]>;
  suspensions(): Promise<{ claimKeys: number; waiting: number }>;
  endpointGroups(): Promise<EndpointGroupState[]>;
  waits(): Promise<{ kind: string; longestSeconds: number }[]>;
  sweeps(): Promise<{ state: UnsweptState; count: number }[]>;
  learned(): Promise<{ stages: LearnedTiming[]; newTransfersPerSecond: number }>;
  routes(): Promise<RoutePrice[]>;
  checks(): Promise<ProofProgress>;
};

/** The checks of payments on the chains of the config; `unreadSeconds` is null where it has none. */
export type ProofProgress = { chains: readonly ChainChecks[]; unreadSeconds: number | null };

/** The checks of payments on a chain, by state, and the longest wait. */
export type ChainChecks = {
  chain: string;
  states: readonly { state: string; count: number }[];
  oldestSeconds: number;
};

/**
 * The state of a receiver. `full`: it has the most open deliveries allowed; `nextAttemptSeconds`: 0 unless it waits for one;
 * `undeliveredSeconds`: age of the oldest event that it has not accepted.
 */
export type ReceiverStatus = {
  receiver: string;
  state: ReceiverState;
  full: boolean;
  oldestSeconds: number;
  undeliveredSeconds: number;
  nextAttemptSeconds: number;
};

/** An endpoint group with its plan: `budget` in requests per second, `used` as a share of it, the rest are counts. */
export type EndpointGroupState = {
  endpointGroup: string;
  state: HealthState;
  budget: number;
  used: number;
  price: number;
  failing: number;
  suspects: number;
  overdueSeconds: number;
};

/** The learned timing of a stage on a route, of transfers that come to its end. */
export type LearnedTiming = {
  route: string;
  stage: string;
  observations: number;
  medianSeconds: number;
  p99Seconds: number;
};

/** The price of a route: `outputRatio` in token units where decimals are known, `feeRatio` as a share of the amount. */
export type RoutePrice = {
  route: string;
  outputRatio: number | null;
  feeRatio: number | null;
  fillEstimateSeconds: number | null;
  solvers: number;
};
