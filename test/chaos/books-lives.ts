import type { BooksReport, ReportRow } from '../../src/domain/books/report-schema.ts';
import { type BooksTruth, ENDED, type ReportedEvent, type TrueTransfer } from './books-truth.ts';

/** Day of two to which the books assign an item; `null`: it was appended while the first day was being closed. */
export type DayNumber = 1 | 2 | null;

/** The days in which a transfer starts and ends in the books, as made; `NEVER` is after both. */
export type Life = { transfer: TrueTransfer; startDay: number; endDay: number };

export const NEVER = 3;

/** Returns the day of an event. */
export type DayOf = (event: ReportedEvent) => DayNumber;

/** One day of two, and the days of all transfers. */
export type Account = { report: BooksReport; day: number; lives: readonly Life[]; dayOf: DayOf };

/** The rows of a day by their transfers. */
export function rowsOf(report: BooksReport): Map<string, ReportRow> {
  return new Map(report.transfers.map((row) => [row.subject.toLowerCase(), row]));
}

/** The first event that reported an end. */
export function endOf({ reported }: TrueTransfer): ReportedEvent | undefined {
  return reported.find(({ status }) => ENDED.has(status));
}

/**
 * The days of all transfers. An item that happened in the first day and is booked in the second must have been reported after the
 * first was closed. An item that was reported after that must be booked in the second.
 */
export function livesOf(
  [first, second]: readonly [BooksReport, BooksReport],
  { transfers, closeAfterMs }: BooksTruth,
): { lives: Life[]; dayOf: DayOf; problems: string[] } {
  const midnightMs = Date.parse(first.to);
  const [rows, laterRows] = [rowsOf(first), rowsOf(second)];
  const onTime: ReportedEvent[] = [];
  const late: ReportedEvent[] = [];
  const lives = transfers.map((transfer): Life => {
    const [row, later] = [rows.get(transfer.subject), laterRows.get(transfer.subject)];
    const [start, end] = [transfer.reported[0], endOf(transfer)];
    const fundedMs = Date.parse((later ?? row)?.fundedAt ?? '');
    const bookedDay = (isIn: boolean, happenedMs: number, event: ReportedEvent | undefined): number => {
      if (happenedMs >= midnightMs) return 2;
      if (event !== undefined) (isIn ? onTime : late).push(event);
      return isIn ? 1 : 2;
    };
    const startDay = bookedDay(row !== undefined, fundedMs, start);
    const isEndIn = row !== undefined && row.phase !== 'open';
    return {
      transfer,
      startDay,
      endDay: end === undefined ? NEVER : bookedDay(isEndIn, end.happenedMs, end),
    };
  });
  const lastOnTimeMs = Math.max(midnightMs, ...onTime.map(({ appendedMs }) => appendedMs));
  const firstLateMs = Math.min(Number.POSITIVE_INFINITY, ...late.map(({ appendedMs }) => appendedMs));
  const problems = late
    .filter(({ appendedMs }) => appendedMs < Math.max(midnightMs + closeAfterMs, lastOnTimeMs))
    .map(({ id, type }) => `${type} ${id} is booked late, and was reported before the day was closed`);
  const isMarked = new Set(
    second.transfers.filter(({ late: is }) => is).map(({ subject }) => subject.toLowerCase()),
  );
  for (const { subject, reported } of transfers) {
    const isLate = reported.some((event) => late.includes(event));
    if (isLate !== isMarked.has(subject))
      problems.push(`${subject} is ${isLate ? 'late, and not marked' : 'marked as late'}`);
  }
  const dayOf: DayOf = ({ happenedMs, appendedMs }) => {
    if (happenedMs >= midnightMs || appendedMs >= firstLateMs) return 2;
    return appendedMs <= lastOnTimeMs || appendedMs < midnightMs + closeAfterMs ? 1 : null;
  };
  return { lives, dayOf, problems };
}
