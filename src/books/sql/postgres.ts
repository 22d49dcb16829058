import type pg from 'pg';
import { z } from 'zod';
import { BoundedMap, bytesOfTexts, CACHES } from '../../domain/caches.ts';
import { LIMITS } from '../../domain/limits.ts';
import { limitAnswers } from '../../notifiers/postgres/connection.ts';
import type { Secret } from '../../secret.ts';
import { BooksDatabaseError, type Database, type Row, type Sql } from './database.ts';

const ROWS = z.array(z.record(z.string(), z.union([z.string(), z.number(), z.null()])));

/** Few connections: one feeds, the others answer requests. */
const MOST_CONNECTIONS = 4;
const CONNECT_MS = 5_000;

/** Limit of a statement, and of a transaction whose process has abandoned its connection. */
const STATEMENT_MS = 1_000 * LIMITS.booksAnswer.seconds;

const MOST_CHARACTERS = 300;

/** Codes of Postgres (class 08, 53, 57, 40) and of the network that a retry may fix. */
const PASSING = /^(08|53|57|40|E[A-Z]+)/;

/** Opens the books in a Postgres. Connects at the first request; with TLS, the certificate must match the host. */
export function openPostgres(url: Secret, { hasTls }: { hasTls: boolean }): Database {
  let opened: Promise<pg.Pool> | null = null;
  const poolOf = (): Promise<pg.Pool> => {
    opened ??= makePool(url, hasTls);
    return opened;
  };
  const inTransaction = async <T>(begin: string, work: (sql: Sql) => Promise<T>): Promise<T> => {
    const pool = await poolOf();
    const client = await pool.connect().catch((error: unknown) => {
      throw wrapped(error);
    });
    // A connection that is cut during the work fails its next statement; without a listener it would end the process.
    const ignore = (): void => undefined;
    client.on('error', ignore);
    let failure: Error | null = null;
    try {
      await client.query(begin);
      const result = await work(sqlOf(client));
      await client.query('COMMIT');
      return result;
    } catch (error) {
      failure = wrapped(error);
      await client.query('ROLLBACK').catch(ignore);
      throw failure;
    } finally {
      client.off('error', ignore);
      // A failed connection is not used again: its state is not known.
      client.release(failure !== null);
    }
  };
  return {
    kind: 'postgres',
    write: (work) => inTransaction('BEGIN', work),
    read: (work) => inTransaction('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', work),
    close: async () => {
      await (await opened)?.end();
    },
  };
}

/** Loads the driver only where it is used. */
async function makePool(url: Secret, hasTls: boolean): Promise<pg.Pool> {
  const { Client, Pool, types } = (await import('pg')).default;
  class LimitedClient extends Client {
    constructor(config?: string | pg.ClientConfig) {
      super(config);
      limitAnswers(this, LIMITS.booksAnswer.bytes);
    }
  }
  const getTypeParser: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : types.getTypeParser(oid, format);
  const pool = new Pool({
    // The options for certificates in the URL are added to it.
    ssl: hasTls,
    connectionString: verifying(url.reveal()),
    max: MOST_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    query_timeout: STATEMENT_MS + CONNECT_MS,
    idle_in_transaction_session_timeout: STATEMENT_MS,
    application_name: 'intentwatch-books',
    types: { getTypeParser },
    Client: LimitedClient,
  });
  // A connection that is cut while it is idle is made anew.
  pool.on('error', () => undefined);
  return pool;
}

/** The driver reads these modes as `verify-full` too, but warns that a later one will check less. */
function verifying(url: string): string {
  return url.replace(/([?&]sslmode=)(require|verify-ca)(?=&|$)/, '$1verify-full');
}

function sqlOf(client: pg.PoolClient): Sql {
  return {
    all: async (text, values = []): Promise<Row[]> =>
      ROWS.parse((await client.query(numbered(text), [...values])).rows),
    run: async (text, values = []) => (await client.query(numbered(text), [...values])).rowCount ?? 0,
  };
}

const NUMBERED = new BoundedMap<string, string>({ ...CACHES.statements, bytesOf: bytesOfTexts });

/** Replaces `?` by the numbers of Postgres. No statement of the books has one in a text. */
function numbered(text: string): string {
  const cached = NUMBERED.get(text);
  if (cached !== undefined) return cached;
  let count = 0;
  const made = text.replaceAll('?', () => {
    count += 1;
    return `$${count}`;
  });
  NUMBERED.set(text, made);
  return made;
}

/** Type of times (bigint) and counts, which are read as numbers: none is too large for that. */
const INT8 = 20;
/** Wraps an error without the URL: the messages of the driver name host and database at most. */
function wrapped(error: unknown): Error {
  if (!(error instanceof Error)) return new BooksDatabaseError(String(error), { retryable: true });
  const message = error.message.slice(0, MOST_CHARACTERS);
  if (!('code' in error) && !isCut(message)) return error;
  const code = 'code' in error ? String(error.code) : '';
  const retryable = code === '' || PASSING.test(code);
  return new BooksDatabaseError(`the Postgres of the books: ${message || code}`, {
    cause: error,
    retryable,
  });
}

/** The driver gives no code to an error that ends a connection. */
function isCut(message: string): boolean {
  return /connection|timeout|terminat/i.test(message);
}
