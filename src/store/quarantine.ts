import { z } from 'zod';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { type LogEntry, parseEntry } from './log-entry.ts';

/** The number of entries that are stored; where more come, the oldest go. They stay in the log for its retention. */
const MOST_KEPT = 1_000;

const STORED = z.tuple([z.string()], z.string());

/** An entry as it stands in the log. */
export type RawEntry = { id: string; fields: readonly string[] };

/** The entries of the log that could not be read: kept as they are, until a program that can read them returns them. */
export class Quarantine {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** Sets an entry aside. False when it was before. */
  async add(entry: RawEntry): Promise<boolean> {
    const added = await this.#redis.iwQuarantine(
      this.#keys.quarantine,
      stored(entry),
      entry.id.split('-')[0] ?? '0',
      String(MOST_KEPT),
    );
    return added === 1;
  }

  /** What was quarantined as this program reads it, the oldest first. */
  async list(): Promise<(LogEntry & RawEntry)[]> {
    const members = await this.#redis.zrange(this.#keys.quarantine, '0', '-1');
    return members.map((member) => {
      const [id, ...fields] = STORED.parse(JSON.parse(member));
      return { ...parseEntry(id, fields), fields };
    });
  }

  /** Puts an entry back at the end of the log, from where it is delivered. False when another was faster. */
  async putBack(entry: RawEntry): Promise<boolean> {
    const { quarantine, events } = this.#keys;
    return (await this.#redis.iwReturnEntry(quarantine, events, stored(entry), ...entry.fields)) !== '';
  }
}

function stored({ id, fields }: RawEntry): string {
  return JSON.stringify([id, ...fields]);
}
