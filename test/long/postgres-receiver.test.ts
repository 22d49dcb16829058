import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { postgresChecks, runCheck } from '../../src/commands/check-live.ts';
import { loadConfig } from '../../src/config/file/load.ts';
import { tableDefinition } from '../../src/notifiers/postgres/table.ts';
import { callApi } from '../support/api-stage.ts';
import { cannedServer } from '../support/canned-server.ts';
import { runCommand } from '../support/command.ts';
import { configYaml, testPrefix } from '../support/daemon.ts';
import { type DeliveryStage, deliveryStage, happen, happening } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { Hook } from '../support/hook.ts';
import { madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { pageBlocks } from '../support/page-blocks.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { hashOf } from '../support/scripted-upstream.ts';
import { Stage } from '../support/stage.ts';

const POSTGRES = needs(PARTS.postgres);
const open = opening();
const TOKEN = 'a-token-that-does-all';
const SERVER = { server: { host: '127.0.0.1', port: 0, token: TOKEN } };

type Row = { id: string; type: string; subject: string; sequence: string; position: string };

/** A Postgres with the table; `rows` are in the order in which they became visible. */
async function warehouse() {
  const postgres = await PostgresProcess.start();
  open.later(() => postgres.close());
  const pool = new pg.Pool({ connectionString: postgres.url, max: 1 });
  pool.on('error', () => undefined);
  open.later(() => pool.end());
  await pool.query(tableDefinition('intentwatch_events'));
  const rows = async (): Promise<Row[]> =>
    (await pool.query<Row>('SELECT * FROM intentwatch_events ORDER BY number')).rows;
  return { postgres, pool, rows };
}

const receiving = (url: string, more: object = {}) => ({
  warehouse: { hook: { url }, more: { type: 'postgres', ...more } },
});

function expectOrder(rows: readonly Row[]): void {
  for (const [subject, some] of Map.groupBy(rows, (row) => row.subject)) {
    const sequences = some.map(({ sequence }) => Number(sequence));
    expect([subject, sequences]).toEqual([subject, sequences.toSorted((a, b) => a - b)]);
  }
}

async function counted(stage: DeliveryStage, count: number, rows: () => Promise<Row[]>): Promise<Row[]> {
  await eventually(`${count} rows`, async () => (await rows()).length >= count);
  await stage.drained('warehouse');
  return rows();
}

describe.skipIf(POSTGRES.skip)(`a table that events are inserted into${POSTGRES.note}`, () => {
  test('has each event once, in the order of the log, also where all are sent once more', async () => {
    const { postgres, rows } = await warehouse();
    const stage = await deliveryStage(open, receiving(postgres.url), SERVER);
    const { daemon } = await stage.start();
    const made = await happen(stage, 200, 20);
    const found = await counted(stage, made.length, rows);
    expect(found.map(({ id }) => id)).toEqual(made.map(madeEventId));
    const positions = found.map(({ position }) => position);
    expect(positions).toEqual(positions.toSorted());

    const call = (path: string, body?: object) =>
      callApi(daemon.url, { path, token: TOKEN, method: 'POST', ...(body === undefined ? {} : { body }) });
    const [first] = found;
    expect(await call(`/events/${first?.id}/resend`, { receivers: ['warehouse'] })).toMatchObject({
      status: expect.toSatisfy((status) => status < 300),
    });
    await stage.drained('warehouse');
    expect(await rows()).toEqual(found);

    expect(await call('/receivers/warehouse/test')).toMatchObject({
      status: 200,
      body: { outcome: 'delivered', reason: 'inserted' },
    });
    expect((await rows()).at(-1)).toMatchObject({ type: 'intentwatch.test', position: null });
  });

  test('gets the events from while Postgres was away, or it was paused, or the table was missing', async () => {
    const { postgres, pool, rows } = await warehouse();
    const operator = await open.started(new Hook());
    // More than a slow machine uses up while Postgres starts.
    const quick = { retries: { delays: Array.from({ length: 90 }, () => '1s'), jitter: 0 } };
    const stage = await deliveryStage(
      open,
      {
        ...receiving(postgres.url, { ...quick, concurrency: 4 }),
        operator: { hook: operator, more: { events: ['receiver.*'] } },
      },
      SERVER,
    );
    const { daemon } = await stage.start();
    const reportedOf = (status: string) =>
      operator.until((came) => came.some(({ event }) => event.data.status === status));
    const happen = happening(stage, 7);
    const before = await happen(20);
    await counted(stage, 20, rows);

    await postgres.kill();
    const during = await happen(40);
    const failing = await reportedOf('failing');
    expect(failing[0]?.event.data.record).toMatchObject({ receiver: 'warehouse' });
    await postgres.startAgain();
    await counted(stage, 60, rows);
    expect((await stage.states.condition('warehouse')).state).toBe('ok');

    const call = (path: string) => callApi(daemon.url, { path, token: TOKEN, method: 'POST' });
    expect(await call('/receivers/warehouse/pause')).toMatchObject({ status: 200 });
    const paused = await happen(10);
    await reportedOf('paused');
    expect(await rows()).toHaveLength(60);
    expect(await call('/receivers/warehouse/resume')).toMatchObject({ status: 200 });
    await counted(stage, 70, rows);

    await pool.query('ALTER TABLE intentwatch_events RENAME TO elsewhere');
    const missed = await happen(10);
    await eventually('the missing table is named', async () =>
      (await stage.states.condition('warehouse')).lastError?.includes('intentwatch postgres-table'),
    );
    await pool.query('ALTER TABLE elsewhere RENAME TO intentwatch_events');
    const found = await counted(stage, 80, rows);
    const ids = [before, during, paused, missed].flat().map(madeEventId);
    expect(found.map(({ id }) => id).sort()).toEqual([...new Set(ids)].sort());
    expectOrder(found);
  });

  test.each([
    1, 4,
  ])('takes all beside one event that it refuses, many in one step, %d at once', async (concurrency) => {
    const { postgres, pool, rows } = await warehouse();
    const subject = `intent:${hashOf(1_003)}`;
    await pool.query(
      `ALTER TABLE intentwatch_events ADD CONSTRAINT own CHECK (subject <> '${subject}' OR sequence <> 10)`,
    );
    const retries = { delays: Array.from({ length: 90 }, () => '2s'), jitter: 0 };
    const stage = await deliveryStage(open, receiving(postgres.url, { concurrency, retries }));
    await stage.start();
    const made = await happen(stage, 1_000, 20);
    // Later events of the refused one's transfer wait for it.
    await eventually('all others are there', async () => (await rows()).length === made.length - 41);
    const { rows: steps } = await pool.query('SELECT DISTINCT xmin::text FROM intentwatch_events');
    expect(steps.length).toBeLessThan(made.length / 3);
    await pool.query('ALTER TABLE intentwatch_events DROP CONSTRAINT own');
    const found = await counted(stage, made.length, rows);
    expect(found.map(({ id }) => id).sort()).toEqual(made.map(madeEventId).sort());
    expectOrder(found);
  });

  test('is tried by check --live, which writes nothing there', async () => {
    const { postgres, pool, rows } = await warehouse();
    const upstream = await cannedServer(() => ({ status: 200, body: { results: [] } }));
    open.later(() => upstream.close());
    const file = join(await new Stage(onTestFinished).folder(), 'intentwatch.yaml');
    const yaml = configYaml({
      baseUrl: upstream.url,
      redisUrl: inject('redisUrl'),
      prefix: testPrefix(),
      receivers: { warehouse: { url: postgres.url, more: { type: 'postgres' } } },
      subscriptions: [{ name: 's', intents: [hashOf(1)], receivers: ['warehouse'] }],
    });
    await writeFile(file, yaml);
    const { out } = await runCommand(['check', '--live', '--config', file]);
    expect(out.split('\n').find((line) => line.includes('Postgres'))).toMatch(
      /^ok +Postgres \(receiver warehouse\) +takes the login; an event could be inserted into intentwatch_events$/,
    );
    expect(await rows()).toEqual([]);

    const [check] = postgresChecks(await loadConfig(file, {}));
    if (check === undefined) throw new Error('there is no check of the receiver');
    await pool.query('DROP TABLE intentwatch_events');
    expect(await runCheck(check)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('(42P01); expected the table intentwatch_events'),
    });
    await pool.query((await runCommand(['postgres-table'])).out);
    expect(await runCheck(check)).toMatchObject({ ok: true });
    await postgres.kill();
    expect(await runCheck(check)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('connection refused: '),
    });
  });

  test('the SQL of docs/postgres.md runs in the order of the page, in a table that the command makes', async () => {
    const { pool } = await warehouse();
    await pool.query('CREATE ROLE daemon; CREATE SCHEMA audit; DROP TABLE intentwatch_events');
    await pool.query((await runCommand(['postgres-table'])).out);
    await pool.query((await runCommand(['postgres-table', '--table', 'audit.transfer_events'])).out);
    const page = await readFile(join(import.meta.dirname, '../../docs/postgres.md'), 'utf8');
    const blocks = pageBlocks(page).filter(({ language }) => language === 'sql');
    expect(blocks.length).toBe(3);
    for (const { code } of blocks) await pool.query(code, code.includes('$1') ? [0] : []);
  });
});
