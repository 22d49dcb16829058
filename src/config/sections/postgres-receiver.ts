import { z } from 'zod';
import type { JsonValue } from '../../domain/json.ts';
import { Secret } from '../../secret.ts';
import type { PostgresReceiver } from '../config.ts';
import { durationField, flagField, mapping, textField, wholeNumberField } from '../fields/fields.ts';
import { decoded } from '../fields/http.ts';
import {
  disableAfterField,
  eventsField,
  filterFields,
  rateLimitField,
  receiverNameField,
  retriesField,
} from '../fields/receiver.ts';
import { checkTls, tlsSchema } from '../fields/tls.ts';
import { type Fault, member } from '../file/errors.ts';

export const DEFAULT_TABLE = 'intentwatch_events';

/** A name with or without its schema: letters, digits, `_` and `$`. */
export const TABLE_NAME = /^[A-Za-z_][\w$]{0,62}(\.[A-Za-z_][\w$]{0,62})?$/;

const URL_EXPECTED =
  'a URL like postgres://user:password@db.example.com:5432/database, with a user and no parameters but sslmode';

/** Values of `sslmode` in a URL that request TLS. */
export const WITH_TLS: ReadonlySet<string> = new Set(['require', 'verify-ca', 'verify-full']);

const urlField = z
  .string({ error: URL_EXPECTED })
  .transform((text, context) => {
    if (postgresUrl(text) !== null) return new Secret(text);
    context.addIssue({ code: 'custom', message: URL_EXPECTED });
    return z.NEVER;
  })
  .meta({ writeOnly: true });

export const postgresSchema = mapping({
  name: receiverNameField,
  type: z.literal('postgres').meta({ description: '`postgres`.' }),
  url: urlField.meta({
    description:
      'The database, as `postgres://user:password@host:port/database`. Secret: it never appears in logs or errors. TLS is used, with a certificate that fits the host, unless `allowInsecure` is set.',
    label: 'URL',
  }),
  table: textField({
    pattern: TABLE_NAME,
    expected: 'a name of letters, digits, _ and $, like intentwatch_events or audit.events',
  })
    .prefault(DEFAULT_TABLE)
    .meta({
      description:
        'The table, with its schema or without. `intentwatch postgres-table` prints what makes it; columns of your own need a default.',
      label: 'name',
    }),
  events: eventsField.prefault(['*']).meta({
    description: 'Which event types are inserted: patterns with `*`, a leading `!` takes away.',
    label: 'list of patterns',
  }),
  ...filterFields,
  timeout: durationField({ min: '100ms', max: '5m' }).prefault('15s').meta({
    description: 'How long an attempt may take, from connecting to the end of the insert.',
    label: 'duration',
  }),
  retries: retriesField,
  concurrency: wholeNumberField({ min: 1, max: 100 }).prefault(1).meta({
    description:
      'How many inserts are under way at once, each with a connection of its own and of up to 100 events. They take turns in the table, so more of them help only where connecting to it takes long.',
  }),
  rateLimit: rateLimitField.meta({
    description: 'How many inserts per second, over all processes, of one event each. Left out: no limit.',
  }),
  tls: tlsSchema.optional().meta({ description: 'Files for TLS that is not the usual one.' }),
  disableAfter: disableAfterField,
  allowInsecure: flagField().prefault(false).meta({ description: 'Connects without TLS.' }),
}).meta({
  title: 'postgres',
  description: 'A receiver with `type: postgres`: a table of your own, with a row for each event.',
  example: [
    {
      name: 'warehouse',
      type: 'postgres',
      url: '${DATABASE_URL}',
      table: 'audit.transfer_events',
      events: ['intent.*', 'vault.*'],
    },
  ],
});

/** Builds the members that only such a receiver has. */
export function buildPostgres(
  item: z.output<typeof postgresSchema>,
): Pick<PostgresReceiver, 'type' | 'url' | 'table' | 'rateLimit' | 'ordering' | 'allowInsecure'> {
  const { type, url, table, rateLimit = null, allowInsecure } = item;
  return { type, url, table, rateLimit, ordering: 'subject', allowInsecure };
}

/** Checks the URL, `tls` and `allowInsecure` against each other. */
export function checkPostgres(item: JsonValue): Fault[] {
  const text = member(item, 'url');
  const url = typeof text === 'string' ? postgresUrl(text) : null;
  if (url === null) return [];
  const isInsecure = member(item, 'allowInsecure') === true;
  const findings = checkTls(member(item, 'tls'), { isHttps: true });
  const mode = url.searchParams.get('sslmode');
  if (mode !== null && WITH_TLS.has(mode) === isInsecure) {
    findings.push(
      isInsecure
        ? {
            path: ['allowInsecure'],
            found: 'allowInsecure: true beside a URL whose sslmode requests TLS',
            expected: 'one of them',
          }
        : {
            path: ['url'],
            found: 'a URL whose sslmode does not require TLS',
            expected: 'sslmode=verify-full, or none (or allowInsecure: true)',
          },
    );
  }
  if (isInsecure && member(item, 'tls') !== undefined) {
    findings.push({
      path: ['tls'],
      found: 'TLS files beside allowInsecure: true',
      expected: 'one of them',
      atKey: true,
    });
  }
  return findings;
}

function postgresUrl(text: string): URL | null {
  const url = /^postgres(ql)?:\/\//i.test(text) && !/\s/.test(text) ? URL.parse(text) : null;
  if (url === null || url.hostname === '' || url.username === '' || url.hash !== '') return null;
  const parts = [url.username, url.password, url.pathname].map(decoded);
  const params = [...url.searchParams.keys()];
  return parts.includes(null) || /\/.*\//.test(url.pathname) || params.some((key) => key !== 'sslmode')
    ? null
    : url;
}
