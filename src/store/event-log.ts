import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { BoundedMap, CACHES } from '../domain/caches.ts';
import type { SubjectId } from '../domain/subjects/subject.ts';
import type { RedisClient } from './commands.ts';
import {
  compareEntries,
  eventOf,
  type LogEntry,
  parseEntry,
  placeAfter,
  type StoredEntry,
} from './log-entry.ts';
import { unpack, unpackedBytes } from './packed.ts';
import { scripts } from './scripts.ts';
import { JSON_TEXT, RedisStore } from './stored.ts';
import { unmatchedBefore } from './undelivered.ts';

/**
 * Byte limit of one piece of the log, beyond which no further entry is read: 500 usual ones fit. A record of the upstream may
 * have 1 MiB, and hundreds of these at once would block the event loop for seconds.
 */
const MOST_PIECE_BYTES = 2_097_152;

/** Most entries that a wait returns: their bytes are not limited, as those of a piece are. */
const MOST_AWAITED = 4;

/** Most entries, times receivers, that one script trims, since it blocks Redis; and most scripts in one round. */
const TRIMMED_AT_ONCE = 500;
const MOST_TRIMMED_PIECES = 50;

/** Consecutive entries of the log. `more`: the requested range may have more after them. */
export type LogPiece = { entries: LogEntry[]; more: boolean };

type LogRange = { from: string; to: string; count: number; order: '' | 'backward' };

