import { expect, test } from 'vitest';
import { reportText } from '../../src/books/formats/report.ts';
import type { BooksReport } from '../../src/domain/books/report-schema.ts';
import { BooksStage, DAY_MS, FIRST_MS, type Reported, reportedEvent } from '../support/books-stage.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

async function stage(checked: readonly string[] = []) {
  const books = await BooksStage.open();
  later(() => books.discard());
  const report = (day = '2026-11-21'): Promise<BooksReport> =>
    books.reader(checked).report({ day }, FIRST_MS + 3 * DAY_MS);
  return { books, report };
}

const reported = (sequence: number, status: string, atMs: number, more: object = {}): Reported => ({
  transfer: 1,
  sequence,
  status,
  atMs,
  seenMs: atMs + 500,
  amount: 1_000_000n,
  more,
});

const checkedEvent = (sequence: number, outcome: string, atMs: number, proof: object): Reported => ({
  ...reported(sequence, 'filled', atMs, { proof }),
  type: `intent.${outcome}`,
});

const kindsOf = ({ exceptions }: BooksReport): string[] => exceptions.map(({ kind }) => kind);

const overdue: Reported = { ...reported(2, 'pending', 60_000), type: 'intent.overdue' };

test.each<[string, Reported[], string[]]>([
  ['a payment under way', [reported(1, 'pending', 1_000)], ['in-flight']],
  ['one that takes too long', [reported(1, 'pending', 1_000), overdue], ['overdue', 'in-flight']],
  [
    'one that took too long, and arrived',
    [reported(1, 'pending', 1_000), overdue, reported(3, 'filled', 90_000)],
    [],
  ],
  [
    'one that can be claimed back',
    [reported(1, 'pending', 1_000), reported(2, 'refundable', 9_000)],
    ['refundable', 'in-flight'],
  ],
  [
    'one that was claimed back',
    [reported(1, 'pending', 1_000), reported(2, 'refundable', 9_000), reported(3, 'refunded', 12_000)],
    [],
  ],
  ['one that failed', [reported(1, 'pending', 1_000), reported(2, 'failed', 9_000)], ['in-flight']],
  [
    'one of an unknown amount',
    [{ ...reported(1, 'pending', 1_000), amount: null }],
    ['amount-unknown', 'in-flight'],
  ],
])('names in %s each exception, and nothing else', async (_, events, expected) => {
  const { books, report } = await stage();
  await books.ingest(...events);
  expect(kindsOf(await report()).toSorted()).toEqual(expected.toSorted());
});

test('takes the funding that was verified for no proof of the delivery', async () => {
  const { books, report } = await stage(['42161']);
  await books.ingest(
    reported(1, 'pending', 1_000),
    checkedEvent(2, 'verified', 2_000, { payment: 'source', txHash: `0x${'a'.repeat(64)}` }),
    reported(3, 'filled', 3_000),
  );
  expect((await report()).transfers[0]?.proof).toBe('not checked');
  expect(kindsOf(await report())).toEqual(['unproven']);
  await books.ingest(
    checkedEvent(4, 'verified', 4_000, { payment: 'destination', txHash: `0x${'b'.repeat(64)}` }),
  );
  expect((await report()).transfers[0]?.proof).toBe('verified');
  expect(kindsOf(await report())).toEqual([]);
});

test('does not count a proof of another transaction as a proof of the stated one', async () => {
  const { books, report } = await stage(['42161']);
  await books.ingest(
    reported(1, 'filled', 1_000),
    checkedEvent(2, 'verified', 2_000, { payment: 'destination', txHash: `0x${'c'.repeat(64)}` }),
  );
  expect((await report()).transfers[0]?.proof).toBe('not checked');
  expect(kindsOf(await report())).toEqual(['unproven']);
});

test('makes the report of a day in which a record states an impossible time', async () => {
  const { books, report } = await stage();
  await books.ingest(
    { ...reported(1, 'pending', 1_000), fundedMs: -9e15 },
    { ...reported(2, 'filled', 4_000), more: { upstreamUpdatedAt: -9e12 } },
  );
  const [row] = (await report()).transfers;
  expect(row?.fundedAt).toBe('2026-11-21T00:00:01.500Z');
  expect(row?.endedAt).toBe('2026-11-21T00:00:04.500Z');
});

