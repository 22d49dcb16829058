import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { BookStore, OvertakenError } from '../../src/books/book-store.ts';
import { Feed } from '../../src/books/books.ts';
import { BooksReader } from '../../src/books/reader.ts';
import { type Database, prepareTables } from '../../src/books/sql/database.ts';
import { openSqlite } from '../../src/books/sql/sqlite.ts';
import type { BooksReport } from '../../src/domain/books/report-schema.ts';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { type RedisClient, redisTimeMs } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { DeliveryStore } from '../../src/store/deliveries.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { RelayLease } from '../../src/store/lease.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { DAY_MS, FIRST_MS, type Reported, reportedEvent } from '../support/books-stage.ts';
import { testPrefix } from '../support/daemon.ts';
import { orderOf, recordOne } from '../support/delivery-stage.ts';
import { firstEpoch } from '../support/epoch.ts';
import { opening } from '../support/opening.ts';
import { syncConfig } from '../support/sync-config.ts';

const { later } = opening();

/** Books that are fed from a log of the test's own, by any number of feeds. */
async function stage({ retentionMs = 400 * DAY_MS } = {}) {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-feed-'));
  later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const database = openSqlite(join(folder, 'books.sqlite'));
  later(() => database.close());
  await prepareTables(database);
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  const events = new EventLog(redis, keys);
  const sources = {
    events,
    subjects,
    registry: new Registry(redis, keys, subjects),
    deliveries: new DeliveryStore(redis, keys),
    lease: new RelayLease(redis, keys),
    directory: COMMON_NAMES,
  };
  const rules = { zone: 'UTC', closeAfterMs: 3_600_000, retentionMs, checked: new Set<string>() };
  const reader = new BooksReader(database, { ...rules, directory: COMMON_NAMES });
  const feed = (store: Database = database): Feed => new Feed(new BookStore(store), sources, rules);
  const append = async (...reported: Reported[]): Promise<void> => {
    for (const one of reported) {
      const fields = {
        kind: 'event',
        event: JSON.stringify(reportedEvent(one)),
        claimKeys: '["s|wallet:0x01"]',
      };
      await redis.xadd(keys.events, `${FIRST_MS + one.seenMs}-*`, ...Object.entries(fields).flat());
    }
  };
  const count = async (table: string): Promise<number> =>
    Number((await database.read((sql) => sql.all(`SELECT count(*) AS n FROM ${table}`)))[0]?.n);
  const report = (day: string, nowMs = NOW_MS): Promise<BooksReport> => reader.report({ day }, nowMs);
  return { ...sources, redis, keys, database, feed, append, count, report };
}

const reported = (transfer: number, sequence: number, status: string, atMs: number): Reported => ({
  transfer,
  sequence,
  status,
  atMs,
  seenMs: atMs + 500,
  amount: 1_000_000n + BigInt(transfer),
});

const NOW_MS = FIRST_MS + 3 * DAY_MS;

test('takes every event in once when two processes feed the books by turns and at once', async () => {
  const { feed, append, count, report } = await stage();
  for (let transfer = 1; transfer <= 300; transfer += 1) {
    await append(reported(transfer, 1, 'pending', transfer * 1_000));
  }
  const feeds = [feed(), feed()];
  const outcomes = { ingested: 0, overtaken: 0 };
  for (let round = 0; round < 6; round += 1) {
    const results = await Promise.allSettled(feeds.map((one) => one.round(NOW_MS)));
    for (const [index, result] of results.entries()) {
      if (result.status === 'fulfilled') outcomes.ingested += result.value.ingested;
      else {
        expect(result.reason).toBeInstanceOf(OvertakenError);
        outcomes.overtaken += 1;
        feeds[index]?.reset();
      }
    }
  }
  expect(outcomes.ingested).toBe(300);
  expect(outcomes.overtaken).toBeGreaterThan(0);
  expect(await count('books_events')).toBe(300);
  expect(await count('books_postings')).toBe(300);
  const [balance] = (await report('2026-11-21')).balances;
  expect(balance?.closing).toEqual({ count: 300, amount: '300045150', units: '300.04515' });
});

