import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LISTINGS } from '../../src/domain/cadence/wait.ts';
import type { OpenTransfer } from '../../src/domain/cadence/wallet.ts';
import { intentId, walletId } from '../../src/domain/subjects/subject.ts';
import { parseSweep } from '../../src/queues/polls/sweeps.ts';
import { openField, openText, parseFacts, parseOpen } from '../../src/store/wallets.ts';

/** Values that another version, another program or a person may have written: any text, any JSON, and invalid numbers. */
const foreign = fc.oneof(
  fc.string(),
  fc.json(),
  fc.constantFrom('', 'NaN', 'Infinity', '-Infinity', '1e400', '-1', '0x10', 'null', '[]', '{}', '[1,2]'),
  fc.integer().map(String),
);

const subjects = fc
  .tuple(fc.nat(), fc.constantFrom(0, 64))
  .map(([number, digits]) => intentId(`0x${number.toString(16).padStart(digits, 'f')}`));

const transfers: fc.Arbitrary<OpenTransfer> = fc.record({
  subject: subjects,
  status: fc.string(),
  route: fc.string(),
  sinceMs: fc.nat(),
  seenAtMs: fc.nat(),
  headAtMs: fc.option(fc.nat()),
});

const names = fc.oneof(
  fc.string(),
  fc.constantFrom(
    ...LISTINGS.flatMap((listing) =>
      ['polled', 'virtual', 'ingested', 'same', 'limit', 'limitAt'].map((fact) => `${fact}:${listing}`),
    ),
    'sweptAtMs',
    'pages',
    'orderAtMs',
    'disorderAtMs',
    'unnarrowedAtMs',
    'missedAtMs',
    'arrivals:seen',
    'arrivals:watchedSeconds',
    'arrivals:atMs',
  ),
);

describe('transfers of a wallet that are under way', () => {
  test('are read as they were written', () => {
    fc.assert(
      fc.property(fc.uniqueArray(transfers, { selector: ({ subject }) => subject }), (list) => {
        const stored = Object.fromEntries(
          list.map((transfer) => [openField(transfer.subject), openText(transfer)]),
        );
        expect(parseOpen(stored)).toEqual(list);
      }),
    );
  });

  test('are read beside any entry of another shape, which is skipped', () => {
    fc.assert(
      fc.property(transfers, fc.dictionary(fc.string(), foreign), (transfer, others) => {
        const read = parseOpen({ ...others, [openField(transfer.subject)]: openText(transfer) });
        expect(read).toContainEqual(transfer);
        for (const one of read) {
          expect(Number.isFinite(one.sinceMs)).toBe(true);
          expect(Number.isFinite(one.seenAtMs)).toBe(true);
          expect(typeof one.status).toBe('string');
        }
      }),
      { numRuns: 500 },
    );
  });
});

test('facts of a wallet are numbers, with anything stored in their place', () => {
  fc.assert(
    fc.property(fc.dictionary(names, foreign), (stored) => {
      const { polled, ingestedAtMs, same, arrivals, limits, ...facts } = parseFacts(stored, Date.now());
      const numbers = [
        ...Object.values(facts),
        ...Object.values(arrivals),
        ...Object.values(ingestedAtMs),
        ...Object.values(limits).flatMap(({ limit, atMs }) => [limit, atMs]),
        ...Object.values(polled).flatMap(({ atMs, virtual }) => [atMs, virtual]),
      ];
      for (const number of numbers) expect(Number.isFinite(number)).toBe(true);
      for (const print of Object.values(same)) expect(typeof print).toBe('string');
    }),
    { numRuns: 500 },
  );
});

test('a sweep goes on with a page and a cursor, or not at all, for any stored state', () => {
  const fields = fc.constantFrom(
    'id',
    'state',
    'page',
    'cursor',
    'tries',
    'movedAtMs',
    'limit',
    'cursorLimit',
  );
  fc.assert(
    fc.property(fc.dictionary(fields, fc.oneof(foreign, fc.constant('running'))), (stored) => {
      const sweep = parseSweep(walletId('0xaa'), 'all', stored);
      if (sweep === null) return;
      expect(Number.isInteger(sweep.page)).toBe(true);
      expect(Number.isInteger(sweep.tries)).toBe(true);
      expect(Number.isFinite(Number(sweep.id))).toBe(true);
      expect(sweep.cursor).not.toBe('');
      expect(sweep.cursor === null).toBe(sweep.page === 1 && !stored.cursor);
      for (const limit of [sweep.limit, sweep.cursorLimit]) {
        expect(Number.isInteger(limit) && limit >= 1 && limit <= 50).toBe(true);
      }
    }),
    { numRuns: 2_000 },
  );
});
