import type { AnyEvent } from '../event.ts';
import { type Claim, DEFAULT_CONSUMER, DEFAULT_PRUNE_MS, type Inbox, PRUNE_BATCH } from './inbox.ts';
import { judgeEvent } from './newest.ts';
import { SQLITE_TABLES } from './schema.ts';

/** Required members of a `node:sqlite` or `better-sqlite3` database. */
export type SqliteDatabase = {
  exec(sql: string): unknown;
  prepare(sql: string): {
    run(...values: (string | number)[]): { changes: number | bigint };
    get(...values: (string | number)[]): unknown;
  };
};

/** The database of the inbox and of the handlers' writes. */
export type SqliteInboxOptions<Database extends SqliteDatabase> = {
  /** A connection for the consumer alone: other writes through it would belong to the handler's transaction. */
  database: Database;
  /** Owner of these events, where several programs share the database. Default: `default`. */
  consumer?: string;
};

/** End of the last transaction of each connection, which several inboxes may share. */
const LAST = new WeakMap<SqliteDatabase, Promise<unknown>>();

/**
 * Stores handled events in SQLite. Events are handled one after another. The inbox waits for another writing process for the
 * connection's busy timeout; then the webhook fails, and is sent again.
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
        await handle(guarded(database), claim);
        requireClaimed(database, event, { consumer });
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
      await removeFrom('intentwatch_facts', 'subject');
      return removeFrom('intentwatch_inbox', 'event_id');
    },
  };
}

/** Claims an event within the caller's transaction, begun with `BEGIN IMMEDIATE`. Null where it was handled before. */
export function claimEventInSqlite(
  database: SqliteDatabase,
  event: AnyEvent,
  { consumer = DEFAULT_CONSUMER }: { consumer?: string } = {},
): Claim | null {
  const nowMs = Date.now();
  const inserted = database
    .prepare('INSERT OR IGNORE INTO intentwatch_inbox (consumer, event_id, handled_at) VALUES (?, ?, ?)')
    .run(consumer, event.id, nowMs);
  if (Number(inserted.changes) === 0) return null;

  const { id } = event.data.subject;
  const row = database
    .prepare('SELECT newest FROM intentwatch_facts WHERE consumer = ? AND subject = ?')
    .get(consumer, id);
  const { claim, stored } = judgeEvent(event, newestOf(row));
  database
    .prepare(
      'INSERT OR REPLACE INTO intentwatch_facts (consumer, subject, newest, handled_at) VALUES (?, ?, ?, ?)',
    )
    .run(consumer, id, stored, nowMs);
  return claim;
}

function newestOf(row: unknown): string | null {
  return typeof row === 'object' && row !== null && 'newest' in row ? String(row.newest) : null;
}

const ENDED =
  'an error of SQLite has ended the transaction of this webhook, and what was written in it is gone; let that error end the handler';

/**
 * The database as a handler gets it. `ON CONFLICT ROLLBACK` and `RAISE(ROLLBACK)` end the transaction, and a handler that
 * catches such an error would go on outside it: each statement would be stored at once, and again when the webhook is sent
 * again. So every call first requires the transaction, also of statements that it prepares.
 */
function guarded<Database extends SqliteDatabase>(database: Database): Database {
  let hasEnded = false;
  const requireTransaction = (): void => {
    // Once ended, always ended: a transaction that the handler begins by itself does not hold the event's id.
    hasEnded ||= !isInTransaction(database);
    if (hasEnded) throw new Error(ENDED);
  };
  const guard = <T extends object>(target: T, wrap: (result: unknown) => unknown): T => {
    const proxy = new Proxy(target, {
      get(_target, key) {
        // Of the target: its own members work on no other object.
        const member: unknown = Reflect.get(target, key, target);
        if (typeof member !== 'function') return member;
        return (...values: unknown[]): unknown => {
          requireTransaction();
          const result: unknown = Reflect.apply(member, target, values);
          return result === target ? proxy : wrap(result);
        };
      },
      apply(_target, self, values) {
        requireTransaction();
        return typeof target === 'function' ? Reflect.apply(target, self, values) : undefined;
      },
    });
    return proxy;
  };
  const same = (result: unknown): unknown => result;
  return guard(database, (result) => {
    const isStatement = typeof result === 'object' && result !== null && 'run' in result;
    return isStatement || typeof result === 'function' ? guard(result, same) : result;
  });
}

/** True when a transaction is open, since none can begin within another. Clients have no common member for it. */
function isInTransaction(database: SqliteDatabase): boolean {
  try {
    database.exec('BEGIN');
  } catch {
    return true;
  }
  database.exec('ROLLBACK');
  return false;
}

/** Throws where the event is no longer claimed: then this is another transaction than that of its claim, or none. */
function requireClaimed(database: SqliteDatabase, event: AnyEvent, { consumer }: { consumer: string }): void {
  const sql = 'SELECT 1 AS claimed FROM intentwatch_inbox WHERE consumer = ? AND event_id = ?';
  if (database.prepare(sql).get(consumer, event.id) === undefined) throw new Error(ENDED);
}

/** Rolls back. SQLite itself rolls some errors back: then nothing remains to be done. */
function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('ROLLBACK');
  } catch {
    return;
  }
}
