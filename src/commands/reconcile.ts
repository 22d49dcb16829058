import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Command, Option } from 'commander';
import type { z } from 'zod';
import { openBooks } from '../books/books.ts';
import { reportText } from '../books/formats/report.ts';
import { BooksReader, NoBooksError } from '../books/reader.ts';
import { BooksDatabaseError, type Database } from '../books/sql/database.ts';
import { CONFIG_DEFAULT } from '../client/address.ts';
import { ProblemReply } from '../client/api-client.ts';
import { loadConfig } from '../config/file/load.ts';
import { NoSuchDayError } from '../domain/books/day.ts';
import { type BooksReport, REPORT } from '../domain/books/report-schema.ts';
import { extendDirectory } from '../domain/transfers/chains.ts';
import { BadSettingError, EXIT, TryAgainError } from '../exit.ts';
import { readBooks, reportAs } from '../server/api/routes/books.ts';
import { clientOf, type DaemonOptions, remark, withDaemon } from './daemon.ts';

const FORMATS = ['text', 'json', 'csv', 'sums-csv', 'html'] as const;

/** Statuses of the route for an unknown day or zone, or absent books. */
const NO_SUCH: ReadonlySet<number> = new Set([400, 404, 409]);

type ReconcileOptions = DaemonOptions & {
  day?: string;
  zone?: string;
  format?: (typeof FORMATS)[number];
  store?: true;
};

/** `reconcile`: prints the books of a day. */
export function reconcileCommand(): Command {
  return withDaemon(
    new Command('reconcile')
      .description(
        'Print the books of a day: opening + started - ended = closing per token, and what needs attention; with --format json, csv or html also each transfer.',
      )
      .option('--day <day>', 'a day like 2026-11-21 (default: yesterday)')
      .option('--zone <zone>', 'the time zone whose day it is (default: that of the books)')
      .addOption(new Option('--format <format>', 'how it is printed (default: text)').choices(FORMATS))
      .option('--store', 'read the store of the config, without a daemon'),
  ).action(async (options: ReconcileOptions) => {
    const report = await reportOf(options);
    const format = options.json === true ? 'json' : (options.format ?? 'text');
    await print(format, report);
    const wrong = report.checks.filter(({ ok }) => !ok);
    for (const { text } of wrong) remark(text);
    if (wrong.length > 0) process.exitCode = EXIT.failed;
    else if (report.readUntil === null)
      throw new TryAgainError('the books have not read the event log to its end yet');
  });
}

async function print(format: (typeof FORMATS)[number], report: BooksReport): Promise<void> {
  if (format === 'json') process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  else if (format === 'text') process.stdout.write(`${reportText(report)}\n`);
  else await pipeline(reportAs(format, report), process.stdout, { end: false });
}

/** Report of the daemon; where none answers and no URL was given, of the config's store. */
async function reportOf(options: ReconcileOptions): Promise<BooksReport> {
  const { zone, store, url } = options;
  const day = options.day ?? 'yesterday';
  checkOption('--day', day, readBooks.params.shape.day);
  checkOption('--zone', zone, readBooks.query.shape.zone);
  if (store === true) return storedReport(options, day);
  try {
    const { body } = await (await clientOf(options)).call(readBooks, { params: { day }, query: { zone } });
    return REPORT.parse(body);
  } catch (error) {
    // 1 states that a check has failed: an unavailable day differs from that.
    if (error instanceof ProblemReply && NO_SUCH.has(error.status)) throw new BadSettingError(error.message);
    if (!(error instanceof TryAgainError) || (url !== undefined && url !== '')) throw error;
    remark(`${error.message}; the store is read instead`);
    return storedReport(options, day);
  }
}

/** Checks as the route does, but names the option instead of the request's field. */
function checkOption(name: string, value: string | undefined, schema: z.ZodType): void {
  if (value === undefined) return;
  const expected = schema.safeParse(value).error?.issues[0]?.message;
  if (expected === undefined) return;
  throw new BadSettingError(`${name}: found ${JSON.stringify(value.slice(0, 80))}, expected ${expected}`);
}

async function storedReport({ config: file, zone }: ReconcileOptions, day: string): Promise<BooksReport> {
  const config = await loadConfig(resolve(file ?? CONFIG_DEFAULT), process.env);
  const { books, dataDir, checkedChains } = config;
  if (books === null) throw new BadSettingError(`${config.file}: found no books, expected a section books`);
  let database: Database | null = null;
  try {
    database = openBooks(books, { dataDir, isReadOnly: true });
    const { timeZone, closeAfterMs, retentionMs } = books;
    const reader = new BooksReader(database, {
      zone: timeZone,
      closeAfterMs,
      retentionMs,
      directory: extendDirectory(config),
      checked: new Set(checkedChains.map(({ chainId }) => chainId)),
    });
    return await reader.report({ day, zone }, Date.now());
  } catch (error) {
    if (error instanceof NoSuchDayError) throw new BadSettingError(error.message);
    if (error instanceof NoBooksError) throw new BadSettingError(error.message);
    if (error instanceof BooksDatabaseError && error.retryable) throw new TryAgainError(error.message);
    if (error instanceof BooksDatabaseError) throw new BadSettingError(error.message);
    throw error;
  } finally {
    await database?.close();
  }
}
