import { once } from 'node:events';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { isOperatorKind } from '../../src/domain/events/event-types.ts';
import { tableDefinition } from '../../src/notifiers/postgres/table.ts';
import { Sandbox } from '../../src/sandbox/sandbox.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { testPrefix } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { opening } from '../support/opening.ts';
import { PostgresProcess, postgresFolder } from '../support/postgres-process.ts';

const { later, started, child } = opening();

const EVENTS = Number(process.env.EVENTS ?? 2_000);
const KILLS = Number(process.env.KILLS ?? 30);
const WAIT_MS = 240_000;

const NOT_INSTALLED = postgresFolder() === null ? ' (not run: there is no Postgres on this machine)' : '';

type Row = { id: string; subject: string; sequence: string; position: string };

test.skipIf(NOT_INSTALLED !== '')(
  `Postgres and daemon are killed by turns ${KILLS} times in ${EVENTS} events, and each event has its row once${NOT_INSTALLED}`,
  async () => {
    const postgres = await PostgresProcess.start();
    later(() => postgres.close());
    const pool = new pg.Pool({ connectionString: postgres.url, max: 1 });
    pool.on('error', () => undefined);
    later(() => pool.end());
    await pool.query(tableDefinition('intentwatch_events'));
    await pool.query(`
      CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NOTIFY inserted; RETURN NULL; END $$;
      CREATE TRIGGER tell AFTER INSERT ON intentwatch_events EXECUTE FUNCTION tell()`);
    // Right after a commit, and before anybody can have noted it: then a crash is most likely to do harm.
    const nextInsert = async (): Promise<void> => {
      const client = new pg.Client({ connectionString: postgres.url });
      await client.connect();
      const told = once(client, 'notification');
      await client.query('LISTEN inserted');
      await told;
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
    const retries = { delays: Array.from({ length: 60 }, () => '500ms'), jitter: 0 };
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

    sandbox.setPace(6);
    for (let kill = 1; kill <= KILLS; kill++) {
      const due = (kill * EVENTS) / (KILLS + 1);
      await eventually(`${due} rows`, async () => (await rows()) >= due, WAIT_MS);
      await nextInsert();
      if (kill % 2 === 0) {
        await daemon.kill();
        await daemon.start();
      } else {
        await postgres.kill();
        await postgres.startAgain();
      }
    }
    await eventually(`${EVENTS} rows`, async () => (await rows()) >= EVENTS, WAIT_MS);
    sandbox.setPace(0);
    await eventually('all transfers have ended', () => sandbox.pace().livingTransfers === 0, WAIT_MS);

    const redis = connect({ kind: 'server', url: inject('redisUrl') });
    later(() => disconnect(redis));
    const log = new EventLog(redis, new Keys(prefix));
    const logged = async (): Promise<string[]> =>
      (await log.after('0-0', 1_000_000)).flatMap((entry) =>
        entry.kind === 'event' && !isOperatorKind(entry.event.data.subject.kind) ? [entry.event.id] : [],
      );
    const inserted = async (): Promise<Row[]> => {
      const { rows } = await pool.query<Row>(
        'SELECT id, subject, sequence, position FROM intentwatch_events ORDER BY number',
      );
      return rows;
    };
    let told: string[] = [];
    let found: Row[] = [];
    await eventually(
      'every event has its row',
      async () => {
        told = await logged();
        found = await inserted();
        // What comes between the two looks has its row in one of them only.
        const isStill = (await logged()).length === told.length;
        return isStill && told.length >= EVENTS && found.length >= told.length;
      },
      WAIT_MS,
    );
    expect(found.map(({ id }) => id).sort()).toEqual(told.toSorted());
    for (const [subject, some] of Map.groupBy(found, (row) => row.subject)) {
      const sequences = some.map(({ sequence }) => Number(sequence));
      expect([subject, sequences]).toEqual([subject, sequences.toSorted((a, b) => a - b)]);
    }
    const inOrder = found.toSorted((a, b) => (a.position < b.position ? -1 : 1));
    expect(inOrder.map(({ id }) => id)).toEqual(told);

    // Else nothing was shown: some were inserted, and their end was not noted.
    const again = daemon.lines.filter(({ reason }) => reason === 'was there already').length;
    const failed = daemon.lines.filter(({ result }) => result === 'failed').length;
    console.log(
      `${told.length} events, ${found.length} rows, ${again} came again, ${failed} attempts failed`,
    );
    expect(again).toBeGreaterThan(0);
  },
  1_500_000,
);
