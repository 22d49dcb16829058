import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PostgresReceiver } from '../../src/config/config.ts';
import type { RenderedEvent } from '../../src/domain/events/event.ts';
import { NameResolver } from '../../src/network/resolver.ts';
import { createNotifier } from '../../src/notifiers/create-notifier.ts';
import type { AttemptResult } from '../../src/notifiers/notifier.ts';
import { connectPostgres } from '../../src/notifiers/postgres/connection.ts';
import { tableDefinition } from '../../src/notifiers/postgres/table.ts';
import { Secret } from '../../src/secret.ts';
import { eventually } from '../support/eventually.ts';
import { incompressible } from '../support/incompressible.ts';
import { opening } from '../support/opening.ts';
import { needs, PARTS } from '../support/optional-parts.ts';
import { freePort } from '../support/port.ts';
import { PostgresProcess } from '../support/postgres-process.ts';
import { RawServer } from '../support/raw-server.ts';
import { renderedEvent } from '../support/rendered-event.ts';

const POSTGRES = needs(PARTS.postgres);
const { later, started } = opening();

const pem = (name: string): Promise<string> =>
  readFile(join(import.meta.dirname, '../fixtures/tls', `${name}.pem`), 'utf8');

const PASSWORD = 'correct-horse-battery-staple';

function receiverAt(url: string, changes: Partial<PostgresReceiver> = {}): PostgresReceiver {
  return {
    name: 'warehouse',
    type: 'postgres',
    url: new Secret(url),
    table: 'intentwatch_events',
    tls: null,
    events: ['*'],
    filter: { wallets: null, chains: null, minAmount: null },
    rateLimit: null,
    timeoutMs: 10_000,
    retries: { delaysMs: [], jitter: 0 },
    concurrency: 1,
    ordering: 'subject',
    disableAfterMs: 432_000_000,
    allowInsecure: true,
    apiNetworks: null,
    ...changes,
  };
}

function notifierOf(receiver: PostgresReceiver) {
  const notifier = createNotifier(receiver, { smtp: null, version: '0.0.0', eventUrl: null });
  later(() => notifier.close());
  const deliver = (event: RenderedEvent, entry?: string): Promise<AttemptResult> => {
    const { signal } = new AbortController();
    return notifier.deliver(event, { signal, nowMs: Date.now(), ...(entry === undefined ? {} : { entry }) });
  };
  return { notifier, deliver };
}

