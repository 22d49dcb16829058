import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { z } from 'zod';
import { BooksDatabaseError, type Database, type Row, type Sql, type Value } from './database.ts';

const ROWS = z.array(z.record(z.string(), z.union([z.string(), z.number(), z.null()])));

/** How long a writer waits for another process. */
const BUSY_MS = 5_000;

/** How many statements are kept prepared. */
const MOST_PREPARED = 100;

/**
 * Opens a file of SQLite, which is made where there is none. A reader sees a moment of its own beside the writer (WAL).
 * With `isReadOnly` nothing is written and the file must be there.
 */
export function openSqlite(file: string, { isReadOnly = false } = {}): Database {
  const writer = isReadOnly ? null : open(file, false);
  writer?.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  const reader = open(file, true);
  const [writing, reading] = [queueOf(writer ?? reader), queueOf(reader)];
  return {
    kind: 'sqlite',
    write: (work) => writing('BEGIN IMMEDIATE', work),
    read: (work) => reading('BEGIN', work),
    close: async () => {
      reader.close();
      writer?.close();
    },
  };
}

function open(file: string, readOnly: boolean): DatabaseSync {
  try {
    // Loaded where it is used: Node 24 warns of it.
    const sqlite = process.getBuiltinModule('node:sqlite');
    return new sqlite.DatabaseSync(file, { readOnly, timeout: BUSY_MS });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new BooksDatabaseError(`the books cannot be opened at ${file}: ${reason}`, {
      cause: error,
      retryable: false,
    });
  }
}

/** Transactions of one connection, one after another. */
function queueOf(database: DatabaseSync): <T>(begin: string, work: (sql: Sql) => Promise<T>) => Promise<T> {
  const sql = sqlOf(database);
  let last: Promise<unknown> = Promise.resolve();
  return (begin, work) => {
    const run = last.then(async () => {
      database.exec(begin);
      try {
        const result = await work(sql);
        database.exec('COMMIT');
        return result;
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK');
        throw error;
      }
    });
    last = run.catch(() => undefined);
    return run;
  };
}

function sqlOf(database: DatabaseSync): Sql {
  const prepared = new Map<string, ReturnType<DatabaseSync['prepare']>>();
  const statementOf = (text: string): ReturnType<DatabaseSync['prepare']> => {
    const known = prepared.get(text);
    if (known !== undefined) return known;
    if (prepared.size >= MOST_PREPARED) prepared.clear();
    const statement = database.prepare(text);
    prepared.set(text, statement);
    return statement;
  };
  const valuesOf = (values: readonly Value[] = []): SQLInputValue[] => [...values];
  return {
    all: async (text, values): Promise<Row[]> => ROWS.parse(statementOf(text).all(...valuesOf(values))),
    run: async (text, values) => Number(statementOf(text).run(...valuesOf(values)).changes),
  };
}
