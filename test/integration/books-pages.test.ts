import fc from 'fast-check';
import { expect, test } from 'vitest';
import { touchedSince } from '../../src/books/queries.ts';
import type { Sql } from '../../src/books/sql/database.ts';
import { BooksStage, DAY_MS, FIRST_MS } from '../support/books-stage.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

type StoredRow = { isOpen: boolean; bookedMs: number };

async function write(sql: Sql, stored: readonly StoredRow[]): Promise<void> {
  const state = '{}';
  for (const [index, { isOpen, bookedMs }] of stored.entries()) {
    // Names in another order than the times.
    const subject = `intent:${(index * 7919) % 10_007}`;
    await sql.run('INSERT INTO books_transfers VALUES (?, 1, 1, ?, ?, ?)', [
      subject,
      isOpen ? 1 : 0,
      bookedMs,
      state,
    ]);
    await sql.run(
      `INSERT INTO books_postings (event_id, subject, side, chain_id, token, count, amount, booked_ms, happened_ms, is_late,
         is_correction) VALUES ('', ?, 'started', '1', '0x01', 1, '5', ?, ?, 0, 0)`,
      [subject, bookedMs, bookedMs],
    );
  }
}

test('reads each open or changed transfer since a given time once, also with many at one time', async () => {
  const books = await BooksStage.open();
  later(() => books.discard());
  const stored = fc.record({ isOpen: fc.boolean(), bookedMs: fc.integer({ min: 1, max: 4 }) });
  const some = fc.array(stored, { minLength: 300, maxLength: 900, size: 'max' });
  await fc.assert(
    fc.asyncProperty(some, fc.integer({ min: 0, max: 5 }), async (transfers, sinceMs) => {
      const undone = new Error('undone');
      const compare = async (sql: Sql): Promise<never> => {
        await write(sql, transfers);
        const wanted = await sql.all(
          'SELECT subject FROM books_transfers WHERE is_open = 1 OR booked_ms >= ?',
          [sinceMs],
        );
        const found: string[] = [];
        for await (const page of touchedSince(sql, sinceMs)) {
          expect(page.length).toBeLessThanOrEqual(200);
          found.push(...page);
        }
        expect(found.sort()).toEqual(wanted.map(({ subject }) => String(subject)).sort());
        throw undone;
      };
      await expect(books.database.write(compare)).rejects.toBe(undone);
    }),
    { numRuns: 25 },
  );
});

/** Number of turns that the event loop gave to others during some work. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let next = setImmediate(function count() {
    turns += 1;
    next = setImmediate(count);
  });
  await work();
  clearImmediate(next);
  return turns;
}

test('serves others while it reads the entries after a day, for its report and for its closing', async () => {
  const books = await BooksStage.open();
  later(() => books.discard());
  const count = 4_000;
  const stored = Array.from({ length: count }, (_, index) => ({
    isOpen: index % 2 === 0,
    bookedMs: FIRST_MS + 2 * DAY_MS,
  }));
  await books.database.write((sql) => write(sql, stored));
  const report = (): Promise<unknown> => books.reader().report({ day: '2026-11-21' }, FIRST_MS + 3 * DAY_MS);
  expect(await turnsOf(report)).toBeGreaterThanOrEqual(count / 200);
  expect(await turnsOf(() => books.close(DAY_MS))).toBeGreaterThanOrEqual(count / 200);
});
