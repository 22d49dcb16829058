import { z } from 'zod';
import { LISTED_REASONS, type ListedReason } from '../domain/events/event-types.ts';
import { chunks } from './commands.ts';
import { type LogEntry, parseEntry } from './log-entry.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

/** Most events that are listed; beyond it the oldest are removed. */
const MOST_LISTED = 10_000;

const CHUNK = 500;

const MEMBER = /^0*(\d+)-0*(\d+)\|(no-receiver|not-in-config)$/;

/** An event that no receiver gets: its entry in the log, and the reason. */
export type UnmatchedEntry = { entry: string; reason: ListedReason };

/** The events that no receiver gets, and the place in the log up to which they are counted. Trimmed like the log. */
export class UnmatchedStore extends RedisStore {
  /** Returns `0-0` before the first. */
  async place(): Promise<string> {
    const place = await this.redis.get(this.keys.unmatchedPlace);
    return place !== null && /^\d+-\d+$/.test(place) ? place : '0-0';
  }

  /**
   * Starts the count after an entry, where it has not begun. Events of a version without this count were matched with the
   * receivers of their time, and the current definitions would report some of them wrongly.
   */
  async begin(entry: string): Promise<void> {
    await this.redis.set(this.keys.unmatchedPlace, entry, 'NX');
  }

  /** Moves the place, under the relay's fencing token, and lists events. False when another process did. */
  async advance(
    token: string,
    { from, to, listed }: { from: string; to: string; listed: readonly UnmatchedEntry[] },
  ): Promise<boolean> {
    const members = listed.map(({ entry, reason }) => `${padded(entry)}|${reason}`);
    const args = { fence: token, from, to, most: MOST_LISTED, members };
    return scripts.advanceUnmatched(this.redis, { keys: this.keys, args });
  }

  /** Lists events that were not counted in their turn, since they waited. */
  async add(listed: readonly UnmatchedEntry[]): Promise<void> {
    for (const chunk of chunks(listed, CHUNK)) {
      await this.redis.zadd(
        this.keys.unmatched,
        ...chunk.flatMap(({ entry, reason }) => ['0', `${padded(entry)}|${reason}`]),
      );
    }
    await this.redis.zremrangebyrank(this.keys.unmatched, 0, -MOST_LISTED - 1);
  }

  /** Removes events that a receiver gets after all. */
  async remove(entries: readonly string[]): Promise<void> {
    for (const chunk of chunks(entries, CHUNK)) {
      const members = chunk.flatMap((entry) => LISTED_REASONS.map((reason) => `${padded(entry)}|${reason}`));
      await this.redis.zrem(this.keys.unmatched, ...members);
    }
  }

  /** Returns the newest of them, before an entry or from the newest on. */
  async list({ before, count }: { before: string | null; count: number }): Promise<UnmatchedEntry[]> {
    const from = before === null ? '+' : `(${padded(before)}|`;
    const members = await this.redis.zrevrangebylex(this.keys.unmatched, from, '-', 'LIMIT', 0, count);
    return members.flatMap((member) => {
      const [, ms, place, reason] = MEMBER.exec(member) ?? [];
      if (reason !== 'no-receiver' && reason !== 'not-in-config') return [];
      return [{ entry: `${ms}-${place}`, reason }];
    });
  }
}

/** Returns the lower bound that excludes members of entries before a time (Redis time, ms). */
export function unmatchedBefore(ms: number): string {
  return `(${padded(`${ms}-0`)}`;
}

function padded(entry: string): string {
  const [ms = '', place = ''] = entry.split('-');
  return `${ms.padStart(15, '0')}-${place.padStart(20, '0')}`;
}

/** Most entries that are stored; beyond it the oldest are removed. They stay in the log for its retention. */
const MOST_STORED = 1_000;

const STORED = z.tuple([z.string()], z.string());

/** The raw fields of an entry of the log. */
export type RawEntry = { id: string; fields: readonly string[] };

/** The entries of the log that could not be read: stored unchanged, until a program that can read them returns them. */
export class Quarantine extends RedisStore {
  /** False when it was quarantined before. */
  async add(entry: RawEntry): Promise<boolean> {
    const args = { entry: stored(entry), atMs: entry.id.split('-')[0] ?? '0', most: MOST_STORED };
    return scripts.quarantine(this.redis, { keys: this.keys, args });
  }

  /** Lists the quarantined entries as this program reads them, the oldest first. */
  async list(): Promise<(LogEntry & RawEntry)[]> {
    const members = await this.redis.zrange(this.keys.quarantine, '0', '-1');
    return members.map((member) => {
      const [id, ...fields] = STORED.parse(JSON.parse(member));
      return { ...parseEntry(id, fields), fields };
    });
  }

  /** Puts an entry back at the end of the log, from where it is delivered. False when another process was faster. */
  async returnToLog(entry: RawEntry): Promise<boolean> {
    const args = { entry: stored(entry), fields: entry.fields };
    return (await scripts.returnEntry(this.redis, { keys: this.keys, args })) !== '';
  }
}

function stored({ id, fields }: RawEntry): string[] {
  return [id, ...fields];
}
