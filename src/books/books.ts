import { join } from 'node:path';
import type { Logger } from 'pino';
import type { BooksConfig } from '../config/config.ts';
import { isTransfer } from '../domain/books/book-state.ts';
import { dayAt } from '../domain/books/day.ts';
import type { DayRules } from '../domain/books/report.ts';
import type { BreakKind } from '../domain/books/report-schema.ts';
import { renderEvent } from '../domain/events/make-event.ts';
import type { Directory } from '../domain/transfers/chains.ts';
import { Duty } from '../duty.ts';
import { messageOf } from '../errors.ts';
import { type Fact, matchFacts, readBatch, wholeFact } from '../queues/deliveries/matches.ts';
import type { Signals } from '../signals.ts';
import { type RedisClient, redisTimeMs } from '../store/commands.ts';
import type { ConfirmedClock } from '../store/confirmed-time.ts';
import type { DeliveryStore } from '../store/deliveries.ts';
import type { EventLog } from '../store/event-log.ts';
import type { Keys } from '../store/keys.ts';
import { FencedLease, type RelayLease } from '../store/lease.ts';
import { compareEntries } from '../store/log-entry.ts';
import type { Registry } from '../store/registry.ts';
import type { SubjectStore } from '../store/subjects.ts';
import { BookStore, OvertakenError, type Place } from './book-store.ts';
import type { DailyReportMailer } from './daily-report-mailer.ts';
import {
  expiredText,
  type FeedItem,
  ingest,
  observationOf,
  owedTo,
  readDeliveries,
  snapshotsSince,
  subjectOf,
} from './observations.ts';
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
    const { redis, database, reportMailer, log, signals, clocks } = this.#deps;
    if (!this.#isPrepared) await prepareTables(database);
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
    const reason = messageOf(error);
    // At the first failure, then at doubled counts: a Postgres may be unreachable for long.
    if ((this.#failures & (this.#failures - 1)) === 0)
      log.error({ reason, failures: this.#failures }, 'books.failed');
    signals.emit('books.failed', { reason });
    return Math.min(MOST_WAIT_MS, IDLE_MS * 2 ** Math.min(this.#failures, 10) * 0.5);
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

type Break = { kind: BreakKind; detail: string; log: string; entry: string };

/** Span before its last entry from which a log that went back is read again; events that are known are not ingested twice. */
const AGAIN_MS = 60_000;

/** Compares the place of the books with the log. Null where the log continues. */
async function findBreak(place: Place, events: EventLog): Promise<Break | null> {
  const [log, trimmed] = await Promise.all([events.ensureName(), events.trimmed()]);
  if (log !== place.log) {
    const detail = `found the event log ${log}, expected ${place.log}, read up to ${place.entry}: it was lost with its Redis. What happened between is not in the books but for what is still under way`;
    return { kind: 'other-log', detail, log, entry: trimmed ?? '0-0' };
  }
  if (trimmed !== null && compareEntries(place.entry, trimmed) < 0) {
    const detail = `events from ${timeOf(place.entry)} to ${timeOf(trimmed)} left the log (retention) before the books read them`;
    return { kind: 'trimmed', detail, log, entry: trimmed };
  }
  if (place.entry === '0-0' || place.entry === trimmed || (await events.at(place.entry)) !== null)
    return null;
  const [last] = (await events.before(place.entry, 1)).entries;
  const fromMs = Math.max(0, Number((last?.id ?? '0-0').split('-')[0]) - AGAIN_MS);
  const detail = `the entry ${place.entry}, which the books had read, is not in the log any more: its Redis was set back to ${last === undefined ? 'its beginning' : timeOf(last.id)}`;
  const again = `${fromMs}-0`;
  const entry = trimmed !== null && compareEntries(again, trimmed) < 0 ? trimmed : again;
  return { kind: 'lost', detail, log, entry };
}

function timeOf(entry: string): string {
  return new Date(Number(entry.split('-')[0])).toISOString();
}

/** The rules of the books. `closeAfterMs` is also the wait of a day after its end for late observations. */
type BookRules = DayRules & { zone: string; retentionMs: number };

/** The stores that feed the books. */
export type FeedSources = {
  events: EventLog;
  registry: Registry;
  subjects: SubjectStore;
  deliveries: DeliveryStore;
  lease: RelayLease;
  directory: Directory;
};

/** The result of a round. `isAtEnd`: nothing more to read; `stoppedBy`: an entry that only a newer version can read. */
type Fed = {
  ingested: number;
  isAtEnd: boolean;
  broke: Break | null;
  stoppedBy: string | null;
  closed: string[];
};

const BATCH = 200;

/** Interval of the snapshot checks, and of the writes of a place that only moves `readMs`. */
const SNAPSHOTS_EVERY_MS = 30_000;
const NOTE_EVERY_MS = 15_000;

const PRUNED_AT_ONCE = 200;

/**
 * Ingests the event log into the books. One round at a time, and one process at a time: a lease excludes others, and the
 * place, which moves in the same transaction as the rows, makes a concurrent write void.
 */
export class Feed {
  readonly #books: BookStore;
  readonly #sources: FeedSources;
  readonly #rules: BookRules;
  #place: Place | null = null;

  constructor(books: BookStore, sources: FeedSources, rules: BookRules) {
    this.#books = books;
    this.#sources = sources;
    this.#rules = rules;
  }

  get place(): Place | null {
    return this.#place;
  }

  /** Clears the place: another process may have moved it. */
  reset(): void {
    this.#place = null;
  }

  /**
   * Reads a part of the log. `mayClose`: the clocks agree; `confirmedMs`: the confirmed time, by which the retention ends.
   * Both are omitted where nothing else is known. Throws an OvertakenError where another process feeds too.
   */
  async round(
    nowMs: number,
    { mayClose = true, confirmedMs = nowMs }: { mayClose?: boolean; confirmedMs?: number } = {},
  ): Promise<Fed> {
    let place = this.#place ?? (await this.#books.place()) ?? (await this.#begin(nowMs));
    const broke = await findBreak(place, this.#sources.events);
    if (broke !== null) place = await this.#passBreak(place, broke, nowMs);
    const { entries, more } = await this.#sources.events.scan(place.entry, BATCH);
    const batch = await readBatch(entries, this.#sources.events);
    const seen = await this.#seen(batch.facts);
    const isAtEnd = !more && !batch.isCut && batch.stoppedBy === null;
    const isWorthNoting = batch.last !== null || (isAtEnd && nowMs - place.readMs >= NOTE_EVERY_MS);
    let ingested = 0;
    if (isWorthNoting) {
      const to = { ...place, entry: batch.last ?? place.entry, readMs: isAtEnd ? nowMs : place.readMs };
      const from = place;
      const { directory } = this.#sources;
      ingested = await this.#books.move({ from, to }, async (writer) => {
        const reported = seen.filter(({ isLate }) => !isLate);
        const { ingested: count, expired } = await ingest(writer, { place: from, directory }, reported);
        const late = seen.filter(({ isLate }) => isLate);
        const booked = await writer.bookedEvents(late.map(({ observation }) => observation.event.id));
        await writer.follow(
          // Deliveries of events outside the books are not followed: nothing would ever remove them.
          late.flatMap(({ observation: { event }, receivers, entry }) => {
            // After the event, also where a clock was ahead: entries have the same time until that has come.
            const eventMs = Math.max(Number(entry.split('-')[0]), Date.parse(event.timestamp) + 1);
            return booked.has(event.id)
              ? receivers.map((receiver) => ({ eventId: event.id, receiver, eventMs }))
              : [];
          }),
        );
        if (expired.length > 0) {
          await writer.noteBreak(nowMs, { kind: 'expired', detail: expiredText(expired) });
        }
        for (const { reason } of batch.unreadable) {
          await writer.noteBreak(nowMs, {
            kind: 'unreadable',
            detail: `an event that cannot be read: ${reason}`,
          });
        }
        return count;
      });
      place = to;
    }
    this.#place = place;
    const closesMs = dayAt(place.closedMs, place.zone).toMs + this.#rules.closeAfterMs;
    const { deliveries } = this.#sources;
    // A day is closed only after all its deliveries were checked: its report would name some that were done in time.
    const isComplete = await readDeliveries(this.#books, { place, deliveries, nowMs, closesMs });
    const closed = mayClose && isAtEnd && isComplete ? await this.#atEnd(nowMs, confirmedMs) : [];
    return { ingested, isAtEnd, broke, stoppedBy: batch.stoppedBy?.id ?? null, closed };
  }

  async #begin(nowMs: number): Promise<Place> {
    const { events } = this.#sources;
    const { zone } = this.#rules;
    const [log, trimmed, oldest] = await Promise.all([
      events.ensureName(),
      events.trimmed(),
      events.after('0-0', 1),
    ]);
    const [first] = oldest.entries;
    const firstMs = first === undefined ? nowMs : Number(first.id.split('-')[0]);
    const openedMs = dayAt(firstMs, zone).fromMs;
    return this.#books.begin({
      log,
      entry: trimmed ?? '0-0',
      epoch: 1,
      zone,
      openedMs,
      closedMs: openedMs,
      readMs: 0,
      checkedMs: 0,
    });
  }

  async #passBreak(from: Place, broke: Break, nowMs: number): Promise<Place> {
    const { log, entry, kind, detail } = broke;
    const to = { ...from, log, entry, epoch: from.epoch + 1, checkedMs: 0 };
    await this.#books.move({ from, to }, (writer) => writer.noteBreak(nowMs, { kind, detail }));
    this.#place = to;
    return to;
  }

  /** Renders the events of transfers for a reader of everything, each with its matching receivers. */
  async #seen(facts: readonly Fact[]): Promise<(FeedItem & { isLate: boolean })[]> {
    const { registry, directory } = this.#sources;
    const wanted = facts.filter(({ event, claimKeys }) => claimKeys !== null && isTransfer(event));
    const subscriptions = await registry.subscriptions(
      wanted.map(wholeFact).flatMap(({ claimKeys }) => claimKeys ?? []),
    );
    const matched = await matchFacts(wanted, { registry, directory });
    const receivers = new Map<string, string[]>();
    for (const receiver of await registry.receivers()) {
      if (receiver.removed) continue;
      for (const at of await owedTo(receiver, matched(receiver), this.#sources))
        receivers.set(at, [...(receivers.get(at) ?? []), receiver.name]);
    }
    // The books name a transfer's subscriptions also while those are suspended.
    return wanted.map(wholeFact).map(({ event, claimKeys, place, at }) => ({
      observation: observationOf(renderEvent(event, claimKeys ?? [], subscriptions, directory), event),
      entry: at,
      receivers: receivers.get(at) ?? [],
      isLate: place !== at,
    }));
  }

  /** Does the work at the end of the log: transfers without events, days that are over, and removals. */
  async #atEnd(nowMs: number, confirmedMs: number): Promise<string[]> {
    const place = this.#place;
    if (place === null) return [];
    // A clock that was set back stored snapshots before that time: all are checked again.
    const isWhole = place.checkedMs === 0 || nowMs < place.checkedMs - SNAPSHOTS_EVERY_MS;
    if (!isWhole && nowMs - place.checkedMs < SNAPSHOTS_EVERY_MS) return [];
    const found = await snapshotsSince(isWhole ? 0 : place.checkedMs - SNAPSHOTS_EVERY_MS, this.#sources);
    const due = found.filter(
      ({ lastEntry }) => lastEntry === null || compareEntries(lastEntry, place.entry) <= 0,
    );
    const closing: ReturnType<typeof dayAt>[] = [];
    const to = { ...place, zone: this.#rules.zone, checkedMs: nowMs, readMs: nowMs };
    for (;;) {
      const day = dayAt(to.closedMs, to.zone);
      if (day.toMs + this.#rules.closeAfterMs > nowMs) break;
      to.closedMs = day.toMs;
      closing.push(day);
    }
    await this.#books.move({ from: place, to }, async (writer) => {
      const booked = await writer.transfers(due.map(subjectOf));
      const news = due.filter((one) => {
        const before = booked.get(subjectOf(one));
        const { status } = one.observation.event.data;
        if (before === undefined) return true;
        // After a restore, an older snapshot has less than the books: its missed changes are found again under their old ids.
        const isOfNow = one.observation.event.data.epoch >= this.#sources.subjects.epoch.begun.epoch;
        return isOfNow && before.epoch < place.epoch && before.state.status !== status;
      });
      await ingest(writer, { place, directory: this.#sources.directory }, news);
      for (const { toMs } of closing) await writer.close(toMs, this.#rules);
      await writer.prune({
        nowMs: Math.min(nowMs, confirmedMs),
        retentionMs: this.#rules.retentionMs,
        count: PRUNED_AT_ONCE,
      });
    });
    this.#place = to;
    return closing.map(({ day }) => day);
  }
}
