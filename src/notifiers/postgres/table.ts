import { storableText } from '../../domain/json.ts';
import type { NotifiedEvent } from '../notifier.ts';

/**
 * SQL that makes the table where it is missing. `number` is assigned while the insert holds a lock, so rows become visible in
 * its order: a reader of all rows up to one misses nothing by requesting larger ones. The index is of hashes: the upstream names
 * subjects, and no other index takes more than 2,704 bytes.
 */
export function tableDefinition(table: string): string {
  const index = quoted(`${table.split('.').at(-1)}_subject`.slice(-63));
  return `CREATE TABLE IF NOT EXISTS ${quotedTable(table)} (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in this order rows became visible
  id text NOT NULL UNIQUE, -- of the event
  type text NOT NULL,
  occurred_at timestamptz NOT NULL,
  subject text NOT NULL,
  sequence bigint NOT NULL, -- among the events of the subject
  position text COLLATE "C", -- in this order events were made, over all subjects; null for test events
  event jsonb NOT NULL, -- whole
  inserted_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS ${index} ON ${quotedTable(table)} USING hash (subject);
`;
}

const COLUMNS = ['id', 'type', 'occurred_at', 'subject', 'sequence', 'position', 'event'] as const;

/** Any number: with the table's own it names the lock. */
const LOCK = 1_767_336_803;

/** SQL that inserts new events in order, one insert at a time over all processes until its commit: numbers follow the lock. */
export function insertStatement(table: string): string {
  const name = quotedTable(table);
  const columns = COLUMNS.join(', ');
  return `WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(${LOCK}, '${name}'::regclass::oid::int4))
INSERT INTO ${name} (${columns})
SELECT ${columns}
FROM turn, unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::bigint[], $6::text[], $7::jsonb[])
  WITH ORDINALITY AS events (${columns}, place)
ORDER BY place
ON CONFLICT (id) DO NOTHING`;
}

/** The values of the statement: a list for each column. */
export function insertValues(events: readonly NotifiedEvent[]): Cell[][] {
  const rows = events.map(rowOf);
  return COLUMNS.map((_, column) => rows.map((row) => row[column] ?? null));
}

type Cell = string | number | null;

/** Builds a row, in the order of the columns. */
export function rowOf({ event, entry }: NotifiedEvent): Cell[] {
  const clean = storable(event);
  const { id, type, timestamp, data } = clean;
  const position = entry === null ? null : positionOf(entry);
  return [id, type, timestamp, data.subject.id, data.sequence, position, JSON.stringify(clean)];
}

function positionOf(entry: string): string {
  const [ms = '', place = ''] = entry.split('-');
  return `${ms.padStart(14, '0')}-${place.padStart(10, '0')}`;
}

/** Replaces text that Postgres cannot store in text or JSON, at any depth. */
function storable<T>(value: T): T;
function storable(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value);
  if (Array.isArray(value)) return value.map((one) => storable(one));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [storable(key), storable(one)]));
}

function quotedTable(table: string): string {
  return table.split('.').map(quoted).join('.');
}

function quoted(name: string): string {
  return `"${name}"`;
}
