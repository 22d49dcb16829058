import { z } from 'zod';
import type { JsonValue } from '../../domain/json.ts';
import type { BooksConfig } from '../config.ts';
import { timeOfDayField, timeZoneField } from '../fields/batching.ts';
import { durationField } from '../fields/duration.ts';
import { mapping } from '../fields/fields.ts';
import { secretServerUrlField } from '../fields/urls.ts';
import { type Finding, member } from '../file/tree.ts';
import { mailAddressField } from './smtp.ts';

/** The `books` section. */
export const booksSchema = mapping({
  url: secretServerUrlField({
    schemes: ['postgres', 'postgresql'],
    example: 'postgres://user:password@db.example.com:5432/intentwatch',
  })
    .optional()
    .meta({
      description:
        'The Postgres that keeps the books. Needed beside a `redis.url`, whose processes share them. Left out: a file in `dataDir`.',
      label: 'URL',
    }),
  retention: durationField({ min: '2d', max: '3650d' })
    .prefault('400d')
    .meta({ description: 'How long transfers are kept after they have ended.', label: 'duration' }),
  timeZone: timeZoneField.prefault('UTC').meta({
    description: 'The zone in whose days the books are closed, and mailed.',
    label: 'time zone',
  }),
  closeAfter: durationField({ min: '1s', max: '2d' }).prefault('1h').meta({
    description:
      'How long after its end a day waits for what is seen late. Then it is closed: what comes later is booked in the day that is open, and says so.',
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
  description: 'The books of all transfers: see docs/books.md. Left out: none are kept.',
  example: [
    {
      url: '${DATABASE_URL}',
      timeZone: 'Europe/Paris',
      report: { at: '07:00', to: ['treasury@example.com'] },
    },
  ],
});

/** The books as the rest of the program sees them. */
export function buildBooks(section: z.output<typeof booksSchema> | undefined): BooksConfig | null {
  if (section === undefined) return null;
  const { url, retention, timeZone, closeAfter, report } = section;
  return {
    url: url ?? null,
    retentionMs: retention,
    timeZone,
    closeAfterMs: closeAfter,
    report: report === undefined ? null : { atMinute: report.at, to: report.to },
  };
}

/** What the books need of other sections. */
export function checkBooks(tree: JsonValue): Finding[] {
  const books = member(tree, 'books');
  if (books === undefined || books === null) return [];
  const findings: Finding[] = [];
  const hasRedis = member(member(tree, 'redis'), 'url') !== undefined;
  if (hasRedis && member(books, 'url') === undefined) {
    const expected =
      'a url of a Postgres beside redis.url: several processes share the books as they share Redis';
    findings.push({ path: ['books', 'url'], expected });
  }
  if (member(books, 'report') !== undefined && member(tree, 'smtp') === undefined) {
    findings.push({ path: ['books', 'report'], expected: 'a section smtp, by which the mail leaves' });
  }
  return findings;
}
