import pg from 'pg';
import type { PostgresReceiver } from '../../config/config.ts';
import { describeConnectionError } from '../webhook/classify.ts';
import { DEFAULT_PORT } from './connection.ts';

/** Why an event could not be inserted, in words for a human, with Postgres' own code and what would help, or with its host. */
export function describePostgresError(
  error: unknown,
  { url, table }: Pick<PostgresReceiver, 'url' | 'table'>,
): string {
  if (!(error instanceof pg.DatabaseError)) {
    const words = describeConnectionError(error);
    const { hostname, port } = new URL(url.reveal());
    const placed = words.includes(hostname) ? words : `${words}: ${hostname}:${port || DEFAULT_PORT}`;
    return words.includes(NO_TLS) ? `${placed}; expected a server with TLS, or allowInsecure: true` : placed;
  }
  const words = `${error.message} (${error.code ?? 'without a code'})`;
  const advice = error.message.includes(NOT_ENCRYPTED)
    ? 'expected a connection with TLS: without allowInsecure'
    : adviceFor(error.code, table);
  return advice === null ? words : `${words}; ${advice}`;
}

/** How the client names a server that speaks no TLS. */
const NO_TLS = 'does not support SSL';

/** How Postgres names a connection without TLS that it does not let in. */
const NOT_ENCRYPTED = 'no encryption';

function adviceFor(code: string | undefined, table: string): string | null {
  switch (code) {
    case '42P01': // undefined_table
    case '3F000': // invalid_schema_name
      return `expected the table ${table}: intentwatch postgres-table prints what makes it`;
    case '42703': // undefined_column
    case '42804': // datatype_mismatch
    case '42846': // cannot_coerce
      return `expected the columns that intentwatch postgres-table prints`;
    case '42P10': // invalid_column_reference: no unique key for ON CONFLICT
      return `expected a unique key on the column id of ${table}: without it an event could be there twice`;
    case '42501': // insufficient_privilege
      return `expected a user who may INSERT into ${table} and SELECT its column id`;
    case '23502': // not_null_violation
      return `expected a default for every column of your own`;
    case '25006': // read_only_sql_transaction
      return `expected a server and a user that may write, not a replica`;
    case '54000': // program_limit_exceeded: an index that keeps texts whole
      return `expected no index over texts of any length: DROP INDEX, then what intentwatch postgres-table prints`;
    default:
      return null;
  }
}
