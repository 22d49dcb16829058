import { randomBytes } from 'node:crypto';
import type { Event } from '../domain/events/event.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { type LogEntry, parseEntry } from './log-entry.ts';
import { scripts } from './scripts.ts';
import { unmatchedBefore } from './unmatched.ts';

/** The number of entries that are stored as they were read: what the relay read is read again when it is sent, up to MOST_OPEN later. */
const MOST_READ = 1_500;

/** The number of bytes the stored texts of these entries have at most, as UTF-8; an entry of 4 kB is usual. */
export const MOST_READ_BYTES = 8_388_608;

/**
 * No further entry is read into a piece of the log that has so many bytes: 500 usual ones fit. A record of the upstream
 * may have 1 MiB, and hundreds of these at once would hold the event loop up for seconds.
 */
const MOST_PIECE_BYTES = 2_097_152;

/** The number of entries, times receivers, are trimmed by one script, which holds Redis up; and how many scripts run in one round. */
const TRIMMED_AT_ONCE = 500;
const MOST_TRIMMED_PIECES = 20;

/** Entries of the log that follow each other. `more`: there may be more behind them that was requested. */
export type LogPiece = { entries: LogEntry[]; more: boolean };

/** The event log: one Redis Stream, the outbox and the history at once. */
export class EventLog {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  /** What was read last, by its place: an entry never changes, and many receivers want the same one. */
  readonly #read = new Map<string, { fields: readonly string[]; bytes: number; entry: LogEntry }>();
  /** The bytes of all that was read last. */
  #readBytes = 0;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** The entries after one, oldest first: at most so many, fewer where they are large. */
  async after(entry: string, count: number): Promise<LogPiece> {
    return this.#piece({ from: `(${entry}`, to: '+', count, order: '' });
  }

  /** Waits on a connection of its own for an entry after one, at most so long. Returns whether there is one. */
  async awaitAfter(
    entry: string,
    { blocking, waitMs }: { blocking: RedisClient; waitMs: number },
  ): Promise<boolean> {
    return (await blocking.xread('COUNT', 1, 'BLOCK', waitMs, 'STREAMS', this.#keys.events, entry)) !== null;
  }

  /** What stands at an entry; null when it was trimmed. */
  async at(entry: string): Promise<LogEntry | null> {
    const [row] = await this.#redis.xrange(this.#keys.events, entry, entry);
    return row === undefined ? null : this.read(row[0], row[1]);
  }

  /** An entry from its fields, as they stand at its place. */
  read(id: string, fields: readonly string[]): LogEntry {
    const known = this.#read.get(id);
    if (known !== undefined && isSame(known.fields, fields)) return known.entry;
    const entry = parseEntry(id, fields);
    this.#forget(id);
    const bytes = fields.reduce((sum, field) => sum + Buffer.byteLength(field, 'utf8'), 0);
    this.#read.set(id, { fields, bytes, entry });
    this.#readBytes += bytes;
    for (const oldest of this.#read.keys()) {
      if (this.#read.size <= MOST_READ && this.#readBytes <= MOST_READ_BYTES) break;
      this.#forget(oldest);
    }
    return entry;
  }

  #forget(id: string): void {
    this.#readBytes -= this.#read.get(id)?.bytes ?? 0;
    this.#read.delete(id);
  }

  /** The id of the newest entry; `0-0` in an empty log. */
  async newest(): Promise<string> {
    const [row] = await this.#redis.xrevrange(this.#keys.events, '+', '-', 'COUNT', 1);
    return row?.[0] ?? '0-0';
  }

  /** Appends an event for the operator. */
  async append(event: Event): Promise<void> {
    await scripts.appendEvent(this.#redis, { keys: this.#keys, args: { event } });
  }

  /**
   * Removes entries older than a moment (ms), also of what was quarantined or reached nobody, and what became of the deliveries
   * of these events to some receivers; the oldest first, a bounded number. Returns how many went.
   */
  async trim(beforeMs: number, receivers: readonly string[] = []): Promise<number> {
    await this.#redis.zremrangebyscore(this.#keys.quarantine, '-inf', `(${beforeMs}`);
    await this.#redis.zremrangebylex(this.#keys.unmatched, '-', unmatchedBefore(beforeMs));
    const most = Math.max(1, Math.floor(TRIMMED_AT_ONCE / (1 + receivers.length)));
    const prefix = this.#keys.root;
    const args = { beforeMs: Math.max(0, Math.floor(beforeMs)), most, prefix, receivers };
    let gone = 0;
    for (let piece = 0; piece < MOST_TRIMMED_PIECES; piece += 1) {
      const { count, more } = await scripts.trimLog(this.#redis, { keys: this.#keys, args });
      gone += count;
      if (!more) break;
    }
    return gone;
  }

  /** The newest entry that was trimmed; null when none was. */
  async trimmed(): Promise<string | null> {
    return this.#redis.get(this.#keys.trimmed);
  }

  /** The name of this log. It is empty after Redis lost its data, until the daemon gives the new log a name. */
  async name(): Promise<string> {
    return (await this.#redis.get(this.#keys.logName)) ?? '';
  }

  /** Gives the log a name where it has none, and returns the name. Requests that only read must not call it. */
  async ensureName(): Promise<string> {
    await this.#redis.set(this.#keys.logName, randomBytes(6).toString('base64url'), 'NX');
    return this.name();
  }

  /** The entries before one, newest first: at most so many, fewer where they are large. */
  async before(entry: string, count: number): Promise<LogPiece> {
    // Nothing stands before the first place there can be, and Redis takes it for no place.
    if (entry === '0-0') return { entries: [], more: false };
    return this.#piece({ from: entry === '+' ? '+' : `(${entry}`, to: '-', count, order: 'backward' });
  }

  /** What stands at several entries, in their order; null for what was trimmed. At least the first, fewer where they are large. */
  async atFirst(entries: readonly string[]): Promise<(LogEntry | null)[]> {
    if (entries.length === 0) return [];
    const args = { mostBytes: MOST_PIECE_BYTES, entries };
    const found = await scripts.readPlaces(this.#redis, { keys: this.#keys, args });
    return found.map((fields, index) =>
      fields.length === 0 ? null : this.read(entries[index] ?? '', fields),
    );
  }

  /** What stands at several entries, in their order; null for what was trimmed. */
  async atAll(entries: readonly string[]): Promise<(LogEntry | null)[]> {
    const found: (LogEntry | null)[] = [];
    while (found.length < entries.length) found.push(...(await this.atFirst(entries.slice(found.length))));
    return found;
  }

  /** The entries after one and before another, oldest first: at most so many, fewer where they are large. */
  async between(after: string, { before, count }: { before: string; count: number }): Promise<LogPiece> {
    return this.#piece({ from: `(${after}`, to: `(${before}`, count, order: '' });
  }

  async #piece(asked: {
    from: string;
    to: string;
    count: number;
    order: '' | 'backward';
  }): Promise<LogPiece> {
    const { count: most, ...range } = asked;
    const args = { ...range, most, mostBytes: MOST_PIECE_BYTES };
    const { rows, more } = await scripts.readLog(this.#redis, { keys: this.#keys, args });
    return { entries: rows.map(({ id, fields }) => this.read(id, fields)), more };
  }
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, index) => text === other[index]);
}
