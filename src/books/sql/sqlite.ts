import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { BooksDatabaseError, type Database, type Row, type Sql, type Value } from './database.ts';

const ROWS = z.array(z.record(z.string(), z.union([z.string(), z.number(), z.null()])));

/** How long a transaction waits for another process to let go of the file, and between two tries. */
const BUSY_MS = 5_000;
const TRY_AGAIN_MS = 50;

/** How many statements are kept prepared. */
const MOST_PREPARED = 100;

/**
 * Opens a file of SQLite, which is made where there is none. A reader sees a moment of its own beside the writer (WAL).
 * With `isReadOnly` nothing is written and the file must be there.
 */
export function openSqlite(file: string, { isReadOnly = false } = {}): Database {
  const writer = isReadOnly ? null : open(file, false);
  const reader = open(file, true);
  const [writing, reading] = [queueOf(writer ?? reader, file), queueOf(reader, file)];
  return {
    kind: 'sqlite',
    write: (work) => writing('BEGIN IMMEDIATE', work),
    // What is read first finds out whether the file can be read now.
    read: (work) => reading('BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1', work),
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
    const database = new sqlite.DatabaseSync(file, { readOnly, timeout: BUSY_MS });
    if (!readOnly) database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    // From now on a wait would hold up all that the process does: it is made outside of SQLite.
    database.exec('PRAGMA busy_timeout = 0');
    return database;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new BooksDatabaseError(`the books cannot be opened at ${file}: ${reason}`, {
      cause: error,
      retryable: isPassing(error),
    });
  }
}

/** Transactions of one connection, one after another. */
function queueOf(
  database: DatabaseSync,
  file: string,
): <T>(begin: string, work: (sql: Sql) => Promise<T>) => Promise<T> {
  const sql = sqlOf(database);
  let last: Promise<unknown> = Promise.resolve();
  const inTransaction = async <T>(begin: string, work: (sql: Sql) => Promise<T>): Promise<T> => {
    try {
      await beginOn(database, begin);
      const result = await work(sql);
      database.exec('COMMIT');
      return result;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      if (codeOf(error) === null) throw error;
      throw new BooksDatabaseError(`the books at ${file}: ${error instanceof Error ? error.message : ''}`, {
        cause: error,
        retryable: isPassing(error),
      });
    }
  };
  return (begin, work) => {
    const run = last.then(() => inTransaction(begin, work));
    last = run.catch(() => undefined);
    return run;
  };
}

/** Begins a transaction once no other process has the file to itself; others are served meanwhile. */
async function beginOn(database: DatabaseSync, begin: string): Promise<void> {
  const untilMs = performance.now() + BUSY_MS;
  for (;;) {
    try {
      database.exec(begin);
      return;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      if (codeOf(error) !== BUSY || performance.now() > untilMs) throw error;
    }
    await sleep(TRY_AGAIN_MS);
  }
}

const BUSY = 5;

/** What another process, or room on the disk, may mend: busy, locked, full. */
const PASSING: ReadonlySet<number | null> = new Set([BUSY, 6, 13]);

function isPassing(error: unknown): boolean {
  return PASSING.has(codeOf(error));
}

/** The primary code of an error of SQLite; null for any other. */
function codeOf(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error)) return null;
  return typeof error.errcode === 'number' ? error.errcode & 0xff : null;
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
