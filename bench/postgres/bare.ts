import { parseArgs } from 'node:util';
import pg from 'pg';
import { renderEvent } from '../../src/domain/events/make-event.ts';
import { rowOf } from '../../src/notifiers/postgres/table.ts';
import { eventOf } from '../deliveries/stage.ts';

/** Minimal insert: the same rows through `pg`, one statement and one commit each. Prepares them, prints a line, then inserts. */
const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    table: { type: 'string' },
    events: { type: 'string' },
    transfers: { type: 'string' },
  },
});
const transfers = Number(values.transfers);
const rows = Array.from({ length: Number(values.events) }, (_, at) =>
  rowOf({ event: renderEvent(eventOf(at, transfers), [], new Map()), entry: `${Date.now()}-${at}` }),
);
const client = new pg.Client({ connectionString: values.url });
await client.connect();
console.log('prepared');
const text = `INSERT INTO ${values.table} (id, type, occurred_at, subject, sequence, position, event)
VALUES ($1, $2, $3, $4, $5, $6, $7)`;
for (const row of rows) await client.query(text, row);
await client.end();
console.log('inserted');
