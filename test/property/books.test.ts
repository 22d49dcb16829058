import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nextDay } from '../../src/domain/books/day.ts';
import type { BooksReport } from '../../src/domain/books/report-schema.ts';
import { BooksStage, DAY_MS, FIRST_MS, type Reported } from '../support/books-stage.ts';

const STATUSES = [
  'pending',
  'filled',
  'settled',
  'expired',
  'refundable',
  'refunded',
  'failed',
  'unknown',
  'odd',
];
const ENDED = new Set(['filled', 'settled', 'refunded']);

/** A step of the books: an event is read (perhaps again, perhaps late), or a day is closed. */
const STEP = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .record({
        transfer: fc.integer({ min: 0, max: 5 }),
        sequence: fc.integer({ min: 1, max: 6 }),
        status: fc.constantFrom(...STATUSES),
        atMs: fc.integer({ min: -DAY_MS, max: 4 * DAY_MS }),
        seenMs: fc.integer({ min: 0, max: 4 * DAY_MS }),
        // Beyond a double.
        amount: fc.option(fc.bigInt({ min: 0n, max: 10n ** 60n }), { freq: 6 }),
      })
      // A refund before the books began is in no day of them.
      .map((one) => (one.status === 'refunded' ? { ...one, atMs: Math.abs(one.atMs) } : one)),
  },
  { weight: 1, arbitrary: fc.constant('close' as const) },
);

type Sum = { count: number; amount: bigint };

/** Transfers under way and refunds, by the events alone: the newest of each transfer decides; an older one changes nothing. */
function modelOf(steps: readonly (Reported | 'close')[]): { closing: Sum; refunded: Sum } {
  const last = new Map<number, { sequence: number; open: boolean; refunded: boolean; amount: bigint }>();
  for (const step of steps) {
    if (step === 'close') continue;
    const before = last.get(step.transfer);
    if (before !== undefined && step.sequence <= before.sequence) continue;
    const isUnknown = step.status === 'unknown';
    last.set(step.transfer, {
      sequence: step.sequence,
      open: isUnknown ? (before?.open ?? true) : !ENDED.has(step.status),
      refunded: isUnknown ? (before?.refunded ?? false) : step.status === 'refunded',
      amount: step.amount ?? before?.amount ?? 0n,
    });
  }
  const sumOf = (list: readonly { amount: bigint }[]): Sum => ({
    count: list.length,
    amount: list.reduce((sum, { amount }) => sum + amount, 0n),
  });
  const all = [...last.values()];
  return {
    closing: sumOf(all.filter(({ open }) => open)),
    refunded: sumOf(all.filter((one) => one.refunded)),
  };
}

function closingOf({ balances }: BooksReport): Sum {
  return {
    count: balances.reduce((sum, { closing }) => sum + closing.count, 0),
    amount: balances.reduce((sum, { closing }) => sum + BigInt(closing.amount), 0n),
  };
}

function lasting({ madeAt: _, readUntil: __, notes: ___, ...report }: BooksReport): unknown {
  return report;
}

test('opening + started - ended is closing, closing is the next opening, and a closed day never changes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 25 }), async (steps) => {
      const stage = await BooksStage.open();
      try {
        const reader = stage.reader();
        const reportOf = (day: string, zone = 'UTC') => reader.report({ day, zone }, FIRST_MS + 30 * DAY_MS);
        const closed = new Map<string, unknown>();
        let days = 0;
        for (const step of steps) {
          if (step !== 'close') {
            await stage.ingest(step);
            continue;
          }
          days += 1;
          await stage.close(days * DAY_MS);
          const day = new Date(FIRST_MS + (days - 1) * DAY_MS).toISOString().slice(0, 10);
          closed.set(day, lasting(await reportOf(day)));
        }
        for (const zone of ['UTC', 'Pacific/Auckland']) {
          let before: BooksReport | null = null;
          const refunded: Sum = { count: 0, amount: 0n };
          // Booked days are at most as many days on as were closed.
          for (
            let day = '2026-11-21', index = 0;
            index < 28 && index < days + 7;
            index += 1, day = nextDay(day)
          ) {
            const report: BooksReport = await reportOf(day, zone);
            expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
            for (const { opening, started, ended, closing } of report.balances) {
              expect(BigInt(opening.amount) + BigInt(started.amount) - BigInt(ended.amount)).toBe(
                BigInt(closing.amount),
              );
              expect(opening.count + started.count - ended.count).toBe(closing.count);
              expect(Math.min(opening.count, closing.count)).toBeGreaterThanOrEqual(0);
            }
            const openings = report.balances.map(({ chainId, token, opening }) => [chainId, token, opening]);
            const closings = (before?.balances ?? []).map(({ chainId, token, closing }) => [
              chainId,
              token,
              closing,
            ]);
            const isSome = ([, , sum]: (typeof openings)[number]) =>
              sum !== undefined && typeof sum === 'object' && sum.count !== 0;
            if (before !== null) expect(openings.filter(isSome)).toEqual(closings.filter(isSome));
            for (const { count, amount } of report.refunded) {
              refunded.count += count;
              refunded.amount += BigInt(amount);
            }
            before = report;
          }
          const closing = closingOf(before ?? (await reportOf('2026-11-21')));
          expect({ closing, refunded }).toEqual(modelOf(steps));
        }
        for (const [day, was] of closed) expect(lasting(await reportOf(day))).toEqual(was);
      } finally {
        await stage.discard();
      }
    }),
    {
      numRuns: 60,
      examples: [
        [['close', 'close', 'close', 'close']],
        [Array.from({ length: 25 }, () => 'close' as const)],
      ],
    },
  );
});
