/** A value in a row: amounts are texts, times are numbers of ms. */
export type Value = string | number | null;

export type Row = { readonly [column: string]: Value };

/** SQL with `?` for its values, inside one transaction. */
export type Sql = {
  all(text: string, values?: readonly Value[]): Promise<Row[]>;
  /** Returns the number of written rows. */
  run(text: string, values?: readonly Value[]): Promise<number>;
};

/**
 * A database of the books. Both kinds run the same statements. `write` commits after the work, and stores nothing where that
 * throws; two of them never see each other's partial writes. `read` sees one state.
 */
export type Database = {
  kind: 'sqlite' | 'postgres';
  write<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  read<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  close(): Promise<void>;
};

/** The error for an unusable database of the books; the message has the reason, and never the URL. */
export class BooksDatabaseError extends Error {
  override readonly name = 'BooksDatabaseError';
  /** True when another try may succeed. */
  readonly retryable: boolean;

  constructor(message: string, options: { cause?: unknown; retryable: boolean }) {
    super(message, { cause: options.cause });
    this.retryable = options.retryable;
  }
}

/** Version of the tables. Those of versions 1 to 6 were of clones from before the first release. */
const TABLES_VERSION = 7;

/**
 * The statements that make the tables, for both databases. `{id}` is a column that counts up. Amounts are texts: no number type
 * of both holds 78 digits. Times are ms since 1970.
 */
const TABLES: readonly string[] = [
  // One row per name: the place of the feed.
  'CREATE TABLE books_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)',
  // One row per transfer: its current state. `lines` is the sum of its postings.
  `CREATE TABLE books_transfers (subject TEXT PRIMARY KEY, epoch BIGINT NOT NULL, sequence BIGINT NOT NULL,
     is_open INTEGER NOT NULL, booked_ms BIGINT NOT NULL, state TEXT NOT NULL)`,
  // For pages of transfers, each of which continues after the last subject of the one before.
  'CREATE INDEX books_transfers_touched ON books_transfers (is_open, booked_ms, subject)',
  // One row per removed transfer: a later report does not book it anew.
  'CREATE TABLE books_expired (subject TEXT PRIMARY KEY, at_ms BIGINT NOT NULL)',
  'CREATE INDEX books_expired_at ON books_expired (at_ms)',
  // One row per event of a transfer, never changed. `state` is the state after it.
  `CREATE TABLE books_events (event_id TEXT PRIMARY KEY, subject TEXT NOT NULL, epoch BIGINT NOT NULL,
     sequence BIGINT NOT NULL, type TEXT NOT NULL, at_ms BIGINT NOT NULL, booked_ms BIGINT NOT NULL,
     entry TEXT NOT NULL, state TEXT NOT NULL)`,
  'CREATE INDEX books_events_subject ON books_events (subject, booked_ms)',
  'CREATE INDEX books_events_booked ON books_events (booked_ms)',
  // One row per amount on a side, never changed: a wrong one is followed by its correction.
  `CREATE TABLE books_postings ({id}, event_id TEXT NOT NULL, subject TEXT NOT NULL, side TEXT NOT NULL,
     chain_id TEXT NOT NULL, token TEXT NOT NULL, count INTEGER NOT NULL, amount TEXT NOT NULL,
     booked_ms BIGINT NOT NULL, happened_ms BIGINT NOT NULL, is_late INTEGER NOT NULL, is_correction INTEGER NOT NULL)`,
  'CREATE INDEX books_postings_booked ON books_postings (booked_ms)',
  'CREATE INDEX books_postings_subject ON books_postings (subject)',
  // One row per event and receiver that it is meant for. `check_ms` is the time of its next check; null: never again.
  `CREATE TABLE books_deliveries (event_id TEXT NOT NULL, receiver TEXT NOT NULL, state TEXT NOT NULL,
     delivered_ms BIGINT, event_ms BIGINT NOT NULL, check_ms BIGINT, PRIMARY KEY (event_id, receiver))`,
  'CREATE INDEX books_deliveries_check ON books_deliveries (check_ms)',
  // One row per time at which a day was closed, also where nothing was open then. `rules` for its exceptions are JSON.
  'CREATE TABLE books_closed_days (at_ms BIGINT PRIMARY KEY, rules TEXT NOT NULL)',
  // The sums of open transfers when a day was closed, per source token.
  `CREATE TABLE books_closings (at_ms BIGINT NOT NULL, chain_id TEXT NOT NULL, token TEXT NOT NULL,
     count INTEGER NOT NULL, amount TEXT NOT NULL, PRIMARY KEY (at_ms, chain_id, token))`,
  // The breaks between the log and the books.
  'CREATE TABLE books_breaks ({id}, at_ms BIGINT NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL)',
  'CREATE TABLE books_tokens (chain_id TEXT NOT NULL, token TEXT NOT NULL, symbol TEXT NOT NULL, decimals INTEGER NOT NULL, PRIMARY KEY (chain_id, token))',
  // One row per day: `sending`, `sent` or `skipped`.
  'CREATE TABLE books_mails (day TEXT NOT NULL, zone TEXT NOT NULL, state TEXT NOT NULL, at_ms BIGINT NOT NULL, PRIMARY KEY (day, zone))',
  // One row per mail and recipient with an answer: `accepted`, `refused` for now since `at_ms`, or `dead`.
  `CREATE TABLE books_mail_recipients (day TEXT NOT NULL, zone TEXT NOT NULL, recipient TEXT NOT NULL,
     state TEXT NOT NULL, at_ms BIGINT NOT NULL, PRIMARY KEY (day, zone, recipient))`,
];

