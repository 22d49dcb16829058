import { openBooks } from '../../books/books.ts';
import type { Database } from '../../books/sql/database.ts';
import { prepareTables } from '../../books/sql/schema.ts';
import type { Config } from '../../config/config.ts';
import type { Check } from './finding.ts';

/** Ends a transaction without storing anything. */
class RolledBack extends Error {
  override readonly name = 'RolledBack';
}

/** True when the Postgres of the books could be used: its tables are made as at the start, and rolled back. */
export function booksChecks({ books, dataDir }: Config): Check[] {
  // A file needs nothing but its folder, which the check of the embedded Redis looks at.
  if (books === null || books.url === null) return [];
  return [
    {
      name: 'Postgres (books.url)',
      ask: async (signal) => {
        const database = openBooks(books, { dataDir });
        const close = () => void database.close();
        signal.addEventListener('abort', close, { once: true });
        try {
          await prepareTables(rolledBack(database));
          throw new Error('found what was rolled back stored, expected an end without');
        } catch (error) {
          if (!(error instanceof RolledBack)) throw error;
          return { ok: true, detail: 'takes the login, and has the tables of the books or could make them' };
        }
      },
    },
  ];
}

function rolledBack(database: Database): Database {
  return {
    ...database,
    write: (work) =>
      database.write(async (sql) => {
        await work(sql);
        throw new RolledBack();
      }),
  };
}
