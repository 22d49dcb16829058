import { z } from 'zod';
import type { DayRules } from '../domain/books/report.ts';
import type { Database, Sql } from './sql/database.ts';

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
