import { z } from 'zod';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { type LogEntry, parseEntry } from './log-entry.ts';
import { scripts } from './scripts.ts';

/** Most entries that are stored; beyond it the oldest are removed. They stay in the log for its retention. */
const MOST_KEPT = 1_000;

const STORED = z.tuple([z.string()], z.string());

/** The raw fields of an entry of the log. */
export type RawEntry = { id: string; fields: readonly string[] };

/** The entries of the log that could not be read: stored unchanged, until a program that can read them returns them. */
export class Quarantine {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** False when it was quarantined before. */
  async add(entry: RawEntry): Promise<boolean> {
    const args = { entry: stored(entry), atMs: entry.id.split('-')[0] ?? '0', most: MOST_KEPT };
    return scripts.quarantine(this.#redis, { keys: this.#keys, args });
  }

  /** Lists the quarantined entries as this program reads them, the oldest first. */
  async list(): Promise<(LogEntry & RawEntry)[]> {
    const members = await this.#redis.zrange(this.#keys.quarantine, '0', '-1');
    return members.map((member) => {
      const [id, ...fields] = STORED.parse(JSON.parse(member));
      return { ...parseEntry(id, fields), fields };
    });
  }

  /** Puts an entry back at the end of the log, from where it is delivered. False when another process was faster. */
  async returnToLog(entry: RawEntry): Promise<boolean> {
    const args = { entry: stored(entry), fields: entry.fields };
    return (await scripts.returnEntry(this.#redis, { keys: this.#keys, args })) !== '';
  }
}

function stored({ id, fields }: RawEntry): string[] {
  return [id, ...fields];
}
