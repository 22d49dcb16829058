import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { tableDefinition } from '../../src/notifiers/postgres/table.ts';
import { type DeliveryStage, deliveryStage, happening } from '../support/delivery-stage.ts';
import { eventually } from '../support/eventually.ts';
import { madeEventId } from '../support/log-entries.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { RawServer } from '../support/raw-server.ts';
import { reloadable } from '../support/reloadable.ts';

const POSTGRES = needs(PARTS.postgres);
const open = opening();
const TLS = join(import.meta.dirname, '../fixtures/tls');
const QUICK = { type: 'postgres', retries: { delays: Array.from({ length: 90 }, () => '500ms'), jitter: 0 } };

/** A Postgres with the table and a user who may insert into it. `rules`: lines of its `pg_hba.conf` for that user. */
async function database() {
  const pem = (name: string): Promise<string> => readFile(join(TLS, `${name}.pem`), 'utf8');
  const postgres = await PostgresProcess.start({
    tls: { cert: await pem('server'), key: await pem('server-key') },
  });
  open.later(() => postgres.close());
  const pool = new pg.Pool({ connectionString: postgres.url, max: 1 });
  pool.on('error', () => undefined);
  open.later(() => pool.end());
  await pool.query(tableDefinition('intentwatch_events'));
  await pool.query(`
    CREATE ROLE writer LOGIN PASSWORD 'first-password';
    GRANT INSERT, SELECT (id) ON intentwatch_events TO writer`);
  const change = async (rule: string): Promise<void> => {
    const { rows } = await pool.query<{ path: string }>(
      `SELECT current_setting('hba_file') AS path, pg_reload_conf()`,
    );
    const lines = ['host all postgres all trust', rule].map((line) => `('${line}')`).join(', ');
    await pool.query(`COPY (SELECT * FROM (VALUES ${lines}) AS lines) TO '${rows[0]?.path}'`);
    await pool.query('SELECT pg_reload_conf()');
    await pool.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'writer'`);
  };
  const ids = async (): Promise<string[]> =>
    (await pool.query<{ id: string }>('SELECT id FROM intentwatch_events ORDER BY number')).rows.map(
      ({ id }) => id,
    );
  const urlWith = (password: string): string =>
    postgres.url.replace('postgres@127.0.0.1', `writer:${password}@localhost`);
  return { postgres, pool, change, ids, urlWith };
}

async function failedWith({ states }: DeliveryStage, words: string): Promise<void> {
  await eventually(`it fails with ${words}`, async () =>
    (await states.condition('warehouse')).lastError?.includes(words),
  );
}

describe.skipIf(POSTGRES.skip)(`while a receiver of type postgres is at work${POSTGRES.note}`, () => {
  test('its password is changed there, and then in the config', async () => {
    const { pool, change, ids, urlWith } = await database();
    await change('host all writer all scram-sha-256');
    const receiving = (url: string) => ({ warehouse: { hook: { url }, url, more: QUICK } });
    const stage = await deliveryStage(open, receiving(urlWith('first-password')));
    const { daemon, lines, write } = await reloadable(stage.config, open);
    const happen = happening(stage, 10);
    const before = await happen(40);
    await stage.drained('warehouse');
    await pool.query(`ALTER ROLE writer PASSWORD 'second-password'`);
    await pool.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'writer'`);
    const during = await happen(40);
    await failedWith(stage, 'password authentication failed for user "writer" (28P01)');
    await write({ ...stage.config, receivers: receiving(urlWith('second-password')) });
    expect(await daemon.reload()).toMatchObject({
      ok: true,
      changes: { receivers: { changed: ['warehouse'] } },
    });
    await stage.drained('warehouse');
    expect((await ids()).sort()).toEqual([...before, ...during].map(madeEventId).sort());
    expect(JSON.stringify(lines)).not.toMatch(/(first|second)-password/);
  });

  test('the server begins to demand TLS, and then the config has it', async () => {
    const { change, ids, urlWith } = await database();
    await change('host all writer all scram-sha-256');
    const url = urlWith('first-password');
    const receiving = (more: object) => ({ warehouse: { hook: { url }, url, more: { ...QUICK, ...more } } });
    const stage = await deliveryStage(open, receiving({}));
    const { daemon, write } = await reloadable(stage.config, open);
    const happen = happening(stage, 10);
    const before = await happen(40);
    await stage.drained('warehouse');
    await change('hostssl all writer all scram-sha-256');
    const during = await happen(40);
    await failedWith(stage, '(28000); expected a connection with TLS: without allowInsecure');
    const secure = receiving({ allowInsecure: false, tls: { ca: join(TLS, 'ca.pem') } });
    await write({ ...stage.config, receivers: secure });
    expect(await daemon.reload()).toMatchObject({ ok: true });
    await stage.drained('warehouse');
    expect((await ids()).sort()).toEqual([...before, ...during].map(madeEventId).sort());
  });

  test('its host accepts connections and sends nothing, and the config is changed meanwhile', async () => {
    const { ids, urlWith } = await database();
    const connected = Promise.withResolvers<void>();
    const silent = await open.started(new RawServer(() => connected.resolve()));
    const receiving = (url: string) => ({
      warehouse: { hook: { url }, url, more: { ...QUICK, timeout: '20s' } },
    });
    const url = `postgres://writer:first-password@127.0.0.1:${silent.port}/postgres`;
    const stage = await deliveryStage(open, receiving(url));
    const { daemon, write } = await reloadable(stage.config, open);
    const happen = happening(stage, 10);
    const made = await happen(40);
    await connected.promise;
    await write({ ...stage.config, receivers: receiving(urlWith('first-password')) });
    expect(await daemon.reload()).toMatchObject({ ok: true });
    // One event of one transfer hangs: the other transfers do not wait until it has failed.
    await eventually('the others are there', async () => (await ids()).length >= 36);
    await stage.drained('warehouse');
    expect((await ids()).sort()).toEqual(made.map(madeEventId).sort());
  });

  test('two others insert into the same table, and Postgres is restarted', async () => {
    const { postgres, pool, ids } = await database();
    const names = ['one', 'two', 'three'];
    const stage = await deliveryStage(
      open,
      Object.fromEntries(names.map((name) => [name, { hook: postgres, more: QUICK }])),
    );
    await stage.start();
    const happen = happening(stage, 10);
    const before = await happen(300);
    await eventually('some are there', async () => (await ids()).length >= 100);
    await postgres.kill();
    const after = await happen(100);
    await postgres.startAgain();
    for (const name of names) await stage.drained(name);
    expect((await ids()).sort()).toEqual([...before, ...after].map(madeEventId).sort());
    const { rows: disordered } = await pool.query(`
      SELECT id FROM (SELECT id, sequence, lag(sequence) OVER (PARTITION BY subject ORDER BY number) AS before
      FROM intentwatch_events) AS rows WHERE sequence < before`);
    expect(disordered).toEqual([]);
  });
});