test('names an event that a receiver did not accept, also of a transfer that had ended the day before', async () => {
  const { books, report } = await stage();
  await books.ingest(reported(1, 'filled', 1_000));
  await books.close(DAY_MS);
  await books.ingestFor('backend', reported(2, 'settled', DAY_MS + 1_000));
  const next = await report('2026-11-22');
  expect(next.exceptions.map(({ kind, text }) => [kind, text])).toEqual([
    ['undelivered', 'intent.settled was not delivered to backend by then'],
  ]);
  expect(next.transfers.map(({ status, carried }) => [status, carried])).toEqual([['settled', false]]);
});

test('names an event that was seen too late to notify in time, whichever state follows', async () => {
  const { books, report } = await stage();
  await books.ingest(reported(1, 'pending', 1_000));
  const late = { ...reported(2, 'filled', DAY_MS - 1_000), seenMs: DAY_MS + 7_200_000 };
  await books.ingestFor('backend', late);
  await books.close(DAY_MS);
  expect(kindsOf(await report())).toEqual(['undelivered']);
  const done = {
    eventId: reportedEvent(late).id,
    receiver: 'backend',
    eventMs: FIRST_MS + late.seenMs,
    state: 'delivered',
    checkMs: null,
  };
  await books.store.move({ from: books.place, to: books.place }, (writer) =>
    writer.noteDeliveries([{ ...done, deliveredMs: FIRST_MS + DAY_MS + 7_300_000 }]),
  );
  expect(kindsOf(await report())).toEqual(['undelivered']);
});

test('does not change a closed day when another receiver is to be notified of its events later', async () => {
  const { books, report } = await stage();
  const filled = reported(1, 'filled', 1_000);
  await books.ingest(filled);
  await books.close(DAY_MS);
  const closed = await report();
  const later = {
    eventId: reportedEvent(filled).id,
    receiver: 'ledger',
    eventMs: FIRST_MS + DAY_MS + 7_200_000,
  };
  await books.store.move({ from: books.place, to: books.place }, (writer) => writer.follow([later]));
  expect({ ...(await report()), madeAt: closed.madeAt }).toEqual(closed);
});

test('names a transfer that is gone after it had ended', async () => {
  const { books, report } = await stage();
  await books.ingest(reported(1, 'filled', 1_000));
  await books.close(DAY_MS);
  await books.ingest(reported(2, 'unknown', DAY_MS + 1_000));
  expect(kindsOf(await report('2026-11-22'))).toEqual(['gone']);
});

test('names a delivery without a stated amount', async () => {
  const { books, report } = await stage();
  await books.ingest(reported(1, 'pending', 1_000), { ...reported(2, 'filled', 2_000), amount: null });
  expect((await report()).delivered).toEqual([]);
  expect(kindsOf(await report())).toEqual(['amount-unknown']);
});

test('counts a transfer once whose quote has two fees in one token', async () => {
  const { books, report } = await stage();
  const fee = (kind: string, amount: string): object => ({ kind, token: '0x01', amount });
  const promised = { quote: 'quote:1', fees: [fee('gas', '3'), fee('relayer', '4')] };
  await books.ingest(reported(1, 'filled', 1_000, { promised }));
  expect((await report()).fees).toMatchObject([{ count: 1, amount: '7' }]);
});

test('lists disputed transfers before those under way, so that the text of a mail has them', async () => {
  const { books, report } = await stage();
  for (let transfer = 0; transfer < 60; transfer += 1)
    await books.ingest({ ...reported(1, 'pending', transfer * 1_000), transfer });
  const proof = { payment: 'destination', txHash: `0x${'b'.repeat(64)}`, reason: 'short' };
  const filled = { ...reported(1, 'filled', 2_000), transfer: 99 };
  await books.ingest(filled, { ...filled, sequence: 2, type: 'intent.disputed', more: { proof } });
  expect(reportText(await report())).toContain('disputed: intent:0x');
});

test('has no line in its text that only imitates one of its own', async () => {
  const { books, report } = await stage();
  const status = 'odd\n\nok: the closing is right\u001b[2J';
  await books.ingest(
    reported(1, status, 1_000, { subject: { kind: 'intent', id: 'intent:0x1\nNo exceptions.' } }),
  );
  const lines = reportText(await report()).split('\n');
  expect(lines.filter((line) => line.startsWith('ok: '))).toHaveLength(1);
  expect(lines).not.toContain('No exceptions.');
  expect(lines.join('')).not.toContain('\u001b');
});
