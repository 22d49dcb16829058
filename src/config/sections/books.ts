import { z } from 'zod';
import type { JsonValue } from '../../domain/json.ts';
import type { BooksConfig } from '../config.ts';
import { durationField, flagField, mapping } from '../fields/fields.ts';
import { isLoopback, secretServerUrlField } from '../fields/http.ts';
import { timeOfDayField, timeZoneField } from '../fields/receiver.ts';
import { type Fault, member } from '../file/errors.ts';
import { WITH_TLS } from './postgres-receiver.ts';
import { mailAddressField } from './receiver.ts';

export const booksSchema = mapping({
  url: secretServerUrlField({
    schemes: ['postgres', 'postgresql'],
    example: 'postgres://user:password@db.example.com:5432/intentwatch',
  })
    .optional()
    .meta({
      description:
        'The Postgres that stores the books. Needed beside a `redis.url`, whose processes share them. TLS is used, with a certificate that fits the host, unless the host is a loopback address or `allowInsecure` is set. Left out: a file in `dataDir`.',
      label: 'URL',
    }),
  allowInsecure: flagField()
    .prefault(false)
    .meta({ description: 'Connects to the Postgres without TLS, wherever it is.' }),
  retention: durationField({ min: '2d', max: '3650d' })
    .prefault('400d')
    .meta({ description: 'How long transfers are stored after they have ended.', label: 'duration' }),
  timeZone: timeZoneField.prefault('UTC').meta({
    description: 'The zone in whose days the books are closed, and mailed.',
    label: 'time zone',
  }),
  closeAfter: durationField({ min: '1s', max: '2d' }).prefault('1h').meta({
    description:
      'How long after its end a day waits for what is seen late. Then it is closed: what comes later is booked, with a note, in the day that is open.',
    label: 'duration',
  }),
  report: mapping({
    at: timeOfDayField.prefault('07:00').meta({
      description:
        'When the mail about the day before is sent: a time of day in `books.timeZone`, in quotes.',
      label: 'time of day',
    }),
    to: z
      .array(mailAddressField, { error: 'a list of mail addresses' })
      .min(1, { error: 'at least one mail address' })
      .meta({ description: 'Who gets it.', label: 'list of mail addresses' }),
  })
    .optional()
    .meta({ description: 'The mail of every morning. It needs `smtp`.' }),
}).meta({
  description: 'The books of all transfers: see docs/books.md. Left out: none are stored.',
  example: [
    {
      url: '${DATABASE_URL}',
      timeZone: 'Europe/Paris',
      report: { at: '07:00', to: ['treasury@example.com'] },
    },
  ],
});

/** Builds the book settings from the parsed section. */
export function buildBooks(section: z.output<typeof booksSchema> | undefined): BooksConfig | null {
  if (section === undefined) return null;
  const { url, allowInsecure, retention, timeZone, closeAfter, report } = section;
  return {
    url: url ?? null,
    hasTls: url !== undefined && !allowInsecure && usesTls(new URL(url.reveal())),
    retentionMs: retention,
    timeZone,
    closeAfterMs: closeAfter,
    report: report === undefined ? null : { atMinute: report.at, to: report.to },
  };
}

/** Plain where the URL requests it (only loopback may), or is silent about it on loopback. */
function usesTls(url: URL): boolean {
  const mode = url.searchParams.get('sslmode');
  return mode === null ? !isLoopback(url) : mode !== PLAIN;
}

const PLAIN = 'disable';

/** Parameters that change neither the host nor the use of TLS. */
const PARAMETERS: ReadonlySet<string> = new Set(['sslmode', 'sslrootcert', 'sslcert', 'sslkey']);

function checkUrl(url: URL, isInsecure: boolean): Fault[] {
  const path = ['books', 'url'];
  const other = [...url.searchParams.keys()].find((key) => !PARAMETERS.has(key));
  if (other !== undefined) {
    const expected = `none but ${[...PARAMETERS].join(', ')}`;
    return [{ path, found: `a URL with the parameter ${JSON.stringify(other)}`, expected }];
  }
  const mode = url.searchParams.get('sslmode');
  const isPlain = mode === PLAIN && (isInsecure || isLoopback(url));
  if (mode !== null && !WITH_TLS.has(mode) && !isPlain) {
    const expected = 'sslmode=verify-full, or none (or allowInsecure: true and sslmode=disable, or none)';
    return [{ path, found: 'a URL whose sslmode does not require TLS', expected }];
  }
  if (mode === null || !isInsecure || isPlain) return [];
  const found = 'allowInsecure: true beside a URL whose sslmode requests TLS';
  return [{ path: ['books', 'allowInsecure'], found, expected: 'one of them' }];
}

/** Checks the books against the sections that they need. */
export function checkBooks(tree: JsonValue): Fault[] {
  const books = member(tree, 'books');
  if (books === undefined || books === null) return [];
  const findings: Fault[] = [];
  const hasRedis = member(member(tree, 'redis'), 'url') !== undefined;
  if (hasRedis && member(books, 'url') === undefined) {
    const expected =
      'a url of a Postgres beside redis.url: several processes share the books as they share Redis';
    findings.push({ path: ['books', 'url'], expected });
  }
  const text = member(books, 'url');
  const url = typeof text === 'string' ? URL.parse(text) : null;
  if (url !== null) findings.push(...checkUrl(url, member(books, 'allowInsecure') === true));
  if (member(books, 'report') !== undefined && member(tree, 'smtp') === undefined) {
    findings.push({ path: ['books', 'report'], expected: 'a section smtp, by which the mail leaves' });
  }
  return findings;
}