/** The event log: one Redis Stream, the outbox and the history at once. */
export class EventLog extends RedisStore {
  /** Cache of parsed entries by place: an entry never changes, and many receivers need the same one. */
  readonly #read = new BoundedMap<string, { fields: readonly string[]; entry: LogEntry }>({
    ...CACHES.logEntries,
    bytesOf: (_id, { fields }) => fields.reduce((sum, field) => sum + unpackedBytes(field), 0),
  });

  /** Returns the entries after one, oldest first: at most `count`, fewer where they are large. */
  async after(entry: string, count: number): Promise<LogPiece> {
    return this.#piece({ from: `(${entry}`, to: '+', count, order: '' });
  }

  /** As `after`, for a reader whose entries are not delivered then: it leaves the memory to those that are. */
  async scan(entry: string, count: number): Promise<LogPiece> {
    const { rows, more } = await this.#rows({ from: `(${entry}`, to: '+', count, order: '' });
    return {
      entries: rows.map(({ id, fields }) => this.#heldOf(id, fields) ?? parseEntry(id, fields)),
      more,
    };
  }

  /** Waits on its own connection for entries after one, at most `waitMs`. Returns the first; none where none came. */
  async awaitAfter(
    entry: string,
    { blocking, waitMs }: { blocking: RedisClient; waitMs: number },
  ): Promise<LogPiece> {
    const { events } = this.keys;
    const found = await blocking.xread('COUNT', MOST_AWAITED, 'BLOCK', waitMs, 'STREAMS', events, entry);
    const entries = (found?.[0]?.[1] ?? []).map(([id, fields]) => this.read(id, fields));
    return { entries, more: entries.length === MOST_AWAITED };
  }

  /** Null when it was trimmed. */
  async at(entry: string): Promise<LogEntry | null> {
    const [row] = await this.redis.xrange(this.keys.events, entry, entry);
    return row === undefined ? null : this.read(row[0], row[1]);
  }

  read(id: string, fields: readonly string[]): LogEntry {
    const held = this.#heldOf(id, fields);
    if (held !== null) return held;
    const entry = parseEntry(id, fields);
    this.#read.set(id, { fields, entry });
    return entry;
  }

  /** Returns the entry that this process wrote. It is not parsed: it is as `read` would return it. */
  readOwn({ id, fields, entry }: StoredEntry): LogEntry {
    this.#read.set(id, { fields, entry });
    return entry;
  }

  #heldOf(id: string, fields: readonly string[]): LogEntry | null {
    const held = this.#read.peek(id);
    return held !== undefined && isSame(held.fields, fields) ? held.entry : null;
  }

  /** Returns the entry of an event that was read before; null where it is not in memory, or another one. */
  cached(id: string, eventId: string): LogEntry | null {
    const entry = this.#read.peek(id)?.entry ?? null;
    return eventOf(entry)?.id === eventId ? entry : null;
  }

  /** Returns `0-0` in an empty log. */
  async newest(): Promise<string> {
    const [row] = await this.redis.xrevrange(this.keys.events, '+', '-', 'COUNT', 1);
    return row?.[0] ?? '0-0';
  }

  /** Returns the time of the oldest entry (ms); Infinity in an empty log. */
  async loggedFromMs(): Promise<number> {
    const [row] = await this.redis.xrange(this.keys.events, '-', '+', 'COUNT', 1);
    return row === undefined ? Number.POSITIVE_INFINITY : Number.parseInt(row[0], 10);
  }

  /**
   * Removes entries older than a time (ms), their places in the quarantine and the list of unmatched events, and the facts of
   * their deliveries to these receivers; the oldest first, a bounded number. `more`: others may be trimmed now.
   */
  async trim(
    beforeMs: number,
    receivers: readonly string[] = [],
  ): Promise<{ trimmed: number; more: boolean }> {
    await Promise.all([
      this.redis.zremrangebyscore(this.keys.quarantine, '-inf', `(${beforeMs}`),
      this.redis.zremrangebylex(this.keys.unmatched, '-', unmatchedBefore(beforeMs)),
    ]);
    const count = Math.max(1, Math.floor(TRIMMED_AT_ONCE / (1 + receivers.length)));
    const to = `(${Math.max(0, Math.floor(beforeMs))}-0`;
    let trimmed = 0;
    for (let piece = 0; piece < MOST_TRIMMED_PIECES; piece += 1) {
      const { rows, more } = await this.#rows({ from: '-', to, count, order: '' });
      const entries = rows.map(({ id: entry, fields }) => ({ entry, ...namesOf(fields) }));
      const args = { prefix: this.keys.prefix, receivers, entries };
      const gone = await scripts.trimLog(this.redis, { keys: this.keys, args });
      trimmed += gone;
      if (!more || gone < rows.length) return { trimmed, more: false };
    }
    return { trimmed, more: true };
  }

  async trimmed(): Promise<string | null> {
    return this.redis.get(this.keys.trimmed);
  }

  /** Returns the name of this log. It is empty after Redis lost its data, until the daemon names the new log. */
  async name(): Promise<string> {
    return (await this.redis.get(this.keys.logName)) ?? '';
  }

  /** Names the log where it has no name, and returns the name. Requests that only read must not call it. */
  async ensureName(): Promise<string> {
    await this.redis.set(this.keys.logName, randomBytes(6).toString('base64url'), 'NX');
    return this.name();
  }

  /** Returns the entries before one, newest first: at most `count`, fewer where they are large. */
  async before(entry: string, count: number): Promise<LogPiece> {
    // Nothing is before the first possible place, and Redis does not accept it as one.
    if (entry === '0-0') return { entries: [], more: false };
    return this.#piece({ from: entry === '+' ? '+' : `(${entry}`, to: '-', count, order: 'backward' });
  }

  /** Returns the first of several entries, at least one, fewer where they are large; null for trimmed ones. */
  async readSomeAt(entries: readonly string[]): Promise<(LogEntry | null)[]> {
    if (entries.length === 0) return [];
    const args = { mostBytes: MOST_PIECE_BYTES, entries };
    const found = await scripts.readPlaces(this.redis, { keys: this.keys, args });
    return found.map((fields, index) =>
      fields.length === 0 ? null : this.read(entries[index] ?? '', fields),
    );
  }

  /** As `readSomeAt`, but for all places. */
  async readAllAt(entries: readonly string[]): Promise<(LogEntry | null)[]> {
    const found: (LogEntry | null)[] = [];
    while (found.length < entries.length) found.push(...(await this.readSomeAt(entries.slice(found.length))));
    return found;
  }

  /** As `after`, up to another entry. */
  async between(after: string, { before, count }: { before: string; count: number }): Promise<LogPiece> {
    return this.#piece({ from: `(${after}`, to: `(${before}`, count, order: '' });
  }

  async #piece(range: LogRange): Promise<LogPiece> {
    const { rows, more } = await this.#rows(range);
    return { entries: rows.map(({ id, fields }) => this.read(id, fields)), more };
  }

  async #rows({ count: most, ...range }: LogRange) {
    const args = { ...range, most, mostBytes: MOST_PIECE_BYTES };
    return scripts.readLog(this.redis, { keys: this.keys, args });
  }
}

