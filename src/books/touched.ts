import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { Row, Sql } from './sql/database.ts';

/** The number of transfers one page that has: none of its statements holds up who else is served. */
const PAGE = 200;

/**
 * Pages of the subjects of transfers that are under way, and of those that were touched since a moment (ms). What ended
 * before it adds up to nothing. Others are served after each page.
 */
export async function* touchedSince(sql: Sql, sinceMs: number): AsyncGenerator<string[]> {
  yield* pagesOf(sql, { isOpen: 1, sinceMs: 0 });
  yield* pagesOf(sql, { isOpen: 0, sinceMs });
}

/** In the order of their index. Many may be booked at one time: a page ends at a subject, not at a moment. */
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
