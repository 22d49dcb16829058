import { BookStore } from '../../src/books/book-store.ts';
import { Feed, type FeedSources } from '../../src/books/books.ts';
import { BooksReader } from '../../src/books/reader.ts';
import type { Database } from '../../src/books/sql/database.ts';
import { prepareTables } from '../../src/books/sql/database.ts';
import { openSqlite } from '../../src/books/sql/sqlite.ts';
import type { DayRules } from '../../src/domain/books/report.ts';
import type { BooksReport } from '../../src/domain/books/report-schema.ts';

/** More rounds than any step of a life needs. */
const MOST_ROUNDS = 100;

const DAY_MS = 86_400_000;

const RULES = { zone: 'UTC', retentionMs: 400 * DAY_MS };

/** The books of a life, which outlive every process and every restore of Redis. */
export class VirtualBooks {
  readonly #database: Database;
  readonly #store: BookStore;
  /** The report of each day at its close. */
  readonly #closed = new Map<string, string>();
  readonly #early: string[] = [];
  #isPrepared = false;

  constructor(file: string) {
    this.#database = openSqlite(file);
    this.#store = new BookStore(this.#database);
  }

  /**
   * Reads the log to its end, and closes the days that are over by Redis time, as the process with the lease does every second.
   * `trueMs` is the true time.
   */
  async feed(
    sources: FeedSources,
    rules: DayRules,
    { nowMs, trueMs, mayClose }: { nowMs: number; trueMs: number; mayClose: boolean },
  ): Promise<void> {
    if (!this.#isPrepared) await prepareTables(this.#database);
    this.#isPrepared = true;
    const feed = new Feed(this.#store, sources, { ...RULES, ...rules });
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const { isAtEnd, closed } = await feed.round(nowMs, { mayClose });
      for (const day of closed) {
        if (Date.parse(day) + DAY_MS <= trueMs)
          this.#closed.set(day, await this.#report(day, sources, rules, nowMs));
        else this.#early.push(`the day ${day} was closed at ${new Date(trueMs).toISOString()}`);
      }
      if (isAtEnd) return;
    }
  }

  /** Reads the closed days again, by other rules than those of their close. Returns their number, and those that differ. */
  async account(
    sources: FeedSources,
    rules: DayRules,
    nowMs: number,
  ): Promise<{ days: number; problems: string[] }> {
    const problems = [...this.#early];
    for (const [day, before] of this.#closed) {
      const now = await this.#report(day, sources, rules, nowMs);
      if (now !== before) problems.push(`the closed day ${day} was ${before}, is ${now}`);
    }
    return { days: this.#closed.size, problems };
  }

  async #report(day: string, { directory }: FeedSources, rules: DayRules, nowMs: number): Promise<string> {
    const reader = new BooksReader(this.#database, { ...RULES, ...rules, directory });
    return unchanging(await reader.report({ day }, nowMs));
  }

  async close(): Promise<void> {
    await this.#database.close();
  }
}

/** The part of a closed day that stays: the way in which a state was reported is the present one (docs/books.md). */
function unchanging({ madeAt: _, readUntil: __, transfers, ...report }: BooksReport): string {
  return JSON.stringify({ ...report, transfers: transfers.map(({ reported: ___, ...row }) => row) });
}
