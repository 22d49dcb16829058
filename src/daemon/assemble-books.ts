import type { Logger } from 'pino';
import { Books, openBooks } from '../books/books.ts';
import { DailyReportMailer } from '../books/daily-report-mailer.ts';
import { BooksReader } from '../books/reader.ts';
import type { Config } from '../config/config.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import type { Signals } from '../signals.ts';
import type { RedisClient } from '../store/commands.ts';
import type { DeliveryStore } from '../store/deliveries.ts';
import type { EventLog } from '../store/event-log.ts';
import type { Keys } from '../store/keys.ts';
import type { Registry } from '../store/registry.ts';
import type { SubjectStore } from '../store/subjects.ts';
import type { Clocks } from './clocks.ts';

/** What the books are made from. */
type BooksAssembly = {
  redis: RedisClient;
  keys: Keys;
  clocks: Clocks;
  stores: { events: EventLog; registry: Registry; subjects: SubjectStore; deliveries: DeliveryStore };
  directory: Directory;
  signals: Signals;
  log: Logger;
};

/** Constructs what keeps the books, and what reads them; null where none are stored. */
export function assembleBooks(
  { books: config, dataDir, smtp, checkedChains }: Config,
  { redis, keys, clocks, stores, directory, signals, log }: BooksAssembly,
): { books: Books; reader: BooksReader } | null {
  if (config === null) return null;
  const { timeZone: zone, closeAfterMs, retentionMs, report } = config;
  const database = openBooks(config, { dataDir });
  const checked = new Set(checkedChains.map(({ chainId }) => chainId));
  const reader = new BooksReader(database, { zone, closeAfterMs, retentionMs, directory, checked });
  const reportMailer =
    report === null || smtp === null
      ? null
      : new DailyReportMailer({ database, reader, smtp, report, zone, log });
  const { events, registry, subjects, deliveries } = stores;
  const sources = { events, registry, subjects, deliveries, directory };
  return {
    books: new Books({
      database,
      redis,
      keys,
      clocks: clocks.confirmed,
      config,
      checked,
      sources,
      reportMailer,
      signals,
      log,
    }),
    reader,
  };
}
