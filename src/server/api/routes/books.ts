import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { z } from 'zod';
import { sumsCsv, transfersCsv } from '../../../books/formats/csv.ts';
import { reportHtml } from '../../../books/formats/report.ts';
import { NoBooksError } from '../../../books/reader.ts';
import { NoSuchDayError } from '../../../domain/books/day.ts';
import { type BooksReport, REPORT } from '../../../domain/books/report-schema.ts';
import { RefusedError, UnknownError } from '../../../operations/operation.ts';
import { defineRoute, NO_INPUT, type RouteAnswer } from '../route.ts';

const PIECE_CHARACTERS = 65_536;

/** Joins rows to pieces of some size. Other requests are served between two pieces. */
async function* inPieces(rows: Iterable<string>): AsyncGenerator<string> {
  let piece = '';
  for (const row of rows) {
    piece += row;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = '';
    await yieldToOthers();
  }
  if (piece !== '') yield piece;
}

const BOOK_FORMATS = ['json', 'csv', 'sums-csv', 'html'] as const;

const CONTENT_TYPES = {
  json: 'application/json; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  'sums-csv': 'text/csv; charset=utf-8',
  html: 'text/html; charset=utf-8',
};

/** A report as text in one of its forms, in pieces. */
export function reportAs(format: (typeof BOOK_FORMATS)[number], report: BooksReport): AsyncGenerator<string> {
  return inPieces(WRITERS[format](report));
}

const WRITERS = { json: reportJson, csv: transfersCsv, 'sums-csv': sumsCsv, html: reportHtml };

export const readBooks = defineRoute({
  ...NO_INPUT,
  method: 'GET',
  path: '/books/{day}',
  operation: 'readBooks',
  group: 'books',
  summary: 'Read the books of a day',
  description:
    'Every transfer of the day, what was under way per source token when it began and when it ended, sums, and all that needs a poll. `state` is `closed` or `open`.',
  scope: 'read',
  timeoutMs: 60_000,
  params: z.strictObject({
    day: z
      .string({ error: 'a day like 2026-11-21, or yesterday' })
      .regex(/^(\d{4}-\d{2}-\d{2}|yesterday)$/, { error: 'a day like 2026-11-21, or yesterday' })
      .describe('A day like 2026-11-21, or `yesterday`.'),
  }),
  query: z.strictObject({
    zone: z
      .string({ error: 'a time zone like Europe/Paris' })
      .max(60, { error: 'a time zone like Europe/Paris' })
      .exactOptional()
      .describe('Whose day it is; without it, the zone of the books.'),
    format: z
      .enum(BOOK_FORMATS)
      .prefault('json')
      .describe('`csv` is one row per transfer, `sums-csv` one per balance and sum, `html` all on a page.'),
  }),
  answers: { 200: { description: 'The books of the day.', schema: REPORT } },
  problems: {
    404: 'No books are stored, or not of this day.',
    409: 'The day or the zone does not exist.',
  },
  handle: async ({ params: { day }, query: { zone, format } }, { deps }): Promise<RouteAnswer> => {
    const { books } = deps();
    if (books === null) throw new UnknownError('no books are stored: expected a section books in the config');
    const report = await books.report({ day, zone }, Date.now()).catch((error: unknown) => {
      if (error instanceof NoSuchDayError) throw new RefusedError(error.message);
      if (error instanceof NoBooksError) throw new UnknownError(error.message);
      throw error;
    });
    return { status: 200, stream: reportAs(format, report), contentType: CONTENT_TYPES[format] };
  },
});

/** A report as JSON; lists that grow with the day come one row at a time. */
function* reportJson({ exceptions, transfers, ...rest }: BooksReport): Generator<string> {
  yield `${JSON.stringify(rest).slice(0, -1)},"exceptions":`;
  yield* list(exceptions);
  yield ',"transfers":';
  yield* list(transfers);
  yield '}';
}

function* list(rows: readonly unknown[]): Generator<string> {
  yield '[';
  for (const [index, row] of rows.entries()) yield `${index === 0 ? '' : ','}${JSON.stringify(row)}`;
  yield ']';
}