const IDS = {
  sqlite: 'id INTEGER PRIMARY KEY AUTOINCREMENT',
  postgres: 'id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
};

/** Two processes that start at once would both find the tables missing. */
const LOCK = "SELECT 1 AS locked FROM (SELECT pg_advisory_xact_lock(hashtext('intentwatch_books'))) AS held";

/** Makes the tables where there are none. Throws a BooksDatabaseError for those of another version. */
export async function prepareTables(database: Database): Promise<void> {
  await database.write(async (sql) => {
    if (database.kind === 'postgres') await sql.all(LOCK);
    await sql.run('CREATE TABLE IF NOT EXISTS books_version (version INTEGER NOT NULL)');
    const version = await versionOf(sql);
    if (version !== 0) return checkVersion(version);
    for (const statement of TABLES) await sql.run(statement.replace('{id}', IDS[database.kind]));
    await sql.run('INSERT INTO books_version (version) VALUES (?)', [TABLES_VERSION]);
  });
}

/** Throws a BooksDatabaseError where the tables are not of our version: for readers. */
export async function checkTables(database: Database): Promise<void> {
  const version = await database.read(versionOf).catch((error: unknown) => {
    // A Postgres that does not answer proves nothing about its tables.
    if (isMissingTable(error)) return 0;
    throw error;
  });
  if (version !== 0) return checkVersion(version);
  throw new BooksDatabaseError('found no books: start the daemon once, which makes them', {
    retryable: true,
  });
}

const UNDEFINED_TABLE = '42P01';

function isMissingTable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { cause } = error;
  if (!(cause instanceof Error)) return false;
  return ('code' in cause && cause.code === UNDEFINED_TABLE) || cause.message.startsWith('no such table');
}

async function versionOf(sql: Sql): Promise<number> {
  const [row] = await sql.all('SELECT version FROM books_version');
  return Number(row?.version ?? 0);
}

function checkVersion(version: number): void {
  if (version === TABLES_VERSION) return;
  const reason =
    version > TABLES_VERSION
      ? 'a newer version wrote them, use that one'
      : 'a clone from before 0.1.0 wrote them, and this version does not read them; set another books.url, or move books.sqlite away';
  throw new BooksDatabaseError(`found books of version ${version}, expected ${TABLES_VERSION}: ${reason}`, {
    retryable: false,
  });
}
