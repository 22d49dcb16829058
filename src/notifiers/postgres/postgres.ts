import type { PostgresReceiver } from '../../config/config.ts';
import { NameResolver } from '../../network/resolver.ts';
import {
  type AttemptOptions,
  type AttemptResult,
  beginAttempt,
  type NotifiedEvent,
  type Notifier,
} from '../notifier.ts';
import { limiterWithout } from '../printable.ts';
import { describeConnectionError } from '../webhook/exchange.ts';
import {
  connectPostgres,
  DEFAULT_PORT,
  driver,
  type PostgresConnection,
  secretsOfPostgresUrl,
  untilAborted,
} from './connection.ts';
import { insertStatement, insertValues } from './table.ts';

/** Describes a failed insert for a human, with Postgres' own code and advice, or with its host. */
export function describePostgresError(error: unknown, { url, table }: PostgresReceiver): string {
  if (!(error instanceof driver().DatabaseError)) {
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

const NO_TLS = 'does not support SSL';

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
    case '54000': // program_limit_exceeded: an index that stores texts whole
      return `expected no index over texts of any length: DROP INDEX, then what intentwatch postgres-table prints`;
    default:
      return null;
  }
}

/** Inserts each event once, as a row of the user's table: a row with its id counts as delivered, so an attempt is repeatable. */
export function createPostgresNotifier(receiver: PostgresReceiver): Notifier {
  const { table, timeoutMs } = receiver;
  const names = new NameResolver({ timeoutMs });
  const limiter = limiterWithout(secretsOfPostgresUrl(receiver.url));
  const text = insertStatement(table);
  const open = new Set<PostgresConnection>();
  let idle: PostgresConnection[] = [];

  async function connection(signal: AbortSignal): Promise<PostgresConnection> {
    for (;;) {
      const one = idle.pop();
      if (one === undefined) break;
      if (one.isUsable()) return one;
      end(one);
    }
    const made = await connectPostgres(receiver, { names, signal });
    open.add(made);
    return made;
  }

  function end(one: PostgresConnection): void {
    open.delete(one);
    one.destroy();
  }

  async function insert(events: readonly NotifiedEvent[], signal: AbortSignal): Promise<number> {
    const used = await connection(signal);
    try {
      const { rowCount } = await untilAborted(used.client.query(text, insertValues(events)), signal);
      idle.push(used);
      return rowCount ?? 0;
    } catch (error) {
      // Also after a mere refusal: a new connection sees a repair such as another search path.
      end(used);
      throw error;
    }
  }

  async function deliverTogether(
    events: readonly NotifiedEvent[],
    options: AttemptOptions,
  ): Promise<AttemptResult> {
    const attempt = beginAttempt(options, timeoutMs);
    const shown = { httpStatus: null, smtpCode: null, answer: '' };
    try {
      attempt.throwIfCutOff();
      const reason = reasonOf(events.length, await insert(events, attempt.signal));
      const durationMs = attempt.elapsedMs();
      return { ...shown, outcome: 'delivered', reason, durationMs, retryAfterMs: null };
    } catch (error) {
      attempt.throwIfCutOff();
      // The server gives up after the same time: where our timer is late, its error comes first.
      const isLate = attempt.isTimedOut() || attempt.elapsedMs() >= timeoutMs;
      const reason = isLate
        ? `not inserted within ${timeoutMs} ms`
        : limiter.reason(describePostgresError(error, receiver));
      const retryAfterMs = isLate ? timeoutMs : null;
      return { ...shown, outcome: 'failed', reason, durationMs: attempt.elapsedMs(), retryAfterMs };
    } finally {
      attempt.end();
    }
  }

  return {
    deliver: (event, options) => deliverTogether([{ event, entry: options.entry ?? null }], options),
    deliverTogether,
    close: async () => {
      idle = [];
      names.close();
      for (const one of open) end(one);
    },
  };
}

function reasonOf(events: number, inserted: number): string {
  if (inserted === events) return 'inserted';
  if (inserted === 0) return events === 1 ? 'was there already' : 'all were there already';
  return `inserted but for ${events - inserted} of ${events}, which were there already`;
}
