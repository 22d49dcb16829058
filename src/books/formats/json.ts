import type { Report } from '../../domain/books/report-schema.ts';

/** A report as JSON; what grows with the day a row at a time. */
export function* reportJson({ exceptions, transfers, ...rest }: Report): Generator<string> {
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