test('a late notification is no exception of the closed day of its event, also where a clock was ahead', async () => {
  const { redis, keys, registry, feed, append, report } = await stage();
  const receiver = (name: string) => ({
    name,
    type: 'webhook' as const,
    events: ['*'],
    filter: { wallets: null, chains: null, minAmount: null },
    ordering: 'none' as const,
  });
  const subscription = (name: string) => ({
    name,
    receivers: [name],
    subjects: [asSubjectId('wallet:0x01')],
    metadata: {},
    history: 'skip' as const,
    overdueAfterMs: null,
    warnBeforeMs: null,
    recipients: [],
  });
  const names = ['s', 't'];
  const wanted = { digest: '', graceSpanMs: 0, routes: [], receivers: names.map(receiver) };
  await syncConfig(registry, { ...wanted, subscriptions: names.map(subscription) }, '0-0');
  // The clock of Redis was a month ahead: entries have that time until it has come.
  const aheadMs = 31 * DAY_MS;
  const ahead = { ...reported(1, 1, 'settled', 1_000), seenMs: aheadMs };
  await append(reported(2, 1, 'pending', 500), ahead);
  const entry = `${FIRST_MS + aheadMs}-0`;
  const event = reportedEvent(ahead).id;
  const feeding = feed();
  await feeding.round(NOW_MS);
  const day = new Date(FIRST_MS).toISOString().slice(0, 10);
  const closed = await report(day);
  expect(closed.state).toBe('closed');
  const fields = { kind: 'subscribers', event, entry, claimKeys: '["t|wallet:0x01"]' };
  await redis.xadd(keys.events, `${FIRST_MS + aheadMs}-*`, ...Object.entries(fields).flat());
  await feeding.round(NOW_MS);
  expect((await report(day)).exceptions).toEqual(closed.exceptions);
});

test('lists no event as undelivered that the relay passed without a delivery, as by an earlier filter', async () => {
  const { redis, keys, registry, deliveries, lease, feed, append, report } = await stage();
  const receiver = {
    name: 's',
    type: 'webhook' as const,
    events: ['*'],
    filter: { wallets: null, chains: null, minAmount: null },
    ordering: 'none' as const,
  };
  const subscription = {
    ...{ name: 's', receivers: ['s'], subjects: [asSubjectId('wallet:0x01')], metadata: {} },
    ...{ history: 'skip' as const, overdueAfterMs: null, warnBeforeMs: null, recipients: [] },
  };
  const wanted = { digest: '', graceSpanMs: 0, routes: [], receivers: [receiver] };
  await syncConfig(registry, { ...wanted, subscriptions: [subscription] }, '0-0');
  const [passed, opened, behind] = [1, 2, 3].map((transfer) =>
    reported(transfer, 1, 'pending', transfer * 1_000),
  );
  if (passed === undefined || opened === undefined || behind === undefined) throw new Error('expected three');
  await append(passed, opened, behind);
  const entry = `${FIRST_MS + opened.seenMs}-0`;
  await deliveries.open((await lease.hold()) ?? '', {
    receiver: 's',
    deliveries: [{ id: reportedEvent(opened).id, entry, claimKeys: ['s|wallet:0x01'], subject: null }],
    replay: null,
    cursor: { from: '0-0', to: entry },
    process: 'p',
  });
  await feed().round(NOW_MS);
  const { exceptions } = await report(new Date(FIRST_MS).toISOString().slice(0, 10));
  const undelivered = exceptions.filter(({ kind }) => kind === 'undelivered').map(({ subject }) => subject);
  const idOf = (one: Reported): string => reportedEvent(one).data.subject.id;
  expect(undelivered.toSorted()).toEqual([idOf(opened), idOf(behind)].toSorted());
  expect(await redis.hget(keys.cursors, 's')).toBe(entry);
});

