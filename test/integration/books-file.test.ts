import { writeFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openSqlite } from '../../src/books/sql/sqlite.ts';
import { BooksStage, FIRST_MS } from '../support/books-stage.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

test('serves others while another process holds the file, and goes on when it lets go', async () => {
  const books = await BooksStage.open();
  later(() => books.discard());
  const other = new DatabaseSync(books.file);
  later(async () => other.close());
  other.exec('BEGIN EXCLUSIVE');
  const told = books.tell({
    transfer: 1,
    sequence: 1,
    status: 'pending',
    atMs: 1_000,
    seenMs: 1_000,
    amount: 7n,
  });
  // Each is a turn of the loop: were it held, the lock would never be let go.
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  other.exec('ROLLBACK');
  await told;
  const { balances } = await books.reader().report({ day: '2026-11-21' }, FIRST_MS + 60_000);
  expect(balances).toMatchObject([{ closing: { count: 1, amount: '7' } }]);
});

test.each([true, false])('names the file that is no file of SQLite (isReadOnly: %s)', async (isReadOnly) => {
  const books = await BooksStage.open();
  later(() => books.discard());
  const file = `${books.file}.bad`;
  await writeFile(file, 'x'.repeat(5_000));
  const opened = async (): Promise<unknown> => {
    const database = openSqlite(file, { isReadOnly });
    later(() => database.close());
    return database.read((sql) => sql.all('SELECT version FROM books_version'));
  };
  await expect(opened()).rejects.toMatchObject({
    name: 'BooksDatabaseError',
    message: expect.stringContaining(file),
    retryable: false,
  });
});
