import { BREAKS } from '../../domain/books/breaks.ts';
import type { Definition } from './definition.ts';

/** Metrics of the books. */
export const BOOKS = {
  booksRead: {
    name: 'intentwatch_books_read_timestamp_seconds',
    help: 'When this process last had read the event log to its end for the books, in seconds since 1970; 0 where another process does, or none.',
    type: 'gauge',
    labels: {},
  },
  booksBreaks: {
    name: 'intentwatch_books_breaks_total',
    help: 'How often the event log did not go on as the books knew it: another log, entries that had left it, or an entry that was lost.',
    type: 'counter',
    labels: { kind: BREAKS },
  },
  booksFailures: {
    name: 'intentwatch_books_failures_total',
    help: 'Rounds in which the books could not be stored; they are tried again.',
    type: 'counter',
    labels: {},
  },
} as const satisfies Record<string, Definition>;
