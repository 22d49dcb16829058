import { parseArgs } from 'node:util';
import pg from 'pg';
import { makeEvent, renderEvent } from '../../src/domain/events/make-event.ts';
import { rowOf } from '../../src/notifiers/postgres/table.ts';
import { subjectOf } from '../deliveries/stage.ts';

/** Minimal insert: the same rows through `pg`, one statement and one commit each. Prepares them, prints a line, then inserts. */
const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    table: { type: 'string' },
    events: { type: 'string' },
  },
});
const rows = Array.from({ length: Number(values.events) }, (_, at) => rowOfTransfer(at));
const client = new pg.Client({ connectionString: values.url });
await client.connect();
console.log('prepared');
const text = `INSERT INTO ${values.table} (id, type, occurred_at, subject, sequence, position, event)
VALUES ($1, $2, $3, $4, $5, $6, $7)`;
for (const row of rows) await client.query(text, row);
await client.end();
console.log('inserted');

/** The row of a filled transfer, as the upstream of the other side shows them. */
function rowOfTransfer(number: number): ReturnType<typeof rowOf> {
  const nowMs = Date.now();
  const subject = subjectOf(number);
  const hash = subject.slice('intent:'.length);
  const record = {
    id: subject,
    type: 'intent',
    status: 'filled',
    updatedAt: Math.floor(nowMs / 1_000),
    sourceTx: { chainId: 8453, txHash: hash, amount: '1250000000' },
    destinationTx: { chainId: 42161, txHash: hash, amount: '1249000000' },
  };
  const event = makeEvent({
    subject: { kind: 'intent', id: subject },
    sequence: 1,
    epoch: 1,
    transition: {
      type: 'intent.filled',
      status: 'filled',
      previousStatus: null,
      changes: Object.keys(record),
      skipped: false,
      regression: false,
    },
    record,
    updatedAt: record.updatedAt,
    nowMs,
  });
  return rowOf({ event: renderEvent(event, [], new Map()), entry: `${nowMs}-${number}` });
}
