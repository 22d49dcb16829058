import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { openSqlite } from '../../src/books/sql/sqlite.ts';
import { BooksStage, FIRST_MS } from '../support/books-stage.ts';
import { opening } from '../support/opening.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { Stage } from '../support/stage.ts';

const { later } = opening();

test('serves others while another process locks the file, and goes on when that releases it', async () => {
  const books = await BooksStage.open();
  later(() => books.discard());
  const other = new DatabaseSync(books.file);
  later(async () => other.close());
  other.exec('BEGIN EXCLUSIVE');
  const reported = books.ingest({
    transfer: 1,
    sequence: 1,
    status: 'pending',
    atMs: 1_000,
    seenMs: 1_000,
    amount: 7n,
  });
  // Each is a turn of the loop: a held loop would never release the lock.
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  other.exec('ROLLBACK');
  await reported;
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

test('a daemon goes on without books that are no file of SQLite, and books again once that file is moved away', async () => {
  const stage = new Stage(onTestFinished);
  const folder = await stage.folder();
  const books = join(folder, 'books.sqlite');
  await writeFile(books, 'x'.repeat(5_000));
  const config = join(folder, 'intentwatch.yaml');
  const sections = {
    upstream: { baseUrl: 'http://127.0.0.1:9', apiKey: 'key' },
    dataDir: folder,
    server: { host: '127.0.0.1', port: 0 },
    books: {},
    subscriptions: [{ name: 'orders', intents: [hashOf(1)] }],
  };
  await writeFile(config, stringify(sections));
  const daemon = await stage.daemon(config);
  await daemon.line(
    /books\.sqlite: file is not a database; expected a whole file of SQLite.*"msg":"books.failed"/,
  );
  await rename(books, `${books}.bad`);
  await daemon.line(/"msg":"books.recovered"/);
  expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });
});

test('names the expected file where there is no readable one', async () => {
  const books = await BooksStage.open();
  later(() => books.discard());
  const database = openSqlite(`${books.file}.none`, { isReadOnly: true });
  await expect(database.read((sql) => sql.all('SELECT 1'))).rejects.toThrow(
    /unable to open database file; expected one that a daemon has made/,
  );
  await database.close();
});
