import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { Closing } from '../domain/books/balances.ts';
import {
  checkedZone,
  type Day,
  dayAt,
  dayOf,
  type ReportDelivery,
  type ReportEvent,
  type ReportTransfer,
} from '../domain/books/day.ts';
import { type BookNames, SIDES } from '../domain/books/postings.ts';
import { type DayRules, makeReport } from '../domain/books/report.ts';
import type { BooksReport } from '../domain/books/report-schema.ts';
import { foldHex } from '../domain/subjects/subject.ts';
import { type Directory, tokenKey } from '../domain/transfers/chains.ts';
import { chunks } from '../store/commands.ts';
import { eventOfRow, marks, readPlace } from './book-store.ts';
import { rulesAt, touchedSince } from './queries.ts';
import { checkTables, type Database, type Row, type Sql } from './sql/database.ts';

/** The error for a day that the books do not have; the message has the reason. */
export class NoBooksError extends Error {
  override readonly name = 'NoBooksError';
}

/** The options of reports; the rules are those of open days. */
export type ReaderOptions = DayRules & {
  zone: string;
  retentionMs: number;
  directory: Directory;
};

/** Transfers per read: a very big day does not delay other work. */
const CHUNK = 200;

/** Builds the report of any day and zone from the books. */
export class BooksReader {
  readonly #database: Database;
  readonly #options: ReaderOptions;

  constructor(database: Database, options: ReaderOptions) {
    this.#database = database;
    this.#options = options;
  }

  /**
   * Returns the books of a day, or of `yesterday`, in their own zone or another. Throws a NoSuchDayError or a NoBooksError,
   * and a BooksDatabaseError where the tables are not of our version.
   */
  async report(
    { day: name, zone }: { day: string; zone?: string | undefined },
    nowMs: number,
  ): Promise<BooksReport> {
    const { retentionMs } = this.#options;
    const where = zone ?? this.#options.zone;
    const day =
      name === 'yesterday' ? dayAt(dayAt(nowMs, checkedZone(where)).fromMs - 1, where) : dayOf(name, where);
    if (day.fromMs > nowMs) throw new NoBooksError(`found ${name}, expected a day that has begun`);
    // An earlier day has lost transfers of its first hours.
    if (day.fromMs < nowMs - retentionMs) {
      const days = Math.floor(retentionMs / 86_400_000);
      throw new NoBooksError(`found ${name}, expected a day of the last ${days}: the books store no others`);
    }
    await checkTables(this.#database);
    return this.#database.read(async (sql) => {
      const place = await readPlace(sql);
      if (place === null) throw new NoBooksError('the books have not begun: no daemon has written them yet');
      const { openedMs, closedMs, readMs } = place;
      const beginsMs = await beginning(sql, openedMs);
      if (day.toMs <= openedMs || (beginsMs > openedMs && day.fromMs < beginsMs)) {
        const first = firstDay(beginsMs, where, { isWhole: beginsMs > openedMs });
        const found = name === 'yesterday' ? `yesterday, ${day.day}` : name;
        throw new NoBooksError(
          `found ${found}, expected ${first.day} or a later day of ${where}: the books have nothing earlier`,
        );
      }
      const rules = (await rulesAt(sql, day.toMs, { closedMs })) ?? this.#options;
      return makeReport({
        day,
        nowMs,
        openedMs,
        closedMs,
        readMs,
        rules,
        transfers: transfersOf(sql, day),
        closings: {
          from: await closingAt(sql, day.fromMs, { closedMs, openedMs }),
          to: await closingAt(sql, day.toMs, { closedMs, openedMs }),
        },
        breaks: await breaksOf(sql, day, rules),
        names: await this.#names(sql),
      });
    });
  }

  async #names(sql: Sql): Promise<BookNames> {
    const { directory } = this.#options;
    const rows = await sql.all('SELECT chain_id, token, symbol, decimals FROM books_tokens');
    const stored = new Map(
      rows.map(({ chain_id: chainId, token, symbol, decimals }) => [
        tokenKey(String(chainId), String(token)),
        { symbol: String(symbol), decimals: Number(decimals) },
      ]),
    );
    return {
      token: (chainId, token) => stored.get(tokenKey(chainId, token)) ?? directory.token(chainId, token),
      chain: (chainId) => directory.chain(chainId)?.name ?? null,
    };
  }
}

/** Yields transfers open at the day's begin or touched since, by subject. Those that ended before add up to nothing. */
async function* transfersOf(sql: Sql, { fromMs, toMs }: Day): AsyncGenerator<ReportTransfer[]> {
  const subjects: string[] = [];
  for await (const some of touchedSince(sql, fromMs)) {
    const rows = await sql.all(
      `SELECT DISTINCT subject FROM books_postings WHERE subject IN (${marks(some.length)}) AND booked_ms < ?`,
      [...some, toMs],
    );
    for (const { subject } of rows) subjects.push(String(subject));
  }
  for (const some of chunks(subjects.sort(), CHUNK)) {
    yield await readTransfers(sql, some);
    await yieldToOthers();
  }
}

