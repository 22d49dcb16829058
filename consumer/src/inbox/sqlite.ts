import type { AnyEvent } from '../event.ts';
import { type Claim, DEFAULT_CONSUMER, DEFAULT_PRUNE_MS, type Inbox, PRUNE_BATCH } from './inbox.ts';
import { SQLITE_TABLES } from './schema.ts';

/** What is needed of a database of `node:sqlite` or `better-sqlite3`. */
export type SqliteDatabase = {
  exec(sql: string): unknown;
  prepare(sql: string): {
    run(...values: (string | number)[]): { changes: number | bigint };
    get(...values: (string | number)[]): unknown;
  };
};

/** The database that holds the inbox and what handlers write. */
export type SqliteInboxOptions<Database extends SqliteDatabase> = {
  /**
   * A connection for the consumer alone: what other parts of the program wrote through it while a handler waits would
   * belong to the handler's transaction.
   */
  database: Database;
  /** Whose events these are, where several programs share the database. Default: `default`. */
  consumer?: string;
};

/** The end of the last transaction of each connection, which several inboxes may share. */
const LAST = new WeakMap<SqliteDatabase, Promise<unknown>>();

/**
 * Keeps in SQLite which events were handled. Events are handled one after another. Another process that writes is waited
 * for as long as the connection's busy timeout says; then the webhook fails, and comes again.
 */
export function createSqliteInbox<Database extends SqliteDatabase>({
  database,
  consumer = DEFAULT_CONSUMER,
}: SqliteInboxOptions<Database>): Inbox<Database> {
  /** One transaction at a time: they share a connection. */
  const transaction = <T>(work: () => T | Promise<T>): Promise<T> => {
    const run = async (): Promise<T> => {
      database.exec('BEGIN IMMEDIATE');
      try {
        const result = await work();
        database.exec('COMMIT');
        return result;
      } catch (error) {
        rollBack(database);
        throw error;
      }
    };
    const done = (LAST.get(database) ?? Promise.resolve()).then(run);
    LAST.set(
      database,
      done.catch(() => undefined),
    );
    return done;
  };
  return {
    run: (event, handle) =>
      transaction(async () => {
        const claim = claimEventInSqlite(database, event, { consumer });
        if (claim === null) return false;
        await handle(database, claim);
        return true;
      }),
    createTables: () => transaction(() => void database.exec(SQLITE_TABLES)),
    async prune({ olderThanMs = DEFAULT_PRUNE_MS } = {}) {
      const before = Date.now() - olderThanMs;
      const removeFrom = async (table: string, key: string): Promise<number> => {
        const sql = `DELETE FROM ${table} WHERE consumer = ? AND ${key} IN
          (SELECT ${key} FROM ${table} WHERE consumer = ? AND handled_at < ? LIMIT ${PRUNE_BATCH})`;
        let removed = 0;
        for (let batch = PRUNE_BATCH; batch === PRUNE_BATCH; removed += batch) {
          batch = await transaction(() =>
            Number(database.prepare(sql).run(consumer, consumer, before).changes),
          );
        }
        return removed;
      };
      await removeFrom('intentwatch_subjects', 'subject');
      return removeFrom('intentwatch_inbox', 'event_id');
    },
  };
}

/**
 * Takes an event within a transaction of the caller's own, which has to be one that may write (`BEGIN IMMEDIATE`). Null
 * where the event was handled before.
 */
export function claimEventInSqlite(
  database: SqliteDatabase,
  event: AnyEvent,
  { consumer = DEFAULT_CONSUMER }: { consumer?: string } = {},
): Claim | null {
  const { subject, sequence } = event.data;
  const [occurredMs, nowMs] = [Date.parse(event.timestamp), Date.now()];
  const taken = database
    .prepare('INSERT OR IGNORE INTO intentwatch_inbox (consumer, event_id, handled_at) VALUES (?, ?, ?)')
    .run(consumer, event.id, nowMs);
  if (Number(taken.changes) === 0) return null;

  // After a Redis was lost, sequences begin anew, with later times: such an event is not stale.
  const row = database
    .prepare(
      `SELECT sequence, (sequence > ? AND occurred_at >= ?) AS stale FROM intentwatch_subjects
         WHERE consumer = ? AND subject = ?`,
    )
    .get(sequence, occurredMs, consumer, subject.id);
  const { lastSequence, isStale } = claimOf(row);
  if (!isStale) {
    database
      .prepare(
        `INSERT OR REPLACE INTO intentwatch_subjects (consumer, subject, sequence, occurred_at, handled_at)
           VALUES (?, ?, ?, ?, ?)`,
      )
      .run(consumer, subject.id, sequence, occurredMs, nowMs);
  }
  return { lastSequence, isStale };
}

function claimOf(row: unknown): Claim {
  if (typeof row !== 'object' || row === null || !('sequence' in row) || !('stale' in row))
    return { lastSequence: null, isStale: false };
  return { lastSequence: Number(row.sequence), isStale: Number(row.stale) === 1 };
}

/** SQLite itself rolls some errors back: then there is nothing left to do. */
function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('ROLLBACK');
  } catch {
    return;
  }
}
