import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { z } from 'zod';
import type { DayRules } from '../domain/books/report.ts';
import type { Database, Row, Sql } from './sql/database.ts';

const RULES = z
  .string()
  .transform((text): unknown => JSON.parse(text))
  .pipe(z.object({ closeAfterMs: z.number(), checked: z.array(z.string()) }))
  .transform(({ closeAfterMs, checked }): DayRules => ({ closeAfterMs, checked: new Set(checked) }));

/** The rules of a day as they are stored. */
export function rulesText({ closeAfterMs, checked }: DayRules): string {
  return JSON.stringify({ closeAfterMs, checked: [...checked].sort() });
}

/** Gives the days that an older version closed the rules that hold now: from here on they stay. */
export async function keepRules(database: Database, rules: DayRules): Promise<void> {
  await database.write((sql) =>
    sql.run('UPDATE books_closed_days SET rules = ? WHERE rules IS NULL', [rulesText(rules)]),
  );
}

/**
 * The rules that a day was closed with; null where it is not closed. One of another zone goes with the day of the books in which
 * it ends.
 */
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
