import type { Event } from '../domain/event.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { type LogEntry, parseEntry } from './log-entry.ts';

/** The event log: one Redis Stream, the outbox and the history at once. */
export class EventLog {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** The entries after one, oldest first. */
  async after(entry: string, count: number): Promise<LogEntry[]> {
    const rows = await this.#redis.xrange(this.#keys.events, `(${entry}`, '+', 'COUNT', count);
    return rows.map(([id, fields]) => parseEntry(id, fields));
  }

  /** What stands at an entry; null when it was trimmed. */
  async at(entry: string): Promise<LogEntry | null> {
    const [row] = await this.#redis.xrange(this.#keys.events, entry, entry);
    return row === undefined ? null : parseEntry(row[0], row[1]);
  }

  /** The id of the newest entry; `0-0` in an empty log. */
  async newest(): Promise<string> {
    const [row] = await this.#redis.xrevrange(this.#keys.events, '+', '-', 'COUNT', 1);
    return row?.[0] ?? '0-0';
  }

  /** Appends an event for the operator. */
  async append(event: Event): Promise<void> {
    await this.#redis.iwAppendEvent(this.#keys.events, event.data.subject.id, JSON.stringify(event));
  }

  /** Removes entries older than a moment (Redis time, ms), also of what was set aside. Returns how many went. */
  async trim(beforeMs: number): Promise<number> {
    await this.#redis.zremrangebyscore(this.#keys.setAside, '-inf', `(${beforeMs}`);
    return this.#redis.xtrim(this.#keys.events, 'MINID', '=', `${beforeMs}-0`);
  }

  /** The entries after one and before another, oldest first, up to a bound. */
  async between(after: string, { before, count }: { before: string; count: number }): Promise<LogEntry[]> {
    const rows = await this.#redis.xrange(this.#keys.events, `(${after}`, `(${before}`, 'COUNT', count);
    return rows.map(([id, fields]) => parseEntry(id, fields));
  }
}
