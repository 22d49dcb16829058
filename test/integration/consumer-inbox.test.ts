import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type AnyEvent,
  claimEvent,
  createConsumer,
  createPostgresInbox,
  createSqliteInbox,
  type Inbox,
} from '../../consumer/src/index.ts';
import { VECTORS } from '../support/consumer-vectors.ts';
import { eventually } from '../support/eventually.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { renderedEvent } from '../support/rendered-event.ts';
import { signedRequest } from '../support/signed-request.ts';
import { WEBHOOK_SECRET } from '../support/webhook-receiver.ts';

type Stage = {
  /** Runs a handler that records its event; `fail` throws after that. */
  take: (event: AnyEvent, options?: { consumer?: string; fail?: Error }) => Promise<boolean>;
  inbox: (options?: { consumer?: string }) => Inbox<unknown>;
  effects: () => Promise<string[]>;
  /** Moves the time of all handled events back. */
  age: (days: number) => Promise<void>;
};

function eventOf(letter: string, sequence = 1): AnyEvent {
  const event = renderedEvent(`evt_${letter.repeat(40)}`);
  return { ...event, data: { ...event.data, sequence } };
}

function promises(stage: () => Stage): void {
  test('an event is handled once', async () => {
    expect(await stage().take(eventOf('a'))).toBe(true);
    expect(await stage().take(eventOf('a'))).toBe(false);
    expect(await stage().effects()).toEqual([eventOf('a').id]);
  });

  test('the writes of a handler that failed are rolled back with the id, and the event is handled when it comes again', async () => {
    await expect(stage().take(eventOf('a'), { fail: new Error('no') })).rejects.toThrow('no');
    expect(await stage().effects()).toEqual([]);
    expect(await stage().take(eventOf('a'))).toBe(true);
    expect(await stage().effects()).toEqual([eventOf('a').id]);
  });

  test('consumers with names of their own handle an event each', async () => {
    for (const consumer of ['billing', 'support'])
      expect(await stage().take(eventOf('a'), { consumer })).toBe(true);
    expect(await stage().take(eventOf('a'), { consumer: 'billing' })).toBe(false);
  });

  test.each(VECTORS.handling)('$name', async ({ deliveries }) => {
    const inbox = stage().inbox();
    for (const { event, verdict } of deliveries) {
      let outcome = 'handled';
      await inbox.run(event, async (_tx, { isStale }) => {
        outcome = isStale ? 'stale' : 'new';
      });
      expect(outcome).toBe(verdict);
    }
  });

  test('a consumer notifies its handler of a stale event, or skips it', async () => {
    const reported: [number, boolean, number | null][] = [];
    for (const [stale, consumer] of [
      ['handle', 'handling'],
      ['skip', 'skipping'],
    ] as const) {
      const receiver = createConsumer({
        secrets: WEBHOOK_SECRET,
        inbox: stage().inbox({ consumer }),
        stale,
      }).on('intent.filled', ({ data }, { isStale, lastSequence }) =>
        reported.push([data.sequence, isStale, lastSequence]),
      );
      for (const event of [eventOf('c', 3), eventOf('b', 2), eventOf('b', 2), eventOf('d', 4)])
        expect(await receiver.receive(signedRequest(event))).toMatchObject({ status: 204 });
    }
    const handled: [number, boolean, number | null][] = [
      [3, false, null],
      [2, true, 3],
      [4, false, 3],
    ];
    expect(reported).toEqual([...handled, ...handled.filter(([, isStale]) => !isStale)]);
  });

  test('a status that an update and a proof have overtaken is not stale, and its record is', async () => {
    const claims: unknown[] = [];
    for (const [letter, sequence, type] of [
      ['d', 4, 'intent.verified'],
      ['b', 2, 'intent.filled'],
      ['c', 3, 'intent.updated'],
      ['a', 1, 'intent.filled'],
    ] as const) {
      const event = eventOf(letter, sequence);
      const previousStatus = type === 'intent.filled' ? 'pending' : 'filled';
      await stage()
        .inbox()
        .run({ ...event, type, data: { ...event.data, previousStatus } }, async (_tx, claim) => {
          claims.push(claim);
        });
    }
    expect(claims).toEqual([
      { fact: 'proof', lastSequence: null, isStale: false, isRecordStale: false },
      { fact: 'status', lastSequence: null, isStale: false, isRecordStale: false },
      { fact: 'update', lastSequence: null, isStale: false, isRecordStale: false },
      { fact: 'status', lastSequence: 2, isStale: true, isRecordStale: true },
    ]);
  });

  test('old handled events are removed, the rest is not', async () => {
    await stage().take(eventOf('a'));
    await stage().age(61);
    await stage().take(eventOf('b', 2));
    expect(await stage().inbox().prune()).toBe(1);
    expect(await stage().take(eventOf('b', 2))).toBe(false);
    expect(await stage().take(eventOf('a'))).toBe(true);
  });

  test('its tables are made where they are missing, by several at once', async () => {
    await Promise.all([1, 2, 3, 4].map(() => stage().inbox().createTables()));
    expect(await stage().take(eventOf('a'))).toBe(true);
  });
}

