import { expect, test } from 'vitest';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { reportAs } from '../../src/server/api/routes/books.ts';
import { BooksStage, DAY_MS, FIRST_MS, type Reported } from '../support/books-stage.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

const NOW_MS = FIRST_MS + 3 * DAY_MS;

/** Books of the test's own, and the events of a transfer shortly before and after their first midnight. */
async function stage() {
  const books = await BooksStage.open();
  later(() => books.discard());
  const reported = (
    sequence: number,
    status: string,
    ms: number,
    more: Partial<Reported> = {},
  ): Reported => ({
    transfer: 1,
    sequence,
    status,
    atMs: DAY_MS + ms,
    seenMs: DAY_MS + ms,
    amount: 1_000_000n,
    ...more,
  });
  return { books, reported };
}

test('books an end in the day that the upstream states, for any time of our clock in between', async () => {
  const { books, reported } = await stage();
  await books.ingest(reported(1, 'pending', -9_000));
  await books.ingest(reported(2, 'pending', -9_000, { type: 'intent.overdue', seenMs: DAY_MS + 1_000 }));
  await books.ingest(reported(3, 'filled', -1_000, { seenMs: DAY_MS + 2_000 }));
  await books.close(DAY_MS);
  const [first, second] = await Promise.all(
    ['2026-11-21', '2026-11-22'].map((day) => books.reader().report({ day }, NOW_MS)),
  );
  expect(first?.balances[0]?.ended.count).toBe(1);
  expect(first?.exceptions).toEqual([]);
  expect(second?.balances).toEqual([]);
});

test('sums up deliveries, refunds and the volume of each route', async () => {
  const { books, reported } = await stage();
  const ended = ['filled', 'filled', 'settled', 'refunded', 'refunded', 'pending'];
  for (const [index, status] of ended.entries()) {
    const one = { transfer: index, amount: 10n ** BigInt(index + 18) };
    await books.ingest(reported(1, 'pending', -9_000, one), reported(2, status, -5_000, one));
  }
  await books.close(DAY_MS);
  const { delivered, refunded, routes } = await books.reader().report({ day: '2026-11-21' }, NOW_MS);
  // A delivery is 10 units less than the sent amount.
  const arrived = 111n * 10n ** 18n - 30n;
  expect(delivered).toMatchObject([{ chainId: '42161', count: 3, amount: String(arrived) }]);
  expect(refunded).toMatchObject([{ chainId: '8453', count: 2, amount: String(11n * 10n ** 21n) }]);
  expect(routes.map(({ side, count, amount }) => [side, count, amount])).toEqual(
    expect.arrayContaining([
      ['delivered', 3, String(arrived)],
      ['started', 3, String(111n * 10n ** 18n)],
    ]),
  );
});

test('books an update of the upstream after the proof in its own day, and the proof in that of the proof', async () => {
  const { books, reported } = await stage();
  const proof = {
    payment: 'destination',
    chainId: '42161',
    txHash: `0x${'b'.repeat(64)}`,
    token: '0xaf88d065e77c8cc2239327c5edb3a432268e5831',
    stated: '999990',
  };
  await books.ingest(reported(1, 'pending', -9_000), reported(2, 'filled', -5_000));
  const verified = { type: 'intent.verified', seenMs: DAY_MS + 1_000, more: { proof } };
  await books.ingest(reported(3, 'filled', -5_000, verified));
  await books.ingest(reported(4, 'settled', -2_000, { seenMs: DAY_MS + 2_000 }));
  await books.close(DAY_MS);
  const [first, second] = await Promise.all(
    ['2026-11-21', '2026-11-22'].map((day) => books.reader().report({ day }, NOW_MS)),
  );
  const shown = (report: typeof first) => report?.transfers.map(({ status, proof: word }) => [status, word]);
  expect(shown(first)).toEqual([['settled', 'not checked']]);
  expect(shown(second)).toEqual([['settled', 'verified']]);
});

