import { expect, test } from 'vitest';
import { BooksStage, DAY_MS, FIRST_MS, type Told } from '../support/books-stage.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

const NOW_MS = FIRST_MS + 3 * DAY_MS;

/** Books of the test's own, and what is told of a transfer shortly before their first midnight and behind it. */
async function stage() {
  const books = await BooksStage.open();
  later(() => books.discard());
  const told = (sequence: number, status: string, ms: number, more: Partial<Told> = {}): Told => ({
    transfer: 1,
    sequence,
    status,
    atMs: DAY_MS + ms,
    seenMs: DAY_MS + ms,
    amount: 1_000_000n,
    ...more,
  });
  return { books, told };
}

test('books an end in the day in which the upstream says it was, whatever our clock said of it in between', async () => {
  const { books, told } = await stage();
  await books.tell(told(1, 'pending', -9_000));
  await books.tell(told(2, 'pending', -9_000, { type: 'intent.overdue', seenMs: DAY_MS + 1_000 }));
  await books.tell(told(3, 'filled', -1_000, { seenMs: DAY_MS + 2_000 }));
  await books.close(DAY_MS);
  const [first, second] = await Promise.all(
    ['2026-11-21', '2026-11-22'].map((day) => books.reader().report({ day }, NOW_MS)),
  );
  expect(first?.balances[0]?.ended.count).toBe(1);
  expect(first?.exceptions).toEqual([]);
  expect(second?.balances).toEqual([]);
});