test('reports that the log was lost, goes on with the new one, and ingests nothing twice', async () => {
  const { redis, keys, events, feed, append, count, report } = await stage();
  await append(reported(1, 1, 'pending', 1_000), reported(2, 1, 'pending', 2_000));
  const one = feed();
  expect((await one.round(NOW_MS)).broke).toBeNull();
  await redis.del(keys.events, keys.logName);
  await append(reported(1, 1, 'pending', 1_000), reported(2, 1, 'filled', 9_000));
  const fed = await one.round(NOW_MS);
  expect(fed.broke?.kind).toBe('other-log');
  expect((await one.round(NOW_MS)).broke).toBeNull();
  expect(await count('books_events')).toBe(3);
  expect(fed.broke?.detail).toContain(await events.name());
  const { notes, balances } = await report('2026-11-23');
  expect(notes.some((note) => note.includes('lost with its Redis'))).toBe(true);
  expect(balances[0]?.closing.count).toBe(1);
});

test('reports a Redis that was set back behind the cursor, and ingests the new events', async () => {
  const { redis, keys, events, feed, append, count } = await stage();
  await append(reported(1, 1, 'pending', 1_000), reported(2, 1, 'pending', 90_000));
  const one = feed();
  await one.round(NOW_MS);
  await redis.xdel(keys.events, await events.newest());
  // The repeated entries are behind the cursor: only the missing entry shows the loss.
  await append(reported(2, 1, 'filled', 95_000), reported(3, 1, 'pending', 96_000));
  expect((await one.round(NOW_MS)).broke?.kind).toBe('lost');
  expect((await one.round(NOW_MS)).broke).toBeNull();
  expect(await count('books_events')).toBe(4);
});

test('goes on from the stored state of a transfer whose snapshot went back with Redis', async () => {
  const { redis, keys, subjects, events, feed, append, count, report } = await stage();
  const subject = await storeHistory({ redis, subjects }, 1);
  const filled = reported(1, 2, 'filled', 95_000);
  await append(reported(1, 1, 'pending', 1_000), filled);
  const one = feed();
  await one.round(NOW_MS);
  const before = await report('2026-11-23');
  await redis.xdel(keys.events, await events.newest());
  subjects.epoch.noteTruncated();
  await subjects.epoch.check();
  expect((await one.round(NOW_MS)).broke?.kind).toBe('lost');
  await one.round(NOW_MS + 60_000);
  expect(subject).toBe(reportedEvent(filled).data.subject.id);
  expect((await report('2026-11-23')).balances).toEqual(before.balances);
  // A poll finds it again under its old id.
  await append({ ...filled, seenMs: 99_000 });
  await one.round(NOW_MS + 120_000);
  expect(await count('books_events')).toBe(2);
  expect((await report('2026-11-23')).balances).toEqual(before.balances);
});

test('reports events that were trimmed from the log before they were read', async () => {
  const { events, feed, append, report } = await stage();
  await append(reported(1, 1, 'pending', 1_000));
  const one = feed();
  await one.round(NOW_MS);
  await append(reported(2, 1, 'pending', 2_000), reported(3, 1, 'pending', 90_000));
  await events.trim(FIRST_MS + 60_000);
  expect((await one.round(NOW_MS)).broke?.kind).toBe('trimmed');
  expect((await report('2026-11-23')).notes.some((note) => note.includes('left the log (retention)'))).toBe(
    true,
  );
});

/** Stores the snapshot of a transfer that was under way when its wallet was subscribed: it has no event. */
async function storeHistory(
  { redis, subjects }: { redis: RedisClient; subjects: SubjectStore },
  transfer: number,
): Promise<string> {
  const { record } = reportedEvent(reported(transfer, 1, 'pending', -3_600_000)).data;
  const subject = asSubjectId(String(record.id));
  const nowMs = await redisTimeMs(redis);
  const committed = await subjects.commit({
    subject,
    asOf: '0',
    token: 'history',
    claims: [{ key: 's|wallet:0x01', atMs: nowMs, historyBefore: FIRST_MS, served: false }],
    snapshot: {
      version: 1,
      sequence: 0,
      epoch: 1,
      status: 'pending',
      updatedAt: Math.floor(FIRST_MS / 1_000) - 3_600,
      record,
      observedAtMs: FIRST_MS + 1_000,
      changedAtMs: FIRST_MS + 1_000,
      pendingSince: Math.floor(FIRST_MS / 1_000) - 3_600,
      flags: [],
      ahead: null,
      former: [],
      emitted: [],
      unconfirmed: null,
    },
  });
  expect(committed.outcome).toBe('committed');
  return subject;
}

