import { once } from 'node:events';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { tableDefinition } from '../../src/notifiers/postgres/table.ts';
import { testPrefix } from '../support/daemon.ts';
import { killByTurns, reportedAndFound } from '../support/kill-by-turns.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { PostgresProcess } from '../support/postgres-process.ts';

const { later, started, child } = opening();

const EVENTS = Number(process.env.EVENTS ?? 2_000);
const KILLS = Number(process.env.KILLS ?? 30);

const POSTGRES = needs(PARTS.postgres);

type Row = { id: string; subject: string; sequence: string; position: string };

test.skipIf(POSTGRES.skip)(
  `Postgres and daemon are killed by turns ${KILLS} times in ${EVENTS} events, and each event has its row once${POSTGRES.note}`,
  async () => {
    const postgres = await PostgresProcess.start();
    later(() => postgres.close());
    const pool = new pg.Pool({ connectionString: postgres.url, max: 1 });
    pool.on('error', () => undefined);
    later(() => pool.end());
    await pool.query(tableDefinition('intentwatch_events'));
    await pool.query(`
      CREATE FUNCTION notify_inserted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NOTIFY inserted; RETURN NULL; END $$;
      CREATE TRIGGER notify_inserted AFTER INSERT ON intentwatch_events EXECUTE FUNCTION notify_inserted()`);
    // Right after a commit, and before it can be noted: a crash is then most likely to do harm.
    const nextInsert = async (): Promise<void> => {
      const client = new pg.Client({ connectionString: postgres.url });
      await client.connect();
      const reported = once(client, 'notification');
      await client.query('LISTEN inserted');
      await reported;
      client.on('error', () => undefined);
      void client.end().catch(() => undefined);
    };
    const rows = async (): Promise<number> => {
      const found = await pool.query<{ count: string }>('SELECT count(*) FROM intentwatch_events');
      return Number(found.rows[0]?.count);
    };

    const sandbox = await started(
      new Sandbox({ seed: 14, wallets: 20, transfersPerSecond: 0, timeScale: 60 }),
    );
    const prefix = testPrefix();
    const retries = {
      delays: [...Array.from({ length: 10 }, () => '500ms'), ...Array.from({ length: 85 }, () => '4s')],
      jitter: 0,
    };
    const daemon = child({
      baseUrl: sandbox.url,
      redisUrl: inject('redisUrl'),
      prefix,
      receivers: {
        warehouse: { url: postgres.url, more: { type: 'postgres', retries, concurrency: 4 } },
      },
      subscriptions: [{ name: 's', wallets: sandbox.subjects().wallets, receivers: ['warehouse'] }],
    });
    await daemon.start();

    await killByTurns({
      sandbox,
      events: EVENTS,
      kills: KILLS,
      arrived: rows,
      kill: async (turn) => {
        await nextInsert();
        if (turn % 2 === 0) {
          await daemon.kill();
          await daemon.start();
        } else {
          await postgres.kill();
          await postgres.startAgain();
        }
      },
    });
    const inserted = async (): Promise<Row[]> => {
      const { rows } = await pool.query<Row>(
        'SELECT id, subject, sequence, position FROM intentwatch_events ORDER BY number',
      );
      return rows;
    };
    const { reported, found } = await reportedAndFound(prefix, { events: EVENTS, find: inserted });
    expect(found.map(({ id }) => id).sort()).toEqual(reported.toSorted());
    for (const [subject, some] of Map.groupBy(found, (row) => row.subject)) {
      const sequences = some.map(({ sequence }) => Number(sequence));
      expect([subject, sequences]).toEqual([subject, sequences.toSorted((a, b) => a - b)]);
    }
    const inOrder = found.toSorted((a, b) => (a.position < b.position ? -1 : 1));
    expect(inOrder.map(({ id }) => id)).toEqual(reported);

    // Otherwise the test proves nothing: some were inserted, and their end was not noted.
    const again = daemon.lines.filter(({ reason }) => String(reason).includes('there already')).length;
    const failed = daemon.lines.filter(({ result }) => result === 'failed').length;
    console.log(
      `${reported.length} events, ${found.length} rows, ${again} came again, ${failed} attempts failed`,
    );
    expect(again).toBeGreaterThan(0);
  },
  1_500_000,
);
