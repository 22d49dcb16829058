import { join } from 'node:path';
import type { Logger } from 'pino';
import type { BooksConfig } from '../config/config.ts';
import { Duty } from '../duty.ts';
import type { Signals } from '../signals.ts';
import { type RedisClient, redisTimeMs } from '../store/commands.ts';
import type { ConfirmedClock } from '../store/confirmed-time.ts';
import type { Keys } from '../store/keys.ts';
import { FencedLease } from '../store/lease.ts';
import { BookStore, OvertakenError } from './book-store.ts';
import type { DailyReportMailer } from './daily-report-mailer.ts';
import { type Fed, Feed, type FeedSources } from './feed.ts';
import { storeRules } from './queries.ts';
import { type Database, prepareTables } from './sql/database.ts';
import { openPostgres } from './sql/postgres.ts';
import { openSqlite } from './sql/sqlite.ts';

/** Wait between two rounds with nothing to read, and the longest wait after failures. */
const IDLE_MS = 1_000;
const MOST_WAIT_MS = 60_000;

const BOOKS_FILE = 'books.sqlite';

/** Opens the database of a config. */
export function openBooks(
  { url, hasTls }: BooksConfig,
  { dataDir, isReadOnly = false }: { dataDir: string; isReadOnly?: boolean },
): Database {
  return url === null ? openSqlite(join(dataDir, BOOKS_FILE), { isReadOnly }) : openPostgres(url, { hasTls });
}

/** The dependencies of Books. */
export type BooksDeps = {
  config: BooksConfig;
  /** Chains whose payments are checked. */
  checked: ReadonlySet<string>;
  database: Database;
  redis: RedisClient;
  keys: Keys;
  /** As in FencedLease. */
  process: string;
  clocks: { mayActAt(redisMs: number): boolean; confirmed: ConfirmedClock | null };
  sources: FeedSources;
  reportMailer: DailyReportMailer | null;
  signals: Signals;
  log: Logger;
};

/**
 * Feeds the books while it runs, in one process of all on a Redis. Failures are logged and retried: the cursor is where the
 * rows end, so that no event is omitted or comes twice. The daemon goes on without it.
 */
export class Books {
  readonly #deps: BooksDeps;
  readonly #lease: FencedLease;
  readonly #feed: Feed;
  readonly #feeding: Duty;
  #isPrepared = false;
  #failures = 0;

  constructor(deps: BooksDeps) {
    const { config, checked, keys, process, redis, database, sources } = deps;
    this.#deps = deps;
    this.#lease = new FencedLease(redis, { lease: keys.booksLease, fence: keys.booksFence }, process);
    const { timeZone: zone, closeAfterMs, retentionMs } = config;
    this.#feed = new Feed(new BookStore(database), sources, { zone, closeAfterMs, retentionMs, checked });
    this.#feeding = new Duty({
      everyMs: IDLE_MS,
      isShared: true,
      run: async () => ({ waitMs: await this.#round() }),
      onError: (error) => ({ waitMs: this.#fail(error) }),
    });
  }

  /** Starts the rounds. Never throws: errors are in the log. */
  start(): void {
    this.#feeding.start(0);
  }

  /** Returns the wait until the next round. */
  async #round(): Promise<number> {
    const { redis, reportMailer, log, signals, clocks } = this.#deps;
    if (!this.#isPrepared) await this.#prepare();
    this.#isPrepared = true;
    if ((await this.#lease.hold()) === null) {
      this.#feed.reset();
      // The holder reports how far it has read; our own time would never advance.
      signals.emit('books.fed', { ingested: 0, readMs: 0 });
      return IDLE_MS;
    }
    const nowMs = await redisTimeMs(redis);
    // A day is closed and mailed only once: never by a clock that may be wrong.
    const mayClose = clocks.mayActAt(nowMs);
    // A day is closed after an hour in any case; what is removed never comes back, and waits for a confirmed time.
    const confirmedMs = clocks.confirmed?.confirmedMs ?? 0;
    const fed = await this.#feed.round(nowMs, { mayClose, confirmedMs });
    this.#log(fed);
    if (mayClose && fed.isAtEnd) await reportMailer?.send(nowMs, this.#feed.place);
    if (this.#failures > 0) log.info('books.recovered');
    this.#failures = 0;
    return fed.isAtEnd || fed.stoppedBy !== null ? IDLE_MS : 0;
  }

  /** Returns the wait until the next round. */
  #fail(error: unknown): number {
    const { log, signals } = this.#deps;
    this.#feed.reset();
    if (error instanceof OvertakenError) return IDLE_MS;
    this.#failures += 1;
    const reason = error instanceof Error ? error.message : String(error);
    // At the first failure, then at doubled counts: a Postgres may be unreachable for long.
    if ((this.#failures & (this.#failures - 1)) === 0)
      log.error({ reason, failures: this.#failures }, 'books.failed');
    signals.emit('books.failed', { reason });
    return Math.min(MOST_WAIT_MS, IDLE_MS * 2 ** Math.min(this.#failures, 10) * 0.5);
  }

  async #prepare(): Promise<void> {
    const { config, checked, database } = this.#deps;
    await prepareTables(database);
    await storeRules(database, { closeAfterMs: config.closeAfterMs, checked });
  }

  #log({ broke, closed, stoppedBy, ingested, isAtEnd }: Fed): void {
    const { log, signals } = this.#deps;
    const readMs = this.#feed.place?.readMs ?? 0;
    signals.emit('books.fed', { ingested, readMs: isAtEnd ? Date.now() : readMs });
    if (broke !== null) {
      log.error({ kind: broke.kind, detail: broke.detail }, 'books.broken');
      signals.emit('books.broken', { kind: broke.kind });
    }
    if (stoppedBy !== null) log.warn({ entry: stoppedBy }, 'books.newer_entry');
    for (const day of closed.slice(-5)) log.info({ day }, 'books.closed');
  }

  /** Ends the current round, and releases the lease at once. */
  async close(): Promise<void> {
    const ended = this.#feeding.close();
    // A running mail would delay the end for as long as its server takes.
    await this.#deps.reportMailer?.close();
    await ended;
    // Redis may be unreachable: the file is closed all the same.
    await Promise.allSettled([this.#deps.database.close(), this.#lease.release()]);
  }
}
