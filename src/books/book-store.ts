import { z } from 'zod';
import { BOOK_STATE, type BookState } from '../domain/books/book-state.ts';
import type { Posting } from '../domain/books/postings.ts';
import type { DayRules } from '../domain/books/report.ts';
import { chunks } from '../store/commands.ts';
import { rulesText, touchedSince } from './queries.ts';
import type { Database, Row, Sql, Value } from './sql/database.ts';

/**
 * The progress of the books. `entry`: the last ingested entry of the log of this name; `epoch`: number of logs and breaks so
 * far. All before `closedMs` is closed; `openedMs`: begin of the first day; `readMs`: last time that the log was read to its
 * end; `checkedMs`: last time at which the snapshots were checked.
 */
export const PLACE = z.object({
  log: z.string(),
  entry: z.string().regex(/^\d+-\d+$/),
  epoch: z.int().min(1),
  zone: z.string(),
  openedMs: z.number(),
  closedMs: z.number(),
  readMs: z.number(),
  checkedMs: z.number(),
});

export type Place = z.infer<typeof PLACE>;

/** The error when another process feeds the books: the write of this one is void. */
export class OvertakenError extends Error {
  override readonly name = 'OvertakenError';
}

/** A transfer in the books. `sequence` is that of its last event in `epoch`. */
export type BookedTransfer = {
  subject: string;
  epoch: number;
  sequence: number;
  bookedMs: number;
  state: BookState;
};

/** An event in the books, with the state after it. */
export type BookedEvent = {
  eventId: string;
  subject: string;
  epoch: number;
  sequence: number;
  type: string;
  atMs: number;
  bookedMs: number;
  entry: string;
  state: BookState;
};

/** Events to ingest together, with their postings, the new state of their transfers, and their deliveries. */
export type Intake = {
  events: readonly BookedEvent[];
  postings: readonly { event: BookedEvent; posting: Posting }[];
  transfers: readonly BookedTransfer[];
  deliveries: readonly FollowedDelivery[];
  tokens: readonly { chainId: string; token: string; symbol: string; decimals: number }[];
};

/** A delivery that the books follow. */
export type FollowedDelivery = { eventId: string; receiver: string; eventMs: number };

/** Rows per statement: neither database accepts values without bound. */
const ROWS_AT_ONCE = 200;

/** Least retention of the name of a removed transfer. */
const LEAST_NAMED_MS = 400 * 86_400_000;

const DELIVERY_COLUMNS = 'books_deliveries (event_id, receiver, state, delivered_ms, event_ms, check_ms)';

/** Returns the placeholders of a number of values. */
export function marks(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ');
}

const STATE = z
  .string()
  .transform((text): unknown => JSON.parse(text))
  .pipe(BOOK_STATE);

/** Writes the books. Each write names the place that its writer read, and is void where the place has moved. */
export class BookStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Null before the books were begun. */
  async place(): Promise<Place | null> {
    return this.#database.read(readPlace);
  }

  /** Begins the books, if nobody has. Returns their place. */
  async begin(place: Place): Promise<Place> {
    return this.#database.write(async (sql) => {
      const begun = 'INSERT INTO books_meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING';
      await sql.run(begun, ['place', textOf(place)]);
      return (await readPlace(sql)) ?? place;
    });
  }

  /** Runs work in the transaction that moves the place. Throws an OvertakenError where the place has moved. */
  async move<T>(
    { from, to }: { from: Place; to: Place },
    work: (books: BookWriter) => Promise<T>,
  ): Promise<T> {
    return this.#database.write(async (sql) => {
      const moved = 'UPDATE books_meta SET value = ? WHERE name = ? AND value = ?';
      const count = await sql.run(moved, [textOf(to), 'place', textOf(from)]);
      if (count !== 1) throw new OvertakenError('another process has moved the books on');
      return work(new BookWriter(sql));
    });
  }

  /** Returns due deliveries, the longest due first. */
  async dueDeliveries(nowMs: number, count: number): Promise<FollowedDelivery[]> {
    const due = `SELECT event_id, receiver, event_ms FROM books_deliveries
      WHERE check_ms <= ? ORDER BY check_ms LIMIT ?`;
    const rows = await this.#database.read((sql) => sql.all(due, [nowMs, count]));
    return rows.map((row) => ({
      eventId: String(row.event_id),
      receiver: String(row.receiver),
      eventMs: Number(row.event_ms),
    }));
  }
}

