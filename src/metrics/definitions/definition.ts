import type { SourceName } from '../sources.ts';

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
