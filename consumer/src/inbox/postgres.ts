import type { AnyEvent } from '../event.ts';
import { type Claim, DEFAULT_CONSUMER, DEFAULT_PRUNE_MS, type Inbox, PRUNE_BATCH } from './inbox.ts';
import { judgeEvent } from './newest.ts';
import { POSTGRES_TABLES } from './schema.ts';

/** Required members of a client of `pg`, or of another one that runs SQL with `$1` for its values. */
export type PostgresClient = {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
};

/** Required members of a result. */
export type PostgresResult = {
  rows: readonly { readonly [column: string]: unknown }[];
  rowCount: number | null;
  command?: string;
};

/** Required members of a pool of `pg`. */
export type PostgresPool<Client extends PostgresClient> = {
  connect(): Promise<Client & PooledClient>;
};

type PooledClient = {
  release(error?: Error | boolean): void;
  on?(event: 'error', listener: () => void): unknown;
  off?(event: 'error', listener: () => void): unknown;
};

/**
 * Source of the transactions: a pool of `pg`, or a function that runs work in a transaction, for other clients and their
 * wrappers. The function commits when the work has succeeded and rolls back when it has failed.
 */
export type PostgresInboxOptions<Client extends PostgresClient> = {
  /** Owner of these events, where several programs share the database. Default: `default`. */
  consumer?: string;
} & (
  | { pool: PostgresPool<Client> }
  | { transaction: (work: (client: Client) => Promise<void>) => Promise<void> }
);

/** Stores handled events in Postgres. It works at every isolation level. */
export function createPostgresInbox<Client extends PostgresClient>(
  options: PostgresInboxOptions<Client>,
): Inbox<Client> {
  const { consumer = DEFAULT_CONSUMER } = options;
  const transaction = 'pool' in options ? transactionsOf(options.pool) : options.transaction;
  return {
    async run(event, handle) {
      let isNew = false;
      await transaction(async (client) => {
        const claim = await claimEvent(client, event, { consumer });
        isNew = claim !== null;
        if (claim === null) return;
        await handle(client, claim);
        // Fails where the handler caught a statement's error: such a transaction stores nothing, and COMMIT does not report
        // it.
        await client.query('SELECT 1');
      });
      return isNew;
    },
    async createTables() {
      await transaction(async (client) => {
        // Two programs that start at once would both find the tables missing.
        await client.query(`SELECT pg_advisory_xact_lock(hashtext('intentwatch_inbox'))`);
        for (const statement of POSTGRES_TABLES.split(';\n')) {
          if (statement.trim() !== '') await client.query(statement);
        }
      });
    },
    async prune({ olderThanMs = DEFAULT_PRUNE_MS } = {}) {
      const old = 'consumer = $1 AND handled_at < now() - make_interval(secs => $2)';
      const removeFrom = async (table: string, key: string): Promise<number> => {
        let removed = 0;
        for (let last = PRUNE_BATCH; last === PRUNE_BATCH; removed += last) {
          await transaction(async (client) => {
            // Checked for the row again: it may have been handled again while this waited for it.
            const { rowCount } = await client.query(
              `DELETE FROM ${table} WHERE ${old} AND ${key} IN
                 (SELECT ${key} FROM ${table} WHERE ${old} LIMIT ${PRUNE_BATCH})`,
              [consumer, olderThanMs / 1_000],
            );
            last = rowCount ?? 0;
          });
        }
        return removed;
      };
      await removeFrom('intentwatch_facts', 'subject');
      return removeFrom('intentwatch_inbox', 'event_id');
    },
  };
}

/**
 * Claims an event within a transaction of the caller's own: all its writes are stored together with the event's id.
 * Null where the event was handled before: then the transaction may be rolled back.
 *
 * The same event in another transaction waits at the unique key until this one ends: after a commit it finds the event
 * handled, after a rollback it claims it. Other events of the subject wait at its row.
 */
export async function claimEvent(
  client: PostgresClient,
  event: AnyEvent,
  { consumer = DEFAULT_CONSUMER }: { consumer?: string } = {},
): Promise<Claim | null> {
  const { rowCount } = await client.query(
    'INSERT INTO intentwatch_inbox (consumer, event_id) VALUES ($1, $2) ON CONFLICT DO NOTHING',
    [consumer, event.id],
  );
  if (rowCount === 0) return null;

  const { id } = event.data.subject;
  const { claim, stored } = judgeEvent(event, null);
  const first = await client.query(
    'INSERT INTO intentwatch_facts (consumer, subject, newest) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
    [consumer, id, stored],
  );
  if (first.rowCount !== 0) return claim;

  const { rows } = await client.query(
    'SELECT newest FROM intentwatch_facts WHERE consumer = $1 AND subject = $2 FOR UPDATE',
    [consumer, id],
  );
  const [row] = rows;
  if (row === undefined) throw new Error(`the row of ${id} was pruned now; expected it to stay`);
  const judged = judgeEvent(event, String(row.newest));
  await client.query(
    'UPDATE intentwatch_facts SET newest = $3, handled_at = now() WHERE consumer = $1 AND subject = $2',
    [consumer, id, judged.stored],
  );
  return judged.claim;
}

function transactionsOf<Client extends PostgresClient>(pool: PostgresPool<Client>) {
  return async (work: (client: Client) => Promise<void>): Promise<void> => {
    const client = await pool.connect();
    // A client whose connection fails also emits an event, which would end the program.
    const listener = (): void => undefined;
    client.on?.('error', listener);
    let broken: Error | undefined;
    try {
      await client.query('BEGIN');
      await work(client);
      await client.query('COMMIT');
    } catch (error) {
      broken = await rollBack(client);
      throw error;
    } finally {
      client.off?.('error', listener);
      client.release(broken);
    }
  };
}

/** Rolls back; returns the error of a failed rollback: then its connection is unusable. */
async function rollBack(client: PostgresClient): Promise<Error | undefined> {
  try {
    await client.query('ROLLBACK');
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
