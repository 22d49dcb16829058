import { expect, test } from 'vitest';
import { openPostgres } from '../../src/books/sql/postgres.ts';
import { Secret } from '../../src/secret.ts';
import { BooksStage, DAY_MS, FIRST_MS } from '../support/books-stage.ts';
import { incompressible } from '../support/incompressible.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { PostgresProcess } from '../support/postgres-process.ts';

const OPTIONAL = needs(PARTS.postgres);

const { later } = opening();

test.skipIf(OPTIONAL.skip)(
  `stores in a Postgres a transfer whose token and subject hold characters that its text cannot${OPTIONAL.note}`,
  async () => {
    const postgres = await PostgresProcess.start();
    later(() => postgres.close());
    const books = await BooksStage.open(openPostgres(new Secret(postgres.url), { hasTls: false }));
    later(() => books.discard());
    const sourceTx = { chainId: 8453, token: 'a\0b', amount: '7', txHash: '0x01\0' };
    // Too long for a row of an index, however well it is packed.
    const long = incompressible(8_000);
    const subject = { kind: 'intent', id: `intent:0x\0${long}` };
    const at = (sequence: number, status: string) => ({
      transfer: 1,
      sequence,
      status,
      atMs: sequence * 1_000,
      seenMs: sequence * 1_000,
      amount: null,
      type: `intent.${sequence === 1 ? 'pending' : 'odd-'}`,
      more: { subject, record: { type: 'intent', id: '0x\0', status, sourceTx } },
    });
    await books.ingest(at(1, 'pending'));
    await books.ingest(at(2, 'odd\0'));
    await books.close(DAY_MS);
    const { balances, transfers, checks } = await books
      .reader()
      .report({ day: '2026-11-21' }, FIRST_MS + 2 * DAY_MS);
    expect(balances).toMatchObject([{ token: 'a\ufffdb', closing: { count: 1, amount: '7' } }]);
    expect(transfers).toHaveLength(1);
    expect(checks.every(({ ok }) => ok)).toBe(true);
  },
);