const POSTGRES = needs(PARTS.postgres);

describe.skipIf(POSTGRES.skip)(`the inbox in Postgres${POSTGRES.note}`, () => {
  let server: PostgresProcess;
  let pool: pg.Pool;
  let stage: Stage;

  beforeAll(async () => {
    server = await PostgresProcess.start();
  });
  afterAll(() => server.close());

  beforeEach(async () => {
    const admin = new pg.Client(server.url);
    await admin.connect();
    const name = `t${Math.random().toString(36).slice(2)}`;
    await admin.query(`CREATE DATABASE ${name}`);
    await admin.end();
    pool = new pg.Pool({ connectionString: server.url.replace(/postgres$/, name), max: 5 });
    await createPostgresInbox({ pool }).createTables();
    await pool.query('CREATE TABLE effects (event_id text NOT NULL)');
    stage = {
      take: (event, { fail, ...options } = {}) =>
        createPostgresInbox({ pool, ...options }).run(event, async (tx) => {
          await tx.query('INSERT INTO effects VALUES ($1)', [event.id]);
          if (fail !== undefined) throw fail;
        }),
      inbox: (options) => createPostgresInbox({ pool, ...options }),
      effects,
      age: async (days) => {
        for (const table of ['inbox', 'facts'])
          await pool.query(`UPDATE intentwatch_${table} SET handled_at = now() - make_interval(days => $1)`, [
            days,
          ]);
      },
    };
  });
  afterEach(() => pool.end());

  const effects = async (): Promise<string[]> => {
    const { rows } = await pool.query<{ event_id: string }>('SELECT event_id FROM effects');
    return rows.map(({ event_id }) => event_id);
  };

  const somebodyWaits = (): Promise<unknown> =>
    eventually('a transaction waits for another', async () => {
      const { rowCount } = await pool.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rowCount === 1;
    });

  promises(() => stage);

  test.each([
    ['has handled it', undefined, false],
    ['failed', new Error('no'), true],
  ])('an event that comes twice at once waits for the one that began, which %s', async (_what, error, isHandled) => {
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const first = createPostgresInbox({ pool }).run(eventOf('a'), async (tx) => {
      await tx.query('INSERT INTO effects VALUES ($1)', ['first']);
      begun.resolve();
      await end.promise;
      if (error !== undefined) throw error;
    });
    const firstEnded = first.catch(() => undefined);
    await begun.promise;
    const second = stage.take(eventOf('a'));
    await somebodyWaits();
    end.resolve();
    await firstEnded;
    expect(await second).toBe(isHandled);
    expect(await effects()).toEqual(isHandled ? [eventOf('a').id] : ['first']);
  });

  test.each([
    'handled before',
    'new',
  ])('two events of a subject that is %s wait for each other', async (which) => {
    if (which !== 'new') await stage.take(eventOf('z', 1));
    const begun = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const newer = stage.inbox().run(eventOf('c', 3), async () => {
      begun.resolve();
      await end.promise;
    });
    await begun.promise;
    let isStale = false;
    const older = stage.inbox().run(eventOf('b', 2), async (_tx, claim) => {
      isStale = claim.isStale;
    });
    await somebodyWaits();
    end.resolve();
    expect(await Promise.all([newer, older])).toEqual([true, true]);
    expect(isStale).toBe(true);
  });

  test.each([
    'pool',
    'transaction',
  ])('a handler that hides the error of a statement does not get its event counted as handled (%s)', async (way) => {
    const transaction = async (work: (client: pg.PoolClient) => Promise<void>): Promise<void> => {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        await work(client);
        await client.query('COMMIT');
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    };
    const inbox: Inbox<pg.PoolClient> = createPostgresInbox(way === 'pool' ? { pool } : { transaction });
    const hidden = inbox.run(eventOf('a'), async (tx) => {
      await tx.query('INSERT INTO effects VALUES ($1)', [eventOf('a').id]);
      await tx.query('SELECT 1 / 0').catch(() => undefined);
    });
    await expect(hidden).rejects.toThrow('current transaction is aborted');
    expect(await stage.take(eventOf('a'))).toBe(true);
  });

  test('a connection that is lost in the middle costs the attempt, and nothing else', async () => {
    const lost = stage.inbox().run(eventOf('a'), async () => {
      await pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND state = 'idle in transaction'`,
      );
    });
    await expect(lost).rejects.toThrow();
    expect(await stage.take(eventOf('a'))).toBe(true);
    expect(await effects()).toEqual([eventOf('a').id]);
  });

  test('in transactions of the strictest kind an event that comes twice at once is handled once', async () => {
    const options = { ...pool.options, options: '-c default_transaction_isolation=serializable' };
    const strict = new pg.Pool(options);
    const ends = await Promise.allSettled(
      [1, 2, 3, 4].map(() =>
        createPostgresInbox({ pool: strict }).run(eventOf('a'), async (tx) => {
          await tx.query('INSERT INTO effects VALUES ($1)', [eventOf('a').id]);
        }),
      ),
    );
    await strict.end();
    for (const end of ends)
      if (end.status === 'rejected') expect(end.reason).toMatchObject({ code: '40001' });
    expect(await stage.take(eventOf('a'))).toBe(false);
    expect(await effects()).toEqual([eventOf('a').id]);
  });

  test('an event is claimed in a transaction of the caller', async () => {
    const client = await pool.connect();
    await client.query('BEGIN');
    const claim = { fact: 'status', lastSequence: null, isStale: false, isRecordStale: false };
    expect(await claimEvent(client, eventOf('a'))).toEqual(claim);
    await client.query('ROLLBACK');
    await client.query('BEGIN');
    expect(await claimEvent(client, eventOf('a'))).toEqual(claim);
    await client.query('COMMIT');
    expect(await claimEvent(client, eventOf('a'))).toBeNull();
    client.release();
  });
});

describe('the inbox in SQLite', () => {
  let folder = '';
  let database: DatabaseSync;
  let stage: Stage;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'intentwatch-inbox-'));
    database = new DatabaseSync(join(folder, 'inbox.db'));
    await createSqliteInbox({ database }).createTables();
    database.exec('CREATE TABLE effects (event_id TEXT NOT NULL)');
    stage = {
      take: (event, { fail, ...options } = {}) =>
        createSqliteInbox({ database, ...options }).run(event, async (tx) => {
          tx.prepare('INSERT INTO effects VALUES (?)').run(event.id);
          await Promise.resolve();
          if (fail !== undefined) throw fail;
        }),
      inbox: (options) => createSqliteInbox({ database, ...options }),
      effects,
      age: async (days) => {
        for (const table of ['inbox', 'facts'])
          database
            .prepare(`UPDATE intentwatch_${table} SET handled_at = ?`)
            .run(Date.now() - days * 86_400_000);
      },
    };
  });
  afterEach(() => {
    database.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const effects = async (): Promise<string[]> =>
    database
      .prepare('SELECT event_id FROM effects')
      .all()
      .map(({ event_id }) => String(event_id));

  promises(() => stage);

  const ENDED = 'has ended the transaction of this webhook';
  const endings: [string, (tx: DatabaseSync) => void][] = [
    ['ON CONFLICT ROLLBACK', (tx) => tx.exec("INSERT OR ROLLBACK INTO single VALUES ('used')")],
    ['RAISE(ROLLBACK)', (tx) => void tx.prepare('INSERT INTO refused VALUES (?)').run('any')],
  ];
  const writes: [string, (tx: DatabaseSync) => void][] = [
    ['exec', (tx) => tx.exec("INSERT INTO effects VALUES ('outside')")],
    ['a statement', (tx) => void tx.prepare('INSERT INTO effects VALUES (?)').run('outside')],
    ['a transaction of its own', (tx) => tx.exec("BEGIN; INSERT INTO effects VALUES ('outside')")],
  ];
  const cases = endings.flatMap(([by, end]) => writes.map(([way, write]) => ({ by, end, way, write })));

  test.each(cases)('a handler that catches the error of $by writes nothing after it with $way', async ({
    end,
    write,
  }) => {
    database.exec(`CREATE TABLE single (name TEXT PRIMARY KEY); INSERT INTO single VALUES ('used');
      CREATE TABLE refused (name TEXT);
      CREATE TRIGGER refuse BEFORE INSERT ON refused BEGIN SELECT RAISE(ROLLBACK, 'refused'); END`);
    const attempt = stage.inbox().run(eventOf('a'), async () => undefined);
    expect(await attempt).toBe(true);
    const hidden = createSqliteInbox({ database }).run(eventOf('b', 2), async (tx) => {
      const prepared = tx.prepare('INSERT INTO effects VALUES (?)');
      prepared.run('before');
      expect(() => end(tx)).toThrow();
      expect(() => prepared.run('outside')).toThrow(ENDED);
      expect(() => write(tx)).toThrow(ENDED);
    });
    await expect(hidden).rejects.toThrow();
    expect(await effects()).toEqual([]);
    expect(await stage.take(eventOf('b', 2))).toBe(true);
    expect(await effects()).toEqual([eventOf('b', 2).id]);
  });

  test('a transaction that the handler began past its own does not count as that of the event', async () => {
    const other = createSqliteInbox({ database }).run(eventOf('a'), async () => {
      database.exec("ROLLBACK; BEGIN; INSERT INTO effects VALUES ('outside')");
    });
    await expect(other).rejects.toThrow(ENDED);
    expect(await effects()).toEqual([]);
    expect(await stage.take(eventOf('a'))).toBe(true);
  });

  test('a handler has all of its database, with savepoints of its own', async () => {
    const handled = createSqliteInbox({ database }).run(eventOf('a'), async (tx) => {
      expect(tx).toBeInstanceOf(DatabaseSync);
      expect(tx.isTransaction).toBe(true);
      const insert = tx.prepare('INSERT INTO effects VALUES (?)');
      tx.exec('SAVEPOINT mine');
      insert.run('undone');
      tx.exec('ROLLBACK TO mine; RELEASE mine');
      expect(insert.run('stored').changes).toBe(1);
      const read = tx.prepare('SELECT event_id FROM effects');
      expect(read.all().map((row) => ({ ...row }))).toEqual([{ event_id: 'stored' }]);
      expect([...read.iterate()].length).toBe(1);
    });
    expect(await handled).toBe(true);
    expect(await effects()).toEqual(['stored']);
  });

  test('events that come at once are handled one after another', async () => {
    const inbox = createSqliteInbox({ database });
    const steps: string[] = [];
    const take = (event: AnyEvent): Promise<boolean> =>
      inbox.run(event, async () => {
        steps.push(`begin ${event.data.sequence}`);
        await new Promise((resolve) => setImmediate(resolve));
        steps.push(`end ${event.data.sequence}`);
      });
    expect(await Promise.all([take(eventOf('a', 1)), take(eventOf('b', 2)), take(eventOf('a', 1))])).toEqual([
      true,
      true,
      false,
    ]);
    expect(steps).toEqual(['begin 1', 'end 1', 'begin 2', 'end 2']);
  });

  test('while another process writes, the webhook fails, and is handled when it comes again', async () => {
    const other = new DatabaseSync(join(folder, 'inbox.db'));
    other.exec('BEGIN IMMEDIATE');
    database.exec('PRAGMA busy_timeout = 20');
    await expect(stage.take(eventOf('a'))).rejects.toThrow('database is locked');
    other.exec('COMMIT');
    other.close();
    expect(await stage.take(eventOf('a'))).toBe(true);
    expect(await effects()).toEqual([eventOf('a').id]);
  });
});