test('takes transfers that were under way when their wallet was subscribed from their snapshots, as the opening', async () => {
  const { redis, subjects, feed, append, report } = await stage();
  const subject = await storeHistory({ redis, subjects }, 7);
  await append(reported(8, 1, 'pending', 5_000));
  const one = feed();
  const duringMs = FIRST_MS + 7_200_000;
  while (!(await one.round(duringMs)).isAtEnd);
  await append(reported(7, 1, 'filled', 60_000));
  await one.round(duringMs + 1);
  const day = await report('2026-11-21');
  const [balance] = day.balances;
  expect(balance?.opening).toEqual({ count: 1, amount: '1000007', units: '1.000007' });
  expect(balance?.ended.amount).toBe('1000007');
  expect(balance?.closing.amount).toBe('1000008');
  const row = day.transfers.find((transfer) => transfer.subject === subject);
  expect(row).toMatchObject({ carried: true, fillSeconds: 3_660, phase: 'delivered' });
  expect(day.checks.every(({ ok }) => ok)).toBe(true);
});

test('ingests the open transfers of a wallet also where they were stored after the clock was set back', async () => {
  const { redis, subjects, feed, append, count } = await stage();
  await append(reported(8, 1, 'pending', 5_000));
  const nowMs = await redisTimeMs(redis);
  const one = feed();
  while (!(await one.round(nowMs + DAY_MS)).isAtEnd);
  await storeHistory({ redis, subjects }, 7);
  await one.round(nowMs + 60_000);
  expect(await count('books_transfers')).toBe(2);
});

test('closes days when they are over, books late events in the open day, and stores each closed report', async () => {
  const { feed, append, report } = await stage();
  await append(
    reported(1, 1, 'pending', 1_000),
    reported(2, 1, 'pending', 2_000),
    reported(1, 2, 'filled', 50_000),
  );
  const one = feed();
  const isEarly = await one.round(FIRST_MS + DAY_MS + 3_599_000);
  expect(isEarly.closed).toEqual([]);
  expect((await one.round(FIRST_MS + DAY_MS + 3_660_000)).closed).toEqual(['2026-11-21']);
  const closed = await report('2026-11-21');
  expect(closed.state).toBe('closed');
  await append({ ...reported(2, 2, 'filled', 60_000), seenMs: DAY_MS + 7_200_000 });
  await one.round(FIRST_MS + DAY_MS + 7_300_000);
  expect((await report('2026-11-21')).balances).toEqual(closed.balances);
  const next = await report('2026-11-22');
  expect(next.balances[0]).toMatchObject({
    opening: { count: 1 },
    ended: { count: 1 },
    closing: { count: 0 },
  });
  expect(next.transfers[0]).toMatchObject({ late: true, endedAt: '2026-11-21T00:01:00.000Z' });
  expect(next.checks.map(({ ok }) => ok)).toEqual([true, true]);
});

