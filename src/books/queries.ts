import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { z } from 'zod';
import type { DayRules } from '../domain/books/report.ts';
import type { Row, Sql } from './sql/database.ts';

const RULES = z
  .string()
  .transform((text): unknown => JSON.parse(text))
  .pipe(z.object({ closeAfterMs: z.number(), checked: z.array(z.string()) }))
  .transform(({ closeAfterMs, checked }): DayRules => ({ closeAfterMs, checked: new Set(checked) }));

/** Formats the rules of a day for storage. */
export function rulesText({ closeAfterMs, checked }: DayRules): string {
  return JSON.stringify({ closeAfterMs, checked: [...checked].sort() });
}

/** Returns the rules of a closed day, or null. Another zone's day has those of the books' day in which it ends. */
export async function rulesAt(
  sql: Sql,
  toMs: number,
  { closedMs }: { closedMs: number },
): Promise<DayRules | null> {
  if (toMs > closedMs) return null;
  const [row] = await sql.all('SELECT rules FROM books_closed_days WHERE at_ms >= ? ORDER BY at_ms LIMIT 1', [
    toMs,
  ]);
  return typeof row?.rules === 'string' ? RULES.parse(row.rules) : null;
}

/** Transfers per page: no statement delays other work for long. */
const PAGE = 200;

/** Yields pages of subjects of open transfers, and of those touched since a time (ms). Earlier ends add up to nothing. */
export async function* touchedSince(sql: Sql, sinceMs: number): AsyncGenerator<string[]> {
  yield* pagesOf(sql, { isOpen: 1, sinceMs: 0 });
  yield* pagesOf(sql, { isOpen: 0, sinceMs });
}

/** Pages in the order of their index. Many may be booked at one time: a page ends at a subject, not at a time. */
async function* pagesOf(
  sql: Sql,
  { isOpen, sinceMs }: { isOpen: 0 | 1; sinceMs: number },
): AsyncGenerator<string[]> {
  let [lastMs, last] = [sinceMs, ''];
  for (;;) {
    const rows: Row[] = await sql.all(
      `SELECT subject, booked_ms FROM books_transfers WHERE is_open = ? AND (booked_ms, subject) > (?, ?)
       ORDER BY booked_ms, subject LIMIT ?`,
      [isOpen, lastMs, last, PAGE],
    );
    const subjects = rows.map(({ subject }) => String(subject));
    if (subjects.length > 0) yield subjects;
    await yieldToOthers();
    if (rows.length < PAGE) return;
    [lastMs, last] = [Number(rows.at(-1)?.booked_ms), subjects.at(-1) ?? ''];
  }
}
