import type { Config, PostgresReceiver } from '../../config/config.ts';
import { makeTestEvent } from '../../domain/events/make-event.ts';
import { NameResolver } from '../../network/resolver.ts';
import { keptWithout } from '../../notifiers/kept.ts';
import { connectPostgres, secretsOfPostgresUrl, untilAborted } from '../../notifiers/postgres/connection.ts';
import { describePostgresError } from '../../notifiers/postgres/describe-error.ts';
import { insertStatement, insertValues } from '../../notifiers/postgres/table.ts';
import type { Check } from './finding.ts';

/** True when each receiver of type `postgres` could insert an event: one is, and the transaction is rolled back. */
export function postgresChecks({ receivers }: Config): Check[] {
  return receivers.flatMap((receiver) => (receiver.type === 'postgres' ? [postgresCheck(receiver)] : []));
}

function postgresCheck(receiver: PostgresReceiver): Check {
  const { name, table, url, timeoutMs } = receiver;
  return {
    name: `Postgres (receiver ${name})`,
    ask: async (signal) => {
      const names = new NameResolver({ timeoutMs });
      try {
        const { client, destroy } = await connectPostgres(receiver, { names, signal });
        try {
          const insert = async (): Promise<void> => {
            await client.query('BEGIN');
            await client.query(
              insertStatement(table),
              insertValues([{ event: makeTestEvent(name, Date.now()), entry: null }]),
            );
            await client.query('ROLLBACK');
          };
          await untilAborted(insert(), signal);
          return { ok: true, detail: `takes the login; an event could be inserted into ${table}` };
        } finally {
          destroy();
        }
      } finally {
        names.close();
      }
    },
    explain: (error) => ({
      ok: false,
      detail: keptWithout(secretsOfPostgresUrl(url)).reason(describePostgresError(error, receiver)),
    }),
  };
}