test('refuses a day of which transfers were removed, also once the retention is longer again', async () => {
  const { database, feed, append, report } = await stage({ retentionMs: 2 * DAY_MS });
  const hourMs = 3_600_000;
  await append(reported(4, 1, 'pending', hourMs), reported(4, 2, 'filled', 2 * hourMs));
  await append(reported(1, 1, 'pending', DAY_MS + hourMs), reported(1, 2, 'filled', DAY_MS + 2 * hourMs));
  await append(
    reported(2, 1, 'pending', DAY_MS + 20 * hourMs),
    reported(2, 2, 'filled', DAY_MS + 21 * hourMs),
  );
  await append(reported(3, 1, 'pending', 2 * DAY_MS + hourMs));
  const one = feed();
  const nowMs = FIRST_MS + 3.5 * DAY_MS;
  while (!(await one.round(nowMs)).isAtEnd);
  await one.round(nowMs + 60_000);
  const expected = 'expected a day of the last 2: the books store no others';
  await expect(report('2026-11-22', nowMs)).rejects.toThrow(`found 2026-11-22, ${expected}`);
  expect((await report('2026-11-23', nowMs)).balances).toMatchObject([
    { opening: { count: 0 }, started: { count: 1 }, ended: { count: 0 }, closing: { count: 1 } },
  ]);
  const rules = { zone: 'UTC', closeAfterMs: hourMs, retentionMs: 400 * DAY_MS };
  const longer = new BooksReader(database, { ...rules, directory: COMMON_NAMES, checked: new Set() });
  for (const [zone, first] of [
    ['UTC', '2026-11-23'],
    ['Asia/Tokyo', '2026-11-24'],
  ] as const) {
    await expect(longer.report({ day: '2026-11-22', zone }, nowMs)).rejects.toThrow(
      `found 2026-11-22, expected ${first} or a later day of ${zone}: the books have nothing earlier`,
    );
    expect((await longer.report({ day: first, zone }, nowMs)).day).toBe(first);
  }
  expect((await longer.report({ day: '2026-11-23' }, nowMs)).checks.map(({ ok }) => ok)).toEqual([
    true,
    true,
    true,
  ]);
});

test('does not book a removed transfer anew when it is reported again, and states so', async () => {
  const { feed, append, count, report } = await stage({ retentionMs: 2 * DAY_MS });
  await append(reported(1, 1, 'pending', 1_000), reported(1, 2, 'filled', 50_000));
  const one = feed();
  while (!(await one.round(FIRST_MS + DAY_MS)).isAtEnd);
  await one.round(FIRST_MS + 4 * DAY_MS);
  expect(await count('books_transfers')).toBe(0);
  const againMs = 4 * DAY_MS + 1_000;
  await append(reported(1, 3, 'settled', againMs), reported(2, 1, 'pending', againMs + 1_000));
  await one.round(FIRST_MS + againMs + 60_000);
  const day = await report('2026-11-25', FIRST_MS + 5 * DAY_MS);
  expect(day.balances).toMatchObject([{ opening: { count: 0 }, started: { count: 1 }, ended: { count: 0 } }]);
  expect(day.delivered).toEqual([]);
  expect(day.notes.filter((note) => note.includes('had removed'))).toHaveLength(1);
});

test('removes nothing by a clock that is ahead of the confirmed time', async () => {
  const { feed, append, count } = await stage({ retentionMs: 2 * DAY_MS });
  await append(reported(1, 1, 'pending', 1_000), reported(1, 2, 'filled', 50_000));
  const one = feed();
  await one.round(FIRST_MS + DAY_MS);
  await one.round(FIRST_MS + 4 * DAY_MS, { confirmedMs: FIRST_MS + DAY_MS });
  expect([await count('books_transfers'), await count('books_expired')]).toEqual([1, 0]);
  await one.round(FIRST_MS + 5 * DAY_MS);
  expect([await count('books_transfers'), await count('books_expired')]).toEqual([0, 1]);
});

test('stores the names of removed transfers for as long again, and for 400 days at least', async () => {
  const { feed, append, count } = await stage({ retentionMs: 2 * DAY_MS });
  await append(reported(1, 1, 'pending', 1_000), reported(1, 2, 'filled', 50_000));
  const one = feed();
  await one.round(FIRST_MS + DAY_MS);
  await one.round(FIRST_MS + 4 * DAY_MS);
  await one.round(FIRST_MS + 403 * DAY_MS);
  expect(await count('books_expired')).toBe(1);
  await one.round(FIRST_MS + 405 * DAY_MS);
  expect(await count('books_expired')).toBe(0);
});

test('ingests whole a batch that a failed transaction had ingested in part', async () => {
  const { database, feed, append, count } = await stage();
  await append(
    reported(1, 1, 'pending', 1_000),
    reported(2, 1, 'pending', 2_000),
    reported(1, 2, 'filled', 9_000),
  );
  const breaking: Database = {
    ...database,
    write: (work) =>
      database.write((sql) =>
        work({
          ...sql,
          run: (text, values) => {
            if (text.includes('books_transfers')) throw new Error('the disk is full');
            return sql.run(text, values);
          },
        }),
      ),
  };
  await expect(feed(breaking).round(NOW_MS)).rejects.toThrow('the disk is full');
  expect(await count('books_events')).toBe(0);
  expect((await feed().round(NOW_MS)).ingested).toBe(3);
  expect(await count('books_postings')).toBe(4);
});

