import type { BooksReport } from '../../src/domain/books/report-schema.ts';
import { exceptionDifferences } from './books-exceptions.ts';
import { livesOf, rowsOf } from './books-lives.ts';
import { proofDifferences } from './books-proofs.ts';
import { differencesOfOne, rowDifferences } from './books-rows.ts';
import { sumDifferences } from './books-sums.ts';
import type { BooksTruth, TrueTransfer } from './books-truth.ts';

/**
 * Lists the differences between the reports of two consecutive days and the transfers that were made and reported. The day of an
 * item follows from the time when it happened, and from whether it was reported before the first day was closed.
 */
export function differencesOf(reports: readonly [BooksReport, BooksReport], truth: BooksTruth): string[] {
  const [first, second] = reports;
  const found = reports.flatMap(ownProblems);
  if (first.to !== second.from)
    found.push(`${first.day} ends at ${first.to}, the next day begins at ${second.from}`);
  if (first.state !== 'closed') found.push(`${first.day} is ${first.state}, and should be closed by now`);
  const [rows, laterRows] = [rowsOf(first), rowsOf(second)];
  const made = new Set(truth.transfers.map(({ subject }) => subject));
  for (const subject of new Set([...rows.keys(), ...laterRows.keys()])) {
    if (!made.has(subject)) found.push(`${subject} is in the books, and was not made`);
  }
  for (const one of truth.transfers) {
    found.push(...differencesOfOne(laterRows.get(one.subject) ?? rows.get(one.subject), one));
  }
  const { lives, dayOf, problems } = livesOf(reports, truth);
  found.push(...problems, ...truth.transfers.flatMap((one) => earlyWarnings(one, truth)));
  found.push(...proofDifferences(truth));
  for (const [index, report] of reports.entries()) {
    found.push(...sumDifferences({ report, day: index + 1, lives, dayOf }));
    found.push(...rowDifferences({ report, day: index + 1, lives, dayOf }));
    found.push(...exceptionDifferences({ report, day: index + 1, lives, dayOf, truth }));
  }
  return found;
}

/** Lists problems that a report itself names. No log was lost here, and none was set back. */
function ownProblems({ day, from, checks, notes }: BooksReport): string[] {
  return [
    ...(from === `${day}T00:00:00.000Z` ? [] : [`${day} begins at ${from}`]),
    ...checks.filter(({ ok }) => !ok).map(({ text }) => `${day}: ${text}`),
    ...notes.filter((note) => /^\d{4}-\d{2}-\d{2}T/.test(note)).map((note) => `${day}: ${note}`),
  ];
}

/** Lists subjects that were reported as overdue before the first second at which they could be. */
function earlyWarnings(
  { subject, statuses, reported }: TrueTransfer,
  { overdueAfterMs }: BooksTruth,
): string[] {
  const dueMs = (statuses[0]?.atMs ?? 0) + overdueAfterMs;
  const early = reported.some(({ type, happenedMs }) => type.endsWith('.overdue') && happenedMs < dueMs);
  return early ? [`${subject} was reported as overdue before its time`] : [];
}
