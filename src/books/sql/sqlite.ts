import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { makePrivateFile } from '../../files.ts';
import { BooksDatabaseError, type Database, type Row, type Sql, type Value } from './database.ts';

const ROWS = z.array(z.record(z.string(), z.union([z.string(), z.number(), z.null()])));

/** Longest wait of a transaction for another process to release the file, and the wait between two tries. */
const BUSY_MS = 5_000;
const TRY_AGAIN_MS = 50;

const MOST_PREPARED = 100;

/**
 * Opens the books in a SQLite file, which is made where there is none. A reader sees its own state beside the writer (WAL).
 * With `isReadOnly` nothing is written and the file must exist. It is opened at the first request, and again after that has
 * failed: an unusable file fails the request.
 */
export function openSqlite(file: string, { isReadOnly = false } = {}): Database {
  const writer = isReadOnly ? null : new SqliteConnection(file, false);
  const reader = new SqliteConnection(file, true);
  return {
    kind: 'sqlite',
    write: (work) => (writer ?? reader).run('BEGIN IMMEDIATE', work),
    read: async (work) => {
      // A mere reader makes no file.
      await writer?.open();
      // The first read shows whether the file can be read now.
      return reader.run('BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1', work);
    },
    close: async () => {
      reader.close();
      writer?.close();
    },
  };
}

function open(file: string, readOnly: boolean): DatabaseSync {
  // Loaded where it is used: Node 24 warns about it.
  const sqlite = process.getBuiltinModule('node:sqlite');
  // The two files that SQLite has beside it get its mode.
  if (!readOnly) makeWherePossible(file);
  // A wait inside SQLite would block the process: it is made outside.
  const database = new sqlite.DatabaseSync(file, { readOnly, timeout: 0 });
  try {
    if (!readOnly) database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** SQLite reports the error of a file that cannot be made. */
function makeWherePossible(file: string): void {
  try {
    makePrivateFile(file);
  } catch {
    return;
  }
}

class SqliteConnection {
  readonly #file: string;
  readonly #readOnly: boolean;
  #opened: { database: DatabaseSync; sql: Sql } | null = null;
  #isClosed = false;
  #last: Promise<unknown> = Promise.resolve();

  constructor(file: string, readOnly: boolean) {
    this.#file = file;
    this.#readOnly = readOnly;
  }

  /** Throws a BooksDatabaseError. */
  async open(): Promise<{ database: DatabaseSync; sql: Sql }> {
    try {
      return await untilFree(() => {
        if (this.#isClosed) throw new BooksDatabaseError('the books are closed', { retryable: true });
        if (this.#opened !== null) return this.#opened;
        const database = open(this.#file, this.#readOnly);
        this.#opened = { database, sql: sqlOf(database) };
        return this.#opened;
      });
    } catch (error) {
      throw this.#described(error);
    }
  }

  /** Runs a transaction after those before it. An error of SQLite is thrown as a BooksDatabaseError. */
  run<T>(begin: string, work: (sql: Sql) => Promise<T>): Promise<T> {
    const run = this.#last.then(() => this.#inTransaction(begin, work));
    this.#last = run.catch(() => undefined);
    return run;
  }

  async #inTransaction<T>(begin: string, work: (sql: Sql) => Promise<T>): Promise<T> {
    const { database, sql } = await this.open();
    try {
      await untilFree(() => {
        try {
          database.exec(begin);
        } catch (error) {
          if (database.isTransaction) database.exec('ROLLBACK');
          throw error;
        }
      });
      const result = await work(sql);
      database.exec('COMMIT');
      return result;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      throw this.#described(error);
    }
  }

  /** Translates an error of SQLite for a person; returns any other unchanged. */
  #described(error: unknown): unknown {
    const code = codeOf(error);
    if (code === null) return error;
    const reason = error instanceof Error ? error.message : '';
    const expected = EXPECTED.get(code);
    return new BooksDatabaseError(
      `the books at ${this.#file}: ${reason}${expected === undefined ? '' : `; expected ${expected}`}`,
      { cause: error, retryable: PASSING.has(code) },
    );
  }

  close(): void {
    this.#isClosed = true;
    this.#opened?.database.close();
  }
}

/** Retries while another process has the file locked; other work runs meanwhile. */
async function untilFree<T>(attempt: () => T): Promise<T> {
  const untilMs = performance.now() + BUSY_MS;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (codeOf(error) !== BUSY || performance.now() > untilMs) throw error;
    }
    await sleep(TRY_AGAIN_MS);
  }
}

const BUSY = 5;

/** Codes that another process, or free disk space, may fix: busy, locked, full. */
const PASSING: ReadonlySet<number> = new Set([BUSY, 6, 13]);

const FOLDER =
  'one that a daemon has made, in a folder that this user may write to: SQLite writes two files beside it';
const WHOLE = 'a whole file of SQLite: bring back a copy, or move it away and the books begin anew';

/** The expected state, by the code of SQLite: the file is damaged, cannot be opened, or is not of SQLite. */
const EXPECTED: ReadonlyMap<number, string> = new Map([
  [11, WHOLE],
  [14, FOLDER],
  [26, WHOLE],
]);

/** Returns the primary code of an error of SQLite; null for any other. */
function codeOf(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error)) return null;
  return typeof error.errcode === 'number' ? error.errcode & 0xff : null;
}

function sqlOf(database: DatabaseSync): Sql {
  const prepared = new Map<string, ReturnType<DatabaseSync['prepare']>>();
  const statementOf = (text: string): ReturnType<DatabaseSync['prepare']> => {
    const cached = prepared.get(text);
    if (cached !== undefined) return cached;
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
