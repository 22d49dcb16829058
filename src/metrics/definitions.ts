import { BOOKS } from './definitions/books.ts';
import type { Definition } from './definitions/definition.ts';
import { DELIVERIES } from './definitions/deliveries.ts';
import { POLLING } from './definitions/polling.ts';
import { PROCESS } from './definitions/process.ts';
import { PROOFS } from './definitions/proofs.ts';
import { ROUTES } from './definitions/routes.ts';
import { TRANSFERS } from './definitions/transfers.ts';
import { UPSTREAM } from './definitions/upstream.ts';

export type { Definition, LabelValues } from './definitions/definition.ts';

/** Every metric of the program's own, in the order in which they are exposed and documented. */
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

/** The key of a metric in the table. */
export type MetricKey = keyof Table;

type KeysOf<Type extends Definition['type']> = {
  [Key in MetricKey]: Table[Key]['type'] extends Type ? Key : never;
}[MetricKey];

export type CounterKey = KeysOf<'counter'>;
export type GaugeKey = KeysOf<'gauge'>;
export type HistogramKey = KeysOf<'histogram'>;

/** The labels that a metric wants, all of them. */
export type LabelsOf<Key extends MetricKey> = { [Label in keyof Table[Key]['labels']]: string };
