import { z } from 'zod';
import type { Event } from '../domain/event.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';

/**
 * One entry of the log. `event`: a fact with the claims (by root) that are entitled to it. `audience`: claims that came
 * later and are entitled to an event that stands at `entry`. `operator`: an event about the daemon's own surroundings.
 */
export type LogEntry =
  | { kind: 'event'; id: string; event: Event; roots: string[] }
  | { kind: 'audience'; id: string; entry: string; eventId: string; roots: string[] }
  | { kind: 'operator'; id: string; event: Event };

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

  /** The event that stands at an entry; null when it was trimmed. */
  async at(entry: string): Promise<Event | null> {
    const [row] = await this.#redis.xrange(this.#keys.events, entry, entry);
    if (row === undefined) return null;
    const parsed = parseEntry(row[0], row[1]);
    return parsed.kind === 'audience' ? null : parsed.event;
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

  /** Removes entries older than a moment (Redis time, ms). Returns how many went. */
  async trim(beforeMs: number): Promise<number> {
    return this.#redis.xtrim(this.#keys.events, 'MINID', '=', `${beforeMs}-0`);
  }

  /** The entries after one and before another, oldest first, up to a bound. */
  async between(after: string, { before, count }: { before: string; count: number }): Promise<LogEntry[]> {
    const rows = await this.#redis.xrange(this.#keys.events, `(${after}`, `(${before}`, 'COUNT', count);
    return rows.map(([id, fields]) => parseEntry(id, fields));
  }
}

const EVENT = z.object({
  id: z.string(),
  type: z.string(),
  timestamp: z.string(),
  data: z.object({
    subject: z.object({ kind: z.string(), id: z.string() }),
    sequence: z.number(),
    status: z.string().nullable(),
    previousStatus: z.string().nullable(),
    changes: z.array(z.string()),
    record: z.record(z.string(), z.json()),
    skipped: z.boolean().exactOptional(),
    regression: z.boolean().exactOptional(),
    upstreamUpdatedAt: z.number().nullable(),
    detectionDelaySeconds: z.number().nullable(),
  }),
});

const ROOTS = z.array(z.string());

const ENTRY = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('event'), event: z.string(), roots: z.string() }),
  z.object({ kind: z.literal('audience'), event: z.string(), entry: z.string(), roots: z.string() }),
  z.object({ kind: z.literal('operator'), event: z.string() }),
]);

function parseEntry(id: string, list: string[]): LogEntry {
  const fields: { [field: string]: string } = {};
  for (let index = 0; index + 1 < list.length; index += 2) fields[list[index] ?? ''] = list[index + 1] ?? '';
  const entry = ENTRY.parse(fields);
  switch (entry.kind) {
    case 'event':
      return {
        kind: 'event',
        id,
        event: parseEvent(entry.event),
        roots: ROOTS.parse(JSON.parse(entry.roots)),
      };
    case 'audience':
      return {
        kind: 'audience',
        id,
        entry: entry.entry,
        eventId: entry.event,
        roots: ROOTS.parse(JSON.parse(entry.roots)),
      };
    case 'operator':
      return { kind: 'operator', id, event: parseEvent(entry.event) };
  }
}

function parseEvent(text: string): Event {
  return EVENT.parse(JSON.parse(text));
}
