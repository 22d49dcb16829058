import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BookStore, type Place } from '../../src/books/book-store.ts';
import { ingest, observationOf } from '../../src/books/observations.ts';
import { BooksReader } from '../../src/books/reader.ts';
import { type Database, prepareTables } from '../../src/books/sql/database.ts';
import { openSqlite } from '../../src/books/sql/sqlite.ts';
import type { Event } from '../../src/domain/events/event.ts';
import { renderEvent } from '../../src/domain/events/make-event.ts';
import { COMMON_NAMES, type Directory } from '../../src/domain/transfers/chains.ts';

export const DAY_MS = 86_400_000;

/** The first day of the books in these tests, in UTC. */
export const FIRST_MS = Date.parse('2026-11-21T00:00:00Z');

const USDC_BASE = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const USDC_ARBITRUM = '0xaf88d065e77c8cc2239327c5edb3a432268e5831';

/** An event of a transfer as the log stores it. */
export type Reported = {
  transfer: number;
  sequence: number;
  status: string;
  /** Both in ms after the first day began: the time of the upstream, and the time of the poll. */
  atMs: number;
  seenMs: number;
  amount: bigint | null;
  type?: string;
  fundedMs?: number;
  more?: object;
};

/** Makes the event of an invented transfer from Base to Arbitrum. */
export function reportedEvent(reported: Reported): Event {
  const { transfer, sequence, status, atMs, seenMs, amount, type, fundedMs, more } = reported;
  const id = `intent:0x${String(transfer).padStart(64, '0')}`;
  const updatedAt = Math.floor((FIRST_MS + atMs) / 1_000);
  const sourceTx = {
    chainId: 8453,
    token: USDC_BASE,
    amount: String(amount ?? ''),
    txHash: `0x${'a'.repeat(64)}`,
  };
  const destinationTx = {
    chainId: 42161,
    token: USDC_ARBITRUM,
    amount: String((amount ?? 10n) - 10n),
    txHash: `0x${'b'.repeat(64)}`,
  };
  const isFilled = status === 'filled' || status === 'settled';
  return {
    id: `evt_${createHash('sha1')
      .update(`${transfer}.${sequence}.${status}.${type ?? ''}.${updatedAt}`)
      .digest('hex')}`,
    type: type ?? `intent.${status}`,
    timestamp: new Date(FIRST_MS + seenMs).toISOString(),
    data: {
      subject: { kind: 'intent', id },
      sequence,
      epoch: 1,
      status,
      previousStatus: null,
      changes: ['status'],
      record: {
        id,
        type: 'intent',
        status,
        updatedAt,
        ...(amount === null ? {} : { sourceTx }),
        ...(isFilled && amount !== null ? { destinationTx } : {}),
      },
      upstreamUpdatedAt: updatedAt,
      detectionDelaySeconds: 0,
      ...(fundedMs === undefined ? {} : { fundedAt: Math.floor((FIRST_MS + fundedMs) / 1_000) }),
      ...more,
    },
  };
}

/** Books in a file of their own, fed by the test. */
export class BooksStage {
  readonly database: Database;
  readonly store: BookStore;
  readonly #folder: string;
  readonly #file: string;
  place: Place;

  private constructor(deps: { folder: string; file: string; place: Place; database: Database | null }) {
    this.#folder = deps.folder;
    this.#file = deps.file;
    this.database = deps.database ?? openSqlite(deps.file);
    this.store = new BookStore(this.database);
    this.place = deps.place;
  }

  /** Opens books in a database, or in a new SQLite file where none is given. */
  static async open(database: Database | null = null): Promise<BooksStage> {
    const folder = await mkdtemp(join(tmpdir(), 'intentwatch-books-'));
    const place: Place = {
      log: 'log',
      entry: '0-0',
      epoch: 1,
      zone: 'UTC',
      openedMs: FIRST_MS,
      closedMs: FIRST_MS,
      readMs: 0,
      checkedMs: 0,
    };
    const stage = new BooksStage({ folder, file: join(folder, 'books.sqlite'), place, database });
    await prepareTables(stage.database);
    stage.place = await stage.store.begin(place);
    return stage;
  }

  /** Notes that the event log was read to its end. */
  async read(atMs: number): Promise<void> {
    const to = { ...this.place, readMs: atMs };
    await this.store.move({ from: this.place, to }, async () => {});
    this.place = to;
  }

  get file(): string {
    return this.#file;
  }

  async ingest(...reported: Reported[]): Promise<void> {
    await this.#ingest([], reported);
  }

  /** Ingests events that a receiver must get. */
  async ingestFor(receiver: string, ...reported: Reported[]): Promise<void> {
    await this.#ingest([receiver], reported);
  }

  async #ingest(receivers: readonly string[], reported: readonly Reported[]): Promise<void> {
    await this.store.move({ from: this.place, to: this.place }, async (writer) => {
      const seen = reported.map((one) => {
        const event = reportedEvent(one);
        const observation = observationOf(renderEvent(event, [], new Map()), event);
        return { observation, entry: '1-0', receivers };
      });
      await ingest(writer, { place: this.place, directory: COMMON_NAMES }, seen);
    });
  }

  /** Closes the days up to a time, in ms after the first began. */
  async close(uptoMs: number, checked: readonly string[] = []): Promise<void> {
    const rules = { closeAfterMs: 3_600_000, checked: new Set(checked) };
    const to = { ...this.place, closedMs: FIRST_MS + uptoMs };
    await this.store.move({ from: this.place, to }, async (writer) => {
      for (let end = this.place.closedMs + DAY_MS; end <= to.closedMs; end += DAY_MS)
        await writer.close(end, rules);
    });
    this.place = to;
  }

  /** Removes all that ended before a time, in ms after the first day began. */
  async expire(beforeMs: number): Promise<void> {
    const deps = { nowMs: FIRST_MS + beforeMs, retentionMs: 0, count: 1_000 };
    await this.store.move({ from: this.place, to: this.place }, (writer) => writer.prune(deps));
  }

  /** The report of a day, counted from the first. */
  reader(checked: readonly string[] = [], names: Partial<Directory> = {}): BooksReader {
    return new BooksReader(this.database, {
      zone: 'UTC',
      closeAfterMs: 3_600_000,
      retentionMs: 400 * DAY_MS,
      directory: { ...COMMON_NAMES, ...names },
      checked: new Set(checked),
    });
  }

  async discard(): Promise<void> {
    await this.database.close();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
