/** A value in a row: amounts are texts, moments are numbers of ms. */
export type Value = string | number | null;

export type Row = { readonly [column: string]: Value };

/** SQL with `?` for its values, inside one transaction. */
export type Sql = {
  all(text: string, values?: readonly Value[]): Promise<Row[]>;
  /** Returns how many rows were written. */
  run(text: string, values?: readonly Value[]): Promise<number>;
};

/**
 * A database of the books. Both kinds run the same statements. `write` commits when the work has ended well, and stores
 * nothing where it throws; two of them never see each other's halves. `read` sees one moment.
 */
export type Database = {
  kind: 'sqlite' | 'postgres';
  write<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  read<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  close(): Promise<void>;
};

/** A database of the books that cannot be used; the message says why, and never the URL. */
export class BooksDatabaseError extends Error {
  override readonly name = 'BooksDatabaseError';
  /** True when another try may succeed. */
  readonly retryable: boolean;

  constructor(message: string, options: { cause?: unknown; retryable: boolean }) {
    super(message, { cause: options.cause });
    this.retryable = options.retryable;
  }
}