const RECEIVER = {
  type: 'webhook' as const,
  events: ['*'],
  filter: { wallets: null, chains: null, minAmount: null },
  ordering: 'none' as const,
};

const NOTING = { counts: true, answer: '', restMs: null, disableAfterMs: null, process: 'p' };

const ATTEMPT = {
  httpStatus: 503,
  smtpCode: null,
  durationMs: 1,
  reason: '503 Service Unavailable',
  answer: '',
  nextAtMs: null,
};

test('states for every receiver the time of the report, at any attempt, and names receivers that got nothing', async () => {
  const { redis, keys, registry, deliveries, events, feed, append, report } = await stage();
  const receivers = ['backend', 'ledger', 'mail'];
  const subscription = { name: 's', receivers, metadata: {}, history: 'skip' as const, subjects: [] };
  const options = { overdueAfterMs: null, warnBeforeMs: null, recipients: [] };
  await syncConfig(
    registry,
    {
      digest: '',
      graceSpanMs: 0,
      routes: [],
      receivers: receivers.map((name) => ({ ...RECEIVER, name })),
      subscriptions: [{ ...subscription, ...options }],
    },
    '0-0',
  );
  // Redis gives the time of a delivery.
  const seenMs = (await redisTimeMs(redis)) - 1_000;
  const filled = { ...reported(1, 1, 'filled', seenMs - FIRST_MS), seenMs: seenMs - FIRST_MS };
  await append(filled);
  const { id } = reportedEvent(filled);
  const entry = (await events.newest()) ?? '';
  const fence = (await new RelayLease(redis, keys).hold()) ?? '';
  const claimKeys = ['s|wallet:0x01'];
  for (const receiver of receivers) {
    const order = { receiver, replay: null, cursor: null, process: 'p' };
    await deliveries.open(fence, { ...order, deliveries: [{ id, entry, claimKeys, subject: null }] });
    await deliveries.claim(receiver, { process: 'p', order: orderOf({ most: 1 }) });
  }
  const note = async (receiver: string, outcome: 'failed' | 'delivered'): Promise<void> => {
    const nowMs = await redisTimeMs(redis);
    const nextAtMs = outcome === 'failed' ? nowMs + DAY_MS : null;
    await recordOne(deliveries, receiver, {
      ...NOTING,
      nowMs,
      ids: [id],
      attempt: { ...ATTEMPT, atMs: nowMs, outcome },
      outcome: outcome === 'failed' ? 'pending' : 'delivered',
      nextAtMs,
    });
  };
  await note('backend', 'delivered');
  await note('ledger', 'failed');
  await note('ledger', 'delivered');
  await note('mail', 'failed');
  const one = feed();
  // The first round ingests the event, the next one reads its deliveries.
  await one.round(seenMs + 60_000);
  await one.round(seenMs + 120_000);
  const day = new Date(seenMs).toISOString().slice(0, 10);
  const { transfers, exceptions } = await report(day, seenMs + 180_000);
  expect(transfers[0]?.reported.map(({ receiver, state, at }) => [receiver, state, at !== null])).toEqual([
    ['backend', 'delivered', true],
    ['ledger', 'delivered', true],
    ['mail', 'retrying', false],
  ]);
  expect(exceptions.map(({ text }) => text)).toEqual(['intent.filled was not delivered to mail by then']);
});

test('closes no day while the clocks do not agree, and ingests new events', async () => {
  const { feed, append } = await stage();
  await append(reported(1, 1, 'pending', 1_000));
  const one = feed();
  expect(await one.round(NOW_MS, { mayClose: false })).toMatchObject({
    ingested: 1,
    isAtEnd: true,
    closed: [],
  });
  expect((await one.round(NOW_MS)).closed).toEqual(['2026-11-21', '2026-11-22']);
});
