import { expect, test } from 'vitest';
import { storeRules } from '../../src/books/queries.ts';
import { type Database, prepareTables } from '../../src/books/sql/database.ts';
import { openPostgres } from '../../src/books/sql/postgres.ts';
import { Secret } from '../../src/secret.ts';
import { BooksStage, DAY_MS, FIRST_MS } from '../support/books-stage.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { PostgresProcess } from '../support/postgres-process.ts';

const OPTIONAL = needs(PARTS.postgres);

const { later } = opening();

async function setBack(database: Database): Promise<void> {
  await database.write(async (sql) => {
    await sql.run('DROP TABLE books_expired');
    await sql.run('CREATE INDEX books_transfers_open ON books_transfers (is_open, booked_ms)');
    await sql.run('DROP INDEX books_transfers_touched');
    await sql.run('DROP TABLE books_mail_recipients');
    await sql.run('ALTER TABLE books_closed_days DROP COLUMN rules');
    await sql.run('UPDATE books_version SET version = 1');
  });
}

async function staysWithOlderTables(database: Database | null): Promise<void> {
  const books = await BooksStage.open(database);
  later(() => books.discard());
  const transfer = { transfer: 1, amount: 5n };
  await books.ingest({ ...transfer, sequence: 1, status: 'pending', atMs: 1_000, seenMs: 1_000 });
  await setBack(books.database);
  await prepareTables(books.database);
  await books.ingest({ ...transfer, sequence: 2, status: 'filled', atMs: 2_000, seenMs: 2_000 });
  await books.expire(DAY_MS);
  await books.ingest({ ...transfer, sequence: 3, status: 'settled', atMs: DAY_MS, seenMs: DAY_MS });
  const { balances, transfers } = await books.reader().report({ day: '2026-11-22' }, FIRST_MS + 2 * DAY_MS);
  expect({ balances, transfers }).toEqual({ balances: [], transfers: [] });
}

test('migrates the tables of an older version, and does not lose their rows', async () => {
  await staysWithOlderTables(null);
});

test('a day that an older version closed is judged by the settings at the first start after', async () => {
  const books = await BooksStage.open();
  later(() => books.discard());
  await books.ingest({
    transfer: 1,
    amount: 1_000n,
    sequence: 1,
    status: 'filled',
    atMs: 1_000,
    seenMs: 1_000,
  });
  await books.close(DAY_MS);
  await setBack(books.database);
  await prepareTables(books.database);
  const kinds = async (checked: readonly string[]): Promise<string[]> => {
    const { exceptions } = await books.reader(checked).report({ day: '2026-11-21' }, FIRST_MS + 2 * DAY_MS);
    return exceptions.map(({ kind }) => kind);
  };
  await storeRules(books.database, { closeAfterMs: 3_600_000, checked: new Set(['42161']) });
  expect(await kinds([])).toEqual(['unproven']);
  await storeRules(books.database, { closeAfterMs: 3_600_000, checked: new Set() });
  expect(await kinds([])).toEqual(['unproven']);
});

test.skipIf(OPTIONAL.skip)(
  `brings the tables of an older version to its own in a Postgres${OPTIONAL.note}`,
  async () => {
    const postgres = await PostgresProcess.start();
    later(() => postgres.close());
    await staysWithOlderTables(openPostgres(new Secret(postgres.url), { hasTls: false }));
  },
);