/** Returns the ids of an entry's event and of its subject, without checking the event; "" for none. */
function namesOf(fields: readonly string[]): { event: string; subject: string } {
  const textOf = (name: string): string => {
    const at = fields.findIndex((field, index) => index % 2 === 0 && field === name);
    return at < 0 ? '' : (fields[at + 1] ?? '');
  };
  const event = textOf('kind') === 'subscribers' ? '' : unpack(textOf('event'));
  return {
    event: /^{"id":"([^"]+)"/.exec(event)?.[1] ?? '',
    subject: subjectIn(event),
  };
}

/** An upstream chooses the ids of unknown kinds: one may have quotes and backslashes. */
const SUBJECT = /"subject":{"kind":"[^"\\]*","id":("(?:[^"\\]|\\.)*")/;

const SUBJECT_TEXT = JSON_TEXT.pipe(z.string());

function subjectIn(event: string): string {
  const [, id] = SUBJECT.exec(event) ?? [];
  return SUBJECT_TEXT.safeParse(id).data ?? '';
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, index) => text === other[index]);
}

/** A range of entries: the newest `count` of those before one (null: the end of the log), down to `from` (null: the oldest). */
export type EntryRange = { before: string | null; from: string | null; count: number };

/**
 * The places of each subject's events in the event log. A commit adds to it in the step that writes the event. Members are
 * entries with all their digits (16 and 20) and score 0, so that Redis orders them as the log does. Where the only event was for
 * all claims, its snapshot has its place (`eventEntry`), and there is no list.
 */
export class SubjectEntries extends RedisStore {
  /** Returns the entries of several subjects' events, the newest first. One read per subject, however many they have. */
  async list(subjects: readonly SubjectId[], { before, from, count }: EntryRange): Promise<string[]> {
    const trimmed = await this.redis.get(this.keys.trimmed);
    const floors = [from, trimmed === null ? null : placeAfter(trimmed)].flatMap((entry) => entry ?? []);
    const oldest = floors.sort(compareEntries).at(-1);
    const max = before === null ? '+' : `(${memberOf(before)}`;
    const min = oldest === undefined ? '-' : `[${memberOf(oldest)}`;
    const found = await Promise.all(
      subjects.map((subject) =>
        scripts.listEntries(this.redis, {
          keys: { subjectEntries: this.keys.subjectEntries(subject), subject: this.keys.subject(subject) },
          args: { max, min, count },
        }),
      ),
    );
    // Members of equal length are in the order of the log.
    return found.flat().sort().reverse().slice(0, count).map(entryOf);
  }

  /** True when the last event of a subject that was made for all its claims has left the log. */
  async isLastGone(subject: SubjectId): Promise<boolean> {
    const stored = await this.redis.hget(this.keys.subject(subject), 'eventEntry');
    const entry = /^(\d+-\d+)\|/.exec(stored ?? '')?.[1];
    return entry !== undefined && (await this.redis.xrange(this.keys.events, entry, entry)).length === 0;
  }
}

/** As memberOf in commands/include/entries.lua. */
function memberOf(entry: string): string {
  const [ms = '0', count = '0'] = entry.split('-');
  return `${ms.padStart(16, '0')}-${count.padStart(20, '0')}`;
}

function entryOf(member: string): string {
  return member
    .split('-')
    .map((digits) => BigInt(digits))
    .join('-');
}