describe.skipIf(POSTGRES.skip)(`a receiver of type postgres${POSTGRES.note}`, () => {
  let postgres: PostgresProcess;
  let admin: pg.Pool;
  beforeAll(async () => {
    postgres = await PostgresProcess.start({
      tls: { cert: await pem('server'), key: await pem('server-key') },
    });
    admin = new pg.Pool({ connectionString: postgres.url, max: 2 });
    admin.on('error', () => undefined);
  });
  afterAll(async () => {
    await admin?.end();
    await postgres?.close();
  });
  beforeEach(async () => {
    await admin.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
    await admin.query(tableDefinition('intentwatch_events'));
  });

  /** A connection of the test's own, which ends with it. */
  const connected = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: postgres.url });
    await client.connect();
    later(() => client.end());
    return client;
  };

  const rows = async (table = 'intentwatch_events') =>
    (await admin.query(`SELECT * FROM ${table} ORDER BY number`)).rows;

  test('is connected to at its second address where the first gives no answer', async () => {
    const { port } = new URL(postgres.url);
    const silent = createServer(() => undefined).listen(Number(port), '127.0.0.2');
    await once(silent, 'listening');
    later(async () => void silent.close());
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-names-'));
    later(() => rm(folder, { recursive: true, maxRetries: 5 }));
    await writeFile(join(folder, 'hosts'), '127.0.0.2 db.test\n127.0.0.1 db.test\n');
    const names = new NameResolver({ timeoutMs: 5_000, folder });
    const target = receiverAt(postgres.url.replace('127.0.0.1', 'db.test'), { timeoutMs: 6_000 });
    const made = await connectPostgres(target, { names, signal: AbortSignal.timeout(6_000) });
    later(async () => made.destroy());
    expect((await made.client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  });

  test('inserts a whole event, with its place in the log', async () => {
    const { deliver } = notifierOf(receiverAt(postgres.url));
    const event = renderedEvent();
    expect(await deliver(event, '1795174224900-3')).toMatchObject({
      outcome: 'delivered',
      reason: 'inserted',
      httpStatus: null,
      retryAfterMs: null,
    });
    expect(await rows()).toEqual([
      {
        number: expect.any(String),
        id: event.id,
        type: 'intent.filled',
        occurred_at: new Date(event.timestamp),
        subject: event.data.subject.id,
        sequence: '1',
        position: '01795174224900-0000000003',
        event,
        inserted_at: expect.any(Date),
      },
    ]);
  });

  test('takes an event that is there already for delivered, and changes nothing', async () => {
    const { deliver } = notifierOf(receiverAt(postgres.url));
    await deliver(renderedEvent(), '1-0');
    const before = await rows();
    const again = { ...renderedEvent(), type: 'intent.settled' };
    expect(await deliver(again, '2-0')).toMatchObject({ outcome: 'delivered', reason: 'was there already' });
    expect(await rows()).toEqual(before);
  });

  test('inserts several in their order, all or none, but those that are there', async () => {
    const { deliver, notifier } = notifierOf(receiverAt(postgres.url));
    const options = { signal: new AbortController().signal, nowMs: Date.now() };
    const events = ['evt_3', 'evt_1', 'evt_2'].map((id, index) => ({
      event: renderedEvent(id),
      entry: `${index + 1}-0`,
    }));
    await deliver(renderedEvent('evt_1'), '2-0');
    expect(await notifier.deliverTogether?.(events, options)).toMatchObject({
      outcome: 'delivered',
      reason: 'inserted but for 1 of 3, which were there already',
    });
    expect((await rows()).map(({ id }) => id)).toEqual(['evt_1', 'evt_3', 'evt_2']);
    expect(await notifier.deliverTogether?.(events, options)).toMatchObject({
      reason: 'all were there already',
    });
    await admin.query(`ALTER TABLE intentwatch_events ADD CHECK (id <> 'evt_bad')`);
    const refused = ['evt_4', 'evt_bad', 'evt_5'].map((id) => ({ event: renderedEvent(id), entry: null }));
    const { outcome, reason } = (await notifier.deliverTogether?.(refused, options)) ?? {};
    expect([outcome, reason]).toEqual(['failed', expect.stringContaining('(23514)')]);
    expect(await rows()).toHaveLength(3);
  });

  test('positions sort as entries of the log do', async () => {
    const { deliver } = notifierOf(receiverAt(postgres.url));
    const entries = ['999999999999-12', '1795174224900-2', '1795174224900-10', '1795174224901-0'];
    for (const [index, entry] of [...entries.entries()].reverse()) {
      await deliver(renderedEvent(`evt_${String(index).padStart(40, '0')}`), entry);
    }
    const { rows: sorted } = await admin.query('SELECT id FROM intentwatch_events ORDER BY position');
    expect(sorted.map(({ id }) => Number(String(id).slice(4)))).toEqual([0, 1, 2, 3]);
  });

  test('stores characters unknown to Postgres as U+FFFD', async () => {
    const { deliver } = notifierOf(receiverAt(postgres.url));
    const event = renderedEvent();
    const record = { type: 'intent', note: 'a\0b \\u0000 \ud800', 'k\0y': ['\0'] };
    const odd = { ...event, data: { ...event.data, record, subject: { kind: 'intent', id: 'intent:\0' } } };
    expect(await deliver(odd)).toMatchObject({ outcome: 'delivered' });
    expect(await rows()).toMatchObject([
      {
        subject: 'intent:\ufffd',
        position: null,
        event: { data: { record: { note: 'a\ufffdb \\u0000 \ufffd', 'k\ufffdy': ['\ufffd'] } } },
      },
    ]);
  });

  test('no row becomes visible before one with a smaller number', async () => {
    // An insert that has its number is delayed before its commit.
    await admin.query(`
      CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$;
      CREATE TRIGGER hold AFTER INSERT ON intentwatch_events
        FOR EACH ROW WHEN (NEW.id = 'evt_slow') EXECUTE FUNCTION hold()`);
    const waiting = async (): Promise<number> =>
      (await admin.query(`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)).rowCount ?? 0;
    const holder = await connected();
    await holder.query('SELECT pg_advisory_lock(42)');
    const [one, other] = [notifierOf(receiverAt(postgres.url)), notifierOf(receiverAt(postgres.url))];
    const slow = one.deliver(renderedEvent('evt_slow'));
    await eventually('the first insert is held up', async () => (await waiting()) === 1);
    const fast = other.deliver(renderedEvent('evt_fast'));
    await eventually(
      'the other waits, or is done',
      async () => (await waiting()) === 2 || (await rows()).length > 0,
    );
    expect(await rows()).toEqual([]);
    await holder.query('SELECT pg_advisory_unlock(42)');
    expect(await Promise.all([slow, fast])).toMatchObject([{ reason: 'inserted' }, { reason: 'inserted' }]);
    expect(await rows()).toMatchObject([{ id: 'evt_slow' }, { id: 'evt_fast' }]);
  });

  test('inserts each event once that comes from two at the same time', async () => {
    const notifiers = Array.from({ length: 4 }, () => notifierOf(receiverAt(postgres.url)));
    const ids = Array.from({ length: 40 }, (_, index) => `evt_${String(index).padStart(40, '0')}`);
    const results = await Promise.all(
      notifiers.map(async ({ deliver }) => {
        const reasons: string[] = [];
        for (const id of ids) reasons.push((await deliver(renderedEvent(id))).reason);
        return reasons;
      }),
    );
    expect(results.flat().filter((reason) => reason === 'inserted')).toHaveLength(ids.length);
    expect((await rows()).map(({ id }) => id).sort()).toEqual(ids);
  });

  test('takes a table in a schema, in any case, with columns of its own', async () => {
    await admin.query('DROP SCHEMA IF EXISTS "Audit" CASCADE; CREATE SCHEMA "Audit"');
    await admin.query(tableDefinition('Audit.Events'));
    await admin.query(`ALTER TABLE "Audit"."Events" ADD COLUMN seen boolean NOT NULL DEFAULT false`);
    const { deliver } = notifierOf(receiverAt(postgres.url, { table: 'Audit.Events' }));
    expect(await deliver(renderedEvent())).toMatchObject({ outcome: 'delivered' });
    expect(await rows('"Audit"."Events"')).toMatchObject([{ seen: false }]);
  });

  test.each([
    ['no table', 'DROP TABLE intentwatch_events', '42P01', 'intentwatch postgres-table prints what makes it'],
    ['no column', 'ALTER TABLE intentwatch_events DROP COLUMN position', '42703', 'expected the columns'],
    [
      'no key',
      'ALTER TABLE intentwatch_events DROP CONSTRAINT intentwatch_events_id_key',
      '42P10',
      'expected a unique key on the column id',
    ],
    [
      'a column without a default',
      'ALTER TABLE intentwatch_events ADD COLUMN own text NOT NULL',
      '23502',
      'expected a default',
    ],
  ])('fails with %s, states the expected table, and goes on once it is there', async (_what, break_, code, advice) => {
    const { deliver } = notifierOf(receiverAt(postgres.url));
    await admin.query(break_);
    const failed = await deliver(renderedEvent());
    expect(failed).toMatchObject({ outcome: 'failed', retryAfterMs: null });
    expect(failed.reason).toContain(`(${code})`);
    expect(failed.reason).toContain(advice);
    await admin.query(`DROP TABLE IF EXISTS intentwatch_events; ${tableDefinition('intentwatch_events')}`);
    expect(await deliver(renderedEvent())).toMatchObject({ outcome: 'delivered' });
  });

  test('fails where the user may not insert', async () => {
    await admin.query(`DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN`);
    await admin.query(
      'GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT (id) ON intentwatch_events TO reader',
    );
    const { deliver } = notifierOf(receiverAt(postgres.url.replace('postgres@', 'reader@')));
    const { reason } = await deliver(renderedEvent());
    expect(reason).toContain('(42501); expected a user who may INSERT');
    await admin.query('GRANT INSERT ON intentwatch_events TO reader');
    expect(await deliver(renderedEvent())).toMatchObject({ outcome: 'delivered' });
  });

  test('connects anew after its connection was ended from the other side', async () => {
    const { deliver } = notifierOf(receiverAt(postgres.url));
    await deliver(renderedEvent('evt_1'));
    await admin.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'intentwatch'`,
    );
    const second = await deliver(renderedEvent('evt_2'));
    // It may have used the connection before it noticed its end.
    if (second.outcome === 'failed')
      expect(await deliver(renderedEvent('evt_2'))).toMatchObject({ outcome: 'delivered' });
    expect(await rows()).toHaveLength(2);
  });

  test('gives up an insert that waits for longer than the timeout, and one that is cut off', async () => {
    const { notifier, deliver } = notifierOf(receiverAt(postgres.url, { timeoutMs: 3_000 }));
    const holder = await connected();
    await holder.query('BEGIN; LOCK TABLE intentwatch_events');
    expect(await deliver(renderedEvent())).toMatchObject({
      outcome: 'failed',
      reason: 'not inserted within 3000 ms',
      retryAfterMs: 3_000,
    });
    const cut = new AbortController();
    const pending = notifier.deliver(renderedEvent(), { signal: cut.signal, nowMs: Date.now() });
    cut.abort(new DOMException('shutdown', 'AbortError'));
    await expect(pending).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
    await holder.query('ROLLBACK');
    // On a machine that stalls for the whole timeout, one more is given up.
    await eventually('it is delivered', async () => {
      const { outcome, reason } = await deliver(renderedEvent());
      if (outcome !== 'delivered') expect(reason).toBe('not inserted within 3000 ms');
      return outcome === 'delivered';
    });
    expect(await rows()).toHaveLength(1);
  });

  test('has no statement waiting in the server after it gives up', async () => {
    const { deliver } = notifierOf(receiverAt(postgres.url, { timeoutMs: 3_000 }));
    const holder = await connected();
    await holder.query('BEGIN; LOCK TABLE intentwatch_events');
    for (const id of ['evt_1', 'evt_2', 'evt_3']) {
      expect(await deliver(renderedEvent(id))).toMatchObject({ outcome: 'failed' });
    }
    await eventually('no connection is left', async () => {
      const { rowCount } = await admin.query(
        `SELECT 1 FROM pg_stat_activity WHERE application_name = 'intentwatch'`,
      );
      return rowCount === 0;
    });
    await holder.query('ROLLBACK');
    expect(await rows()).toEqual([]);
  });

  test('inserts an event about a subject with a name of any length', async () => {
    const { deliver } = notifierOf(receiverAt(postgres.url));
    const event = renderedEvent();
    const id = `intent:${incompressible(40_000)}`;
    const long = { ...event, data: { ...event.data, subject: { kind: 'intent', id } } };
    expect(await deliver(long)).toMatchObject({ outcome: 'delivered' });
    expect(await rows()).toMatchObject([{ subject: id }]);
    await admin.query(
      'TRUNCATE intentwatch_events; DROP INDEX intentwatch_events_subject; CREATE INDEX own ON intentwatch_events (sequence, subject)',
    );
    const { outcome, reason } = await deliver({ ...long, id: 'evt_other' });
    expect([outcome, reason]).toEqual(['failed', expect.stringContaining('(54000); expected no index')]);
    expect(await deliver(renderedEvent('evt_short'))).toMatchObject({ outcome: 'delivered' });
  });

  test('reports that it reached a server that does not write, or has no free connection', async () => {
    await admin.query(`DROP ROLE IF EXISTS writer; CREATE ROLE writer LOGIN CONNECTION LIMIT 0`);
    await admin.query('GRANT ALL ON intentwatch_events TO writer; GRANT USAGE ON SCHEMA public TO writer');
    const { deliver } = notifierOf(receiverAt(postgres.url.replace('postgres@', 'writer@')));
    expect((await deliver(renderedEvent())).reason).toContain('too many connections');
    await admin.query(
      'ALTER ROLE writer CONNECTION LIMIT 1; ALTER ROLE writer SET default_transaction_read_only = on',
    );
    expect((await deliver(renderedEvent())).reason).toContain(
      '(25006); expected a server and a user that may write',
    );
    await admin.query('ALTER ROLE writer RESET default_transaction_read_only');
    // The server may still be ending the previous connection.
    await eventually('it is delivered', async () => (await deliver(renderedEvent())).outcome === 'delivered');
  });

  test('uses TLS, with a certificate that fits, unless it is reported not to', async () => {
    const tls = { ca: await pem('ca'), identity: null };
    const url = postgres.url.replace('127.0.0.1', 'localhost');
    const secure = notifierOf(receiverAt(url, { allowInsecure: false, tls }));
    expect(await secure.deliver(renderedEvent())).toMatchObject({ outcome: 'delivered' });
    const { rows: used } = await admin.query(
      `SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'intentwatch'`,
    );
    expect(used).toEqual([{ ssl: true }]);
    const unknown = notifierOf(receiverAt(url, { allowInsecure: false }));
    const { outcome, reason } = await unknown.deliver(renderedEvent());
    expect([outcome, reason]).toEqual(['failed', expect.stringMatching(/certificate/)]);
  });
});

test('does not speak to a server that has no TLS', async () => {
  // The answer of a Postgres without TLS.
  const server = await started(new RawServer((socket) => void socket.on('data', () => socket.write('N'))));
  const url = `postgres://daemon:${PASSWORD}@127.0.0.1:${server.port}/events`;
  const { deliver } = notifierOf(receiverAt(url, { allowInsecure: false }));
  expect(await deliver(renderedEvent())).toMatchObject({
    outcome: 'failed',
    reason: `The server does not support SSL connections: 127.0.0.1:${server.port}; expected a server with TLS, or allowInsecure: true`,
  });
});

test('connects without a bound on statements to a pooler without that option', async () => {
  const requests: string[] = [];
  const pooler = await started(
    new RawServer((socket) => {
      socket.once('data', (chunk: Buffer) => {
        requests.push(chunk.toString('latin1'));
        const isRefused = chunk.includes('statement_timeout');
        const error = isRefused ? '08P01\0Munsupported startup parameter' : '53300\0Mno more connections';
        const fields = Buffer.from(`SFATAL\0C${error}\0\0`);
        const head = Buffer.from('E\0\0\0\0');
        head.writeUInt32BE(fields.length + 4, 1);
        socket.end(Buffer.concat([head, fields]));
      });
    }),
  );
  const { deliver } = notifierOf(receiverAt(`postgres://daemon:${PASSWORD}@127.0.0.1:${pooler.port}/events`));
  expect((await deliver(renderedEvent())).reason).toBe('no more connections (53300)');
  expect(requests.map((text) => text.includes('statement_timeout'))).toEqual([true, false]);
});

test('reports that no server answers, without the password', async () => {
  const url = `postgres://daemon:${PASSWORD}@127.0.0.1:${await freePort()}/events`;
  const { deliver } = notifierOf(receiverAt(url));
  expect(await deliver(renderedEvent())).toMatchObject({
    outcome: 'failed',
    reason: expect.stringMatching(/^connection refused: 127\.0\.0\.1:\d+$/),
  });
  const silent = await started(new RawServer(() => undefined));
  const slow = notifierOf(
    receiverAt(`postgres://daemon:${PASSWORD}@127.0.0.1:${silent.port}/events`, { timeoutMs: 300 }),
  );
  expect(await slow.deliver(renderedEvent())).toMatchObject({ reason: 'not inserted within 300 ms' });
  const echoing = await started(
    new RawServer((socket) => {
      const fields = Buffer.from(`SFATAL\0C28P01\0Mno login with ${PASSWORD}\0\0`);
      const head = Buffer.from('E\0\0\0\0');
      head.writeUInt32BE(fields.length + 4, 1);
      socket.on('data', () => socket.end(Buffer.concat([head, fields])));
    }),
  );
  const reported = notifierOf(receiverAt(`postgres://daemon:${PASSWORD}@127.0.0.1:${echoing.port}/events`));
  expect((await reported.deliver(renderedEvent())).reason).toBe('no login with [secret] (28P01)');
});