async function readTransfers(sql: Sql, subjects: readonly string[]): Promise<ReportTransfer[]> {
  const places = marks(subjects.length);
  const postings = await sql.all(
    `SELECT * FROM books_postings WHERE subject IN (${places}) ORDER BY id`,
    subjects,
  );
  const events = await sql.all(
    `SELECT * FROM books_events WHERE subject IN (${places}) ORDER BY epoch, sequence, booked_ms, at_ms`,
    subjects,
  );
  const deliveries = await sql.all(
    `SELECT d.event_id, d.receiver, d.state, d.delivered_ms, d.event_ms FROM books_deliveries d
     JOIN books_events e ON e.event_id = d.event_id WHERE e.subject IN (${places}) ORDER BY d.receiver`,
    subjects,
  );
  const postingsBy = Map.groupBy(postings, ({ subject }) => String(subject));
  const eventsBy = Map.groupBy(events, ({ subject }) => String(subject));
  const deliveriesBy = Map.groupBy(deliveries, ({ event_id: id }) => String(id));
  return subjects.map((subject) => ({
    subject,
    postings: (postingsBy.get(subject) ?? []).flatMap(postingOf),
    events: (eventsBy.get(subject) ?? []).map((row): ReportEvent => {
      const { eventId, type, atMs, bookedMs, state } = eventOfRow(row);
      return {
        eventId,
        type,
        atMs,
        bookedMs,
        state,
        deliveries: (deliveriesBy.get(eventId) ?? []).map(deliveryOf),
      };
    }),
  }));
}

function postingOf(row: Row): ReportTransfer['postings'][number][] {
  const side = SIDES.find((one) => one === row.side);
  if (side === undefined) return [];
  return [
    {
      side,
      chainId: String(row.chain_id),
      token: foldHex(String(row.token)),
      count: Number(row.count),
      amount: BigInt(String(row.amount)),
      bookedMs: Number(row.booked_ms),
      happenedMs: Number(row.happened_ms),
      isLate: row.is_late === 1,
      isCorrection: row.is_correction === 1,
    },
  ];
}

function deliveryOf(row: Row): ReportDelivery {
  return {
    receiver: String(row.receiver),
    state: String(row.state),
    deliveredMs: row.delivered_ms === null ? null : Number(row.delivered_ms),
    eventMs: Number(row.event_ms),
  };
}

/** No day is longer, and the first is closed at its end. */
const LONGEST_DAY_MS = 25 * 3_600_000;

/** Returns the time since which the books are whole: the records of closed days are removed together with their transfers. */
async function beginning(sql: Sql, openedMs: number): Promise<number> {
  const [first] = await sql.all('SELECT min(at_ms) AS at_ms FROM books_closed_days');
  const firstMs = Number(first?.at_ms ?? 0);
  return firstMs > openedMs + LONGEST_DAY_MS ? firstMs : openedMs;
}

/** Returns the first day of the books in a zone; the first whole one where earlier ones are removed. */
function firstDay(beginsMs: number, zone: string, { isWhole }: { isWhole: boolean }): Day {
  const day = dayAt(beginsMs, zone);
  return isWhole && day.fromMs < beginsMs ? dayAt(day.toMs, zone) : day;
}

/** Returns the sums stored at the close of a day; null where none was closed at that time. */
async function closingAt(
  sql: Sql,
  atMs: number,
  { closedMs, openedMs }: { closedMs: number; openedMs: number },
): Promise<Closing[] | null> {
  if (atMs > closedMs || atMs <= openedMs) return null;
  const [mark] = await sql.all('SELECT 1 AS found FROM books_closed_days WHERE at_ms = ?', [atMs]);
  if (mark === undefined) return null;
  const rows = await sql.all('SELECT chain_id, token, count, amount FROM books_closings WHERE at_ms = ?', [
    atMs,
  ]);
  return rows.map((row) => ({
    chainId: String(row.chain_id),
    token: String(row.token),
    count: Number(row.count),
    amount: BigInt(String(row.amount)),
  }));
}

async function breaksOf(
  sql: Sql,
  { fromMs, toMs }: Day,
  { closeAfterMs }: DayRules,
): Promise<{ atMs: number; kind: string; detail: string }[]> {
  const rows = await sql.all(
    'SELECT at_ms, kind, detail FROM books_breaks WHERE at_ms >= ? AND at_ms < ? ORDER BY id',
    [fromMs, toMs + closeAfterMs],
  );
  return rows.map((row) => ({ atMs: Number(row.at_ms), kind: String(row.kind), detail: String(row.detail) }));
}
