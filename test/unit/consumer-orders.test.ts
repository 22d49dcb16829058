import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { type AnyEvent, claimEventInSqlite, SQLITE_TABLES } from '../../consumer/src/index.ts';
import { handle, TABLES } from '../../examples/handle-once/typescript/handle.ts';
import { VECTORS } from '../support/consumer-vectors.ts';
import { ordersOf } from '../support/orders.ts';

const CONTEXT = { attemptedAt: new Date(0), isReplay: false };

/** Handles events as the example in TypeScript does, each in a transaction; returns the number of claimed ones. */
function handleAll(database: DatabaseSync, events: readonly AnyEvent[]): number {
  let claimed = 0;
  for (const event of events) {
    database.exec('BEGIN IMMEDIATE');
    const claim = claimEventInSqlite(database, event);
    if (claim !== null) {
      handle(event, { ...CONTEXT, tx: database, ...claim });
      claimed += 1;
    }
    database.exec('COMMIT');
  }
  return claimed;
}

test.each(VECTORS.lives)('the example in TypeScript has the same tables after every order: $name', ({
  events,
  tables,
}) => {
  const database = new DatabaseSync(':memory:');
  database.exec(SQLITE_TABLES + TABLES);
  const names = Object.keys(tables);
  let orders = 0;
  const reads = names.map(
    (table) => [table, database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`)] as const,
  );
  const emptied = [...names, 'effects', 'intentwatch_inbox', 'intentwatch_facts'];
  const empty = emptied.map((table) => `DELETE FROM ${table}`).join(';');
  const expected = JSON.stringify(tables);
  for (const order of ordersOf(events)) {
    const claimed = [handleAll(database, order), handleAll(database, order)];
    const found = reads.map(([table, read]) => [table, read.all().map((row) => Object.values(row))] as const);
    const end = Object.fromEntries(found);
    const inThisOrder = order.map(({ type, data }) => `${data.sequence} ${type}`).join(', ');
    if (JSON.stringify(end) !== expected) expect(end, inThisOrder).toEqual(tables);
    if (claimed.join() !== `${events.length},0`) expect(claimed, inThisOrder).toEqual([events.length, 0]);
    database.exec(empty);
    orders += 1;
  }
  expect(orders).toBe(events.reduce((product, _event, index) => product * (index + 1), 1));
  database.close();
});