/** The writes of one transaction of the feed. */
export class BookWriter {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async transfers(subjects: readonly string[]): Promise<Map<string, BookedTransfer>> {
    const found = new Map<string, BookedTransfer>();
    for (const some of chunks(subjects, ROWS_AT_ONCE)) {
      const rows = await this.#sql.all(
        `SELECT subject, epoch, sequence, booked_ms, state FROM books_transfers WHERE subject IN (${marks(some.length)})`,
        some,
      );
      for (const row of rows) found.set(String(row.subject), transferOf(row));
    }
    return found;
  }

  async expired(subjects: readonly string[]): Promise<Set<string>> {
    return this.#present(['books_expired', 'subject'], subjects);
  }

  async bookedEvents(ids: readonly string[]): Promise<Set<string>> {
    return this.#present(['books_events', 'event_id'], ids);
  }

  async #present(
    [table, column]: readonly [string, string],
    values: readonly string[],
  ): Promise<Set<string>> {
    const found = new Set<string>();
    for (const some of chunks(values, ROWS_AT_ONCE)) {
      const text = `SELECT ${column} FROM ${table} WHERE ${column} IN (${marks(some.length)})`;
      for (const row of await this.#sql.all(text, some)) found.add(String(row[column]));
    }
    return found;
  }

  async take({ events, postings, transfers, deliveries, tokens }: Intake): Promise<void> {
    await this.#insert(
      'books_events (event_id, subject, epoch, sequence, type, at_ms, booked_ms, entry, state)',
      events.map((one) => [
        one.eventId,
        one.subject,
        one.epoch,
        one.sequence,
        one.type,
        one.atMs,
        one.bookedMs,
        one.entry,
        JSON.stringify(one.state),
      ]),
    );
    await this.#insert(
      'books_postings (event_id, subject, side, chain_id, token, count, amount, booked_ms, happened_ms, is_late, is_correction)',
      postings.map(({ event, posting }) => [
        event.eventId,
        event.subject,
        posting.side,
        posting.chainId,
        posting.token,
        posting.count,
        String(posting.amount),
        posting.bookedMs,
        posting.happenedMs,
        posting.isLate ? 1 : 0,
        posting.isCorrection ? 1 : 0,
      ]),
    );
    await this.#insert(
      'books_transfers (subject, epoch, sequence, is_open, booked_ms, state)',
      transfers.map(({ subject, epoch, sequence, bookedMs, state }) => [
        subject,
        epoch,
        sequence,
        state.phase === 'open' && !state.isCountedElsewhere ? 1 : 0,
        bookedMs,
        JSON.stringify(state),
      ]),
      `ON CONFLICT (subject) DO UPDATE SET epoch = excluded.epoch, sequence = excluded.sequence,
         is_open = excluded.is_open, booked_ms = excluded.booked_ms, state = excluded.state`,
    );
    await this.follow(deliveries);
    await this.#insert(
      'books_tokens (chain_id, token, symbol, decimals)',
      tokens.map(({ chainId, token, symbol, decimals }) => [chainId, token, symbol, decimals]),
      'ON CONFLICT (chain_id, token) DO NOTHING',
    );
  }

  async follow(deliveries: readonly FollowedDelivery[]): Promise<void> {
    await this.#insert(
      DELIVERY_COLUMNS,
      deliveries.map(({ eventId, receiver, eventMs }) => [
        eventId,
        receiver,
        'waiting',
        null,
        eventMs,
        eventMs,
      ]),
      'ON CONFLICT (event_id, receiver) DO NOTHING',
    );
  }

  /** Stores the states of deliveries; `checkMs` is the time of each one's next check. */
  async noteDeliveries(
    noted: readonly (FollowedDelivery & {
      state: string;
      deliveredMs: number | null;
      checkMs: number | null;
    })[],
  ): Promise<void> {
    await this.#insert(
      DELIVERY_COLUMNS,
      noted.map((one) => [one.eventId, one.receiver, one.state, one.deliveredMs, one.eventMs, one.checkMs]),
      `ON CONFLICT (event_id, receiver) DO UPDATE SET state = excluded.state, delivered_ms = excluded.delivered_ms,
         check_ms = excluded.check_ms`,
    );
  }

  async #insert(into: string, rows: readonly (readonly Value[])[], conflict = ''): Promise<void> {
    for (const some of chunks(rows, ROWS_AT_ONCE)) {
      const values = some.map((row) => `(${marks(row.length)})`).join(', ');
      await this.#sql.run(`INSERT INTO ${into} VALUES ${values} ${conflict}`, some.flat());
    }
  }

  async noteBreak(atMs: number, { kind, detail }: { kind: string; detail: string }): Promise<void> {
    await this.#sql.run('INSERT INTO books_breaks (at_ms, kind, detail) VALUES (?, ?, ?)', [
      atMs,
      kind,
      detail,
    ]);
  }

  /** Sums the open transfers at a time by the postings before it, per source token. */
  async balancesAt(
    atMs: number,
  ): Promise<Map<string, { chainId: string; token: string; count: number; amount: bigint }>> {
    const sums = new Map<string, { chainId: string; token: string; count: number; amount: bigint }>();
    for await (const some of touchedSince(this.#sql, atMs)) {
      const rows = await this.#sql.all(
        `SELECT chain_id, token, side, count, amount FROM books_postings
         WHERE subject IN (${marks(some.length)}) AND booked_ms < ? AND side IN ('started', 'ended')`,
        [...some, atMs],
      );
      for (const row of rows) {
        const [chainId, token] = [String(row.chain_id), String(row.token)];
        const key = JSON.stringify([chainId, token]);
        const sum = sums.get(key) ?? { chainId, token, count: 0, amount: 0n };
        const sign = row.side === 'started' ? 1 : -1;
        sum.count += sign * Number(row.count);
        sum.amount += BigInt(sign) * BigInt(String(row.amount));
        sums.set(key, sum);
      }
    }
    return sums;
  }

  /** Stores the rules of a closed day, and the sums of transfers open at its end. */
  async close(atMs: number, rules: DayRules): Promise<void> {
    await this.#sql.run(
      'INSERT INTO books_closed_days (at_ms, rules) VALUES (?, ?) ON CONFLICT (at_ms) DO NOTHING',
      [atMs, rulesText(rules)],
    );
    for (const { chainId, token, count, amount } of (await this.balancesAt(atMs)).values()) {
      if (count === 0 && amount === 0n) continue;
      await this.#sql.run(
        `INSERT INTO books_closings (at_ms, chain_id, token, count, amount) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (at_ms, chain_id, token) DO NOTHING`,
        [atMs, chainId, token, count, String(amount)],
      );
    }
  }

  /**
   * Removes transfers that ended before the retention, whole: their postings add up to nothing. A bounded number at a time.
   * Their names stay, so that they do not count as new.
   */
  async prune({
    nowMs,
    retentionMs,
    count,
  }: {
    nowMs: number;
    retentionMs: number;
    count: number;
  }): Promise<void> {
    const beforeMs = nowMs - retentionMs;
    const rows = await this.#sql.all(
      'SELECT subject FROM books_transfers WHERE is_open = 0 AND booked_ms < ? ORDER BY booked_ms LIMIT ?',
      [beforeMs, count],
    );
    for (const { subject } of rows) {
      const name = subject ?? '';
      await this.#sql.run(
        'DELETE FROM books_deliveries WHERE event_id IN (SELECT event_id FROM books_events WHERE subject = ?)',
        [name],
      );
      for (const table of ['books_postings', 'books_events', 'books_transfers']) {
        await this.#sql.run(`DELETE FROM ${table} WHERE subject = ?`, [name]);
      }
    }
    await this.#insert(
      'books_expired (subject, at_ms)',
      rows.map(({ subject }) => [subject ?? '', nowMs]),
      'ON CONFLICT (subject) DO UPDATE SET at_ms = excluded.at_ms',
    );
    const namesBeforeMs = nowMs - Math.max(retentionMs, LEAST_NAMED_MS);
    await this.#sql.run('DELETE FROM books_expired WHERE at_ms < ?', [namesBeforeMs]);
    for (const table of [
      'books_closed_days',
      'books_closings',
      'books_breaks',
      'books_mails',
      'books_mail_recipients',
    ]) {
      await this.#sql.run(`DELETE FROM ${table} WHERE at_ms < ?`, [beforeMs]);
    }
  }
}

/** Formats a place: equal places have equal texts. */
function textOf(place: Place): string {
  return JSON.stringify(PLACE.parse(place));
}

/** Reads the place of the books; null before they were begun. */
export async function readPlace(sql: Sql): Promise<Place | null> {
  const [row] = await sql.all('SELECT value FROM books_meta WHERE name = ?', ['place']);
  return row === undefined ? null : PLACE.parse(JSON.parse(String(row.value)));
}

function transferOf(row: Row): BookedTransfer {
  return {
    subject: String(row.subject),
    epoch: Number(row.epoch),
    sequence: Number(row.sequence),
    bookedMs: Number(row.booked_ms),
    state: STATE.parse(row.state),
  };
}

/** Parses the row of an event. */
export function eventOfRow(row: Row): BookedEvent {
  return {
    eventId: String(row.event_id),
    subject: String(row.subject),
    epoch: Number(row.epoch),
    sequence: Number(row.sequence),
    type: String(row.type),
    atMs: Number(row.at_ms),
    bookedMs: Number(row.booked_ms),
    entry: String(row.entry),
    state: STATE.parse(row.state),
  };
}
