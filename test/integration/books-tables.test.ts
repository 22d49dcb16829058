import { describe, expect, test } from 'vitest';
import { type Database, prepareTables } from '../../src/books/sql/database.ts';
import { openPostgres } from '../../src/books/sql/postgres.ts';
import { Secret } from '../../src/secret.ts';
import { BooksStage, DAY_MS, FIRST_MS } from '../support/books-stage.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { PostgresProcess } from '../support/postgres-process.ts';

const OPTIONAL = needs(PARTS.postgres);

const { later } = opening();

async function refuses(database: Database | null, version: number, because: string): Promise<void> {
  const books = await BooksStage.open(database);
  later(() => books.discard());
  await books.ingest({ transfer: 1, amount: 5n, sequence: 1, status: 'pending', atMs: 1_000, seenMs: 1_000 });
  await books.database.write((sql) => sql.run('UPDATE books_version SET version = ?', [version]));
  const refused = { name: 'BooksDatabaseError', retryable: false, message: expect.stringContaining(because) };
  await expect(prepareTables(books.database)).rejects.toMatchObject(refused);
  await expect(books.reader().report({ day: '2026-11-22' }, FIRST_MS + DAY_MS)).rejects.toMatchObject(
    refused,
  );
  const rows = await books.database.read((sql) => sql.all('SELECT count(*) AS count FROM books_events'));
  expect(rows).toEqual([{ count: 1 }]);
}

describe('tables of another version are refused, and not changed', () => {
  test.each([
    [6, 'found books of version 6, expected 7: a clone from before 0.1.0 wrote them'],
    [8, 'found books of version 8, expected 7: a newer version wrote them'],
  ])('%i', async (version, because) => {
    await refuses(null, version, because);
  });

  test.skipIf(OPTIONAL.skip)(`in a Postgres${OPTIONAL.note}`, async () => {
    const postgres = await PostgresProcess.start();
    later(() => postgres.close());
    const database = openPostgres(new Secret(postgres.url), { hasTls: false });
    await refuses(database, 6, 'found books of version 6, expected 7: a clone from before 0.1.0 wrote them');
  });
});
