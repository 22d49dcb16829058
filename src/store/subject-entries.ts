import type { SubjectId } from '../domain/subjects/subject.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { compareEntries, placeAfter } from './log-entry.ts';
import { scripts } from './scripts.ts';

/** A range of entries: the newest `count` of those before one (null: the end of the log), down to `from` (null: the oldest). */
export type EntryRange = { before: string | null; from: string | null; count: number };

/**
 * The places of each subject's events in the event log. A commit adds to it in the step that writes the event. Members are
 * entries with all their digits (16 and 20) and score 0, so that Redis orders them as the log does. Where the only event was for
 * all claims, its snapshot has its place (`eventEntry`), and there is no list.
 */
export class SubjectEntries {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** Returns the entries of several subjects' events, the newest first. One read per subject, however many they have. */
  async list(subjects: readonly SubjectId[], { before, from, count }: EntryRange): Promise<string[]> {
    const trimmed = await this.#redis.get(this.#keys.trimmed);
    const floors = [from, trimmed === null ? null : placeAfter(trimmed)].flatMap((entry) => entry ?? []);
    const oldest = floors.sort(compareEntries).at(-1);
    const max = before === null ? '+' : `(${memberOf(before)}`;
    const min = oldest === undefined ? '-' : `[${memberOf(oldest)}`;
    const found = await Promise.all(
      subjects.map((subject) =>
        scripts.listEntries(this.#redis, {
          keys: { subjectEntries: this.#keys.subjectEntries(subject), subject: this.#keys.subject(subject) },
          args: { max, min, count },
        }),
      ),
    );
    // Members of equal length are in the order of the log.
    return found.flat().sort().reverse().slice(0, count).map(entryOf);
  }

  /** True when the last event of a subject that was made for all its claims has left the log. */
  async isLastGone(subject: SubjectId): Promise<boolean> {
    const stored = await this.#redis.hget(this.#keys.subject(subject), 'eventEntry');
    const entry = /^(\d+-\d+)\|/.exec(stored ?? '')?.[1];
    return entry !== undefined && (await this.#redis.xrange(this.#keys.events, entry, entry)).length === 0;
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