test('serves others again and again while it makes the report of a big day', async () => {
  const { books, reported } = await stage();
  const transfers = 2_000;
  const one = reported(1, 'pending', -9_000);
  await books.ingest(...Array.from({ length: transfers }, (_, index) => ({ ...one, transfer: index + 1 })));
  /** The number of rows that were made between two turns of others. */
  const inOneGo: number[] = [0];
  let isMade = false;
  const others = (): void => {
    if (isMade) return;
    inOneGo.push(0);
    setImmediate(others);
  };
  setImmediate(others);
  const reader = books.reader([], {
    chain: (chainId) => {
      inOneGo[inOneGo.length - 1] = (inOneGo.at(-1) ?? 0) + 1;
      return COMMON_NAMES.chain(chainId);
    },
  });
  const { transfers: rows } = await reader.report({ day: '2026-11-21' }, NOW_MS);
  isMade = true;
  expect(rows).toHaveLength(transfers);
  expect(Math.max(...inOneGo)).toBeLessThan(transfers / 2);
});

test('writes the files of a big day in small pieces, and serves others between them', async () => {
  const { books, reported } = await stage();
  const transfers = 2_000;
  const one = reported(1, 'pending', -9_000);
  await books.ingest(...Array.from({ length: transfers }, (_, index) => ({ ...one, transfer: index + 1 })));
  const report = await books.reader().report({ day: '2026-11-21' }, NOW_MS);
  for (const format of ['json', 'csv', 'html'] as const) {
    const pieces: string[] = [];
    let turns = 0;
    const others = (): void => {
      turns += 1;
      if (!isMade) setImmediate(others);
    };
    let isMade = false;
    setImmediate(others);
    for await (const piece of reportAs(format, report)) pieces.push(piece);
    isMade = true;
    const whole = pieces.join('');
    if (format === 'json') expect(JSON.parse(whole)).toEqual(report);
    expect(whole.match(/intent:0x0/g)?.length).toBeGreaterThanOrEqual(transfers);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(whole.length / 5);
    expect(turns).toBeGreaterThanOrEqual(pieces.length - 1);
  }
});

test('assigns transfers under way at the start of the books to the opening of the first day of any zone, and has no day before', async () => {
  const { books } = await stage();
  const hourMs = 3_600_000;
  const pending = { sequence: 1, status: 'pending', seenMs: 6 * hourMs };
  await books.ingest({ ...pending, transfer: 1, atMs: -5 * hourMs, amount: 5n });
  await books.ingest({ ...pending, transfer: 2, atMs: 4 * hourMs, amount: 7n });
  const read = (day: string, zone: string) => books.reader().report({ day, zone }, NOW_MS);
  for (const [day, zone, started, closing] of [
    ['2026-11-21', 'UTC', '7', '12'],
    ['2026-11-21', 'Pacific/Kiritimati', '7', '12'],
    ['2026-11-20', 'America/New_York', '7', '12'],
    ['2026-11-20', 'Etc/GMT+3', '0', '5'],
  ] as const) {
    const { balances, transfers, notes, checks } = await read(day, zone);
    expect(balances).toMatchObject([
      { opening: { amount: '5' }, started: { amount: started }, closing: { amount: closing } },
    ]);
    expect(transfers.filter(({ carried }) => carried)).toHaveLength(1);
    expect(notes[1]).toContain('the first day of the books');
    expect(checks.every(({ ok }) => ok)).toBe(true);
  }
  const nothingEarlier = ': the books have nothing earlier';
  await expect(read('2026-11-20', 'UTC')).rejects.toThrow(
    `found 2026-11-20, expected 2026-11-21 or a later day of UTC${nothingEarlier}`,
  );
  await expect(read('2026-11-19', 'America/New_York')).rejects.toThrow(
    `found 2026-11-19, expected 2026-11-20 or a later day of America/New_York${nothingEarlier}`,
  );
});

test('separates tokens whose chain and address make the same text', async () => {
  const { books, reported } = await stage();
  const record = (chainId: string, token: string) => ({
    record: { type: 'intent', status: 'pending', sourceTx: { chainId, token, amount: '7', txHash: '0x01' } },
  });
  await books.ingest(
    reported(1, 'pending', -9_000, { transfer: 1, more: record('1', 'a b') }),
    reported(1, 'pending', -9_000, { transfer: 2, more: record('1 a', 'b') }),
  );
  await books.close(DAY_MS);
  const { balances, checks } = await books.reader().report({ day: '2026-11-21' }, NOW_MS);
  expect(balances.map(({ closing }) => closing.amount)).toEqual(['7', '7']);
  expect(checks.map(({ ok }) => ok)).toEqual([true, true]);
});
