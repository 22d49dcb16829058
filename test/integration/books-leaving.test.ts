import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { expect, inject, test } from 'vitest';
import { Books } from '../../src/books/books.ts';
import { DailyReportMailer } from '../../src/books/daily-report-mailer.ts';
import { BooksReader } from '../../src/books/reader.ts';
import { openSqlite } from '../../src/books/sql/sqlite.ts';
import { COMMON_NAMES } from '../../src/domain/transfers/chains.ts';
import { Secret } from '../../src/secret.ts';
import { Signals } from '../../src/signals.ts';
import { redisTimeMs } from '../../src/store/commands.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { DeliveryStore } from '../../src/store/deliveries.ts';
import { EventLog } from '../../src/store/event-log.ts';
import { Keys } from '../../src/store/keys.ts';
import { RelayLease } from '../../src/store/lease.ts';
import { Registry } from '../../src/store/registry.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { AGREEING_CLOCKS } from '../support/agreeing-clocks.ts';
import { DAY_MS, reportedEvent } from '../support/books-stage.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { eventually } from '../support/eventually.ts';
import { Mailbox } from '../support/mailbox.ts';
import { opening } from '../support/opening.ts';

const { later, started } = opening();

/** Books in a file, with a mail server that never answers. `readMs` is the last value of the metric. */
async function stage() {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const folder = await mkdtemp(join(tmpdir(), 'intentwatch-leaving-'));
  later(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const file = join(folder, 'books.sqlite');
  const database = openSqlite(file);
  const subjects = new SubjectStore(redis, keys, { epoch: firstEpoch(redis, keys) });
  const sources = {
    events: new EventLog(redis, keys),
    subjects,
    registry: new Registry(redis, keys, subjects),
    deliveries: new DeliveryStore(redis, keys),
    lease: new RelayLease(redis, keys),
    directory: COMMON_NAMES,
  };
  const mailbox = await started(new Mailbox(() => 'nothing'));
  const report = { atMinute: 0, to: ['treasury@example.com'] };
  const rules = { closeAfterMs: 1_000, retentionMs: 400 * DAY_MS };
  const log = pino({ level: 'silent' });
  const signals = new Signals();
  const seen = { readMs: Number.NaN };
  signals.on('books.fed', ({ readMs }) => {
    seen.readMs = readMs;
  });
  const reader = new BooksReader(database, {
    ...rules,
    zone: 'UTC',
    directory: COMMON_NAMES,
    checked: new Set(),
  });
  const smtp = { url: new Secret(mailbox.url), from: 'transfers@example.com' };
  const reportMailer = new DailyReportMailer({ database, reader, smtp, report, zone: 'UTC', signals, log });
  const config = { ...rules, url: null, hasTls: false, timeZone: 'UTC', report };
  const books = new Books({
    config,
    checked: new Set(),
    database,
    redis,
    keys,
    process: 'p1',
    clocks: { ...AGREEING_CLOCKS, confirmed: null },
    sources,
    reportMailer,
    signals,
    log,
  });
  later(() => books.close());
  return { redis, keys, file, mailbox, books, seen };
}

test('does not state the time of the last read of the log once another process writes the books', async () => {
  const { redis, keys, books, seen } = await stage();
  books.start();
  await eventually('the log was read', () => seen.readMs > 0);
  await redis.set(keys.booksLease, 'of another process');
  await eventually('it is reported as read by no process here', () => seen.readMs === 0);
});

test('ends at once while a mail is under way, and has no file beside the books', async () => {
  // Waiting for the server would take 30 s. Repeated once where this machine stalled meanwhile.
  await eventually('it ends at once', async () => {
    const { redis, keys, file, mailbox, books } = await stage();
    const dayBeforeMs = (await redisTimeMs(redis)) - 2 * DAY_MS;
    const event = reportedEvent({
      transfer: 1,
      sequence: 1,
      status: 'pending',
      atMs: 0,
      seenMs: 0,
      amount: 1n,
    });
    const fields = { kind: 'event', event: JSON.stringify(event), claimKeys: '["s|wallet:0x01"]' };
    await redis.xadd(keys.events, `${dayBeforeMs}-*`, ...Object.entries(fields).flat());
    books.start();
    await mailbox.until((mails) => mails.length > 0);
    expect(existsSync(`${file}-wal`)).toBe(true);
    const sinceMs = performance.now();
    await books.close();
    const tookMs = performance.now() - sinceMs;
    expect(existsSync(`${file}-wal`)).toBe(false);
    return tookMs < 20_000;
  });
});
