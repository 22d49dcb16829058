import { z } from 'zod';
import { AGE_BINS } from '../domain/cadence/ages.ts';
import { LARGEST_WEIGHT } from '../domain/cadence/decay.ts';
import { LEARNED_HALF_LIFE_MS, type StoredTally } from '../domain/cadence/knowledge.ts';
import type { Increment } from '../domain/cadence/learning.ts';
import { ANY_ROUTE } from '../domain/cadence/route-name.ts';
import { LESSONS, type Lesson } from '../domain/cadence/watch-rules.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';

/** What records say of their chains cannot make more entries than this. */
const MOST_NAMES = 2_000;

const LESSON = z.enum(LESSONS);

/** What was learned of the timing of stages and of new transfers, shared by all processes. */
export class LearnedStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #keepMs: number;

  constructor(redis: RedisClient, keys: Keys, options: { retentionMs: number }) {
    this.#redis = redis;
    this.#keys = keys;
    this.#keepMs = options.retentionMs;
  }

  /** Adds what was seen of one stage on one route, or of new transfers. */
  async add(seen: { route: string; lesson: Lesson; increments: Iterable<Increment> }): Promise<void> {
    const name = `${seen.route}:${seen.lesson}`;
    const parts = [...seen.increments].flatMap(({ bin, ended, watchedSeconds }) =>
      [bin, ended, watchedSeconds].map(String),
    );
    await this.#redis.iwLearn(
      this.#keys.learned(name),
      this.#keys.learnedNames,
      name,
      String(LEARNED_HALF_LIFE_MS),
      String(this.#keepMs),
      String(MOST_NAMES),
      String(LARGEST_WEIGHT),
      ...parts,
    );
  }

  /** All that was learned. */
  async all(): Promise<StoredTally[]> {
    const names = await this.#redis.smembers(this.#keys.learnedNames);
    const stored: StoredTally[] = [];
    for (const name of names) {
      const fields = await this.#redis.hgetall(this.#keys.learned(name));
      const { route, lesson } = parseName(name);
      if (fields.landmark === undefined) {
        await this.#redis.srem(this.#keys.learnedNames, name);
        continue;
      }
      const sums = (letter: string): number[] =>
        AGE_BINS.map((_, bin) => Number(fields[`${letter}${bin}`] ?? 0));
      stored.push({
        route,
        lesson,
        landmarkMs: Number(fields.landmark),
        tally: { ended: sums('e'), watchedSeconds: sums('s') },
      });
    }
    return stored;
  }

  /** Forgets what was learned on a route, or on all of them. Returns how many lessons that were. */
  async reset(route: string | null): Promise<number> {
    const names = await this.#redis.smembers(this.#keys.learnedNames);
    const gone = names.filter((name) => route === null || parseName(name).route === route);
    for (const name of gone) {
      await this.#redis.multi().del(this.#keys.learned(name)).srem(this.#keys.learnedNames, name).exec();
    }
    return gone.length;
  }
}

/** `8453:10:pending`, `8453:*:pending`, `*:pending`, `*:arrivals`. */
function parseName(name: string): { route: string; lesson: Lesson } {
  const colon = name.lastIndexOf(':');
  return { route: name.slice(0, colon) || ANY_ROUTE, lesson: LESSON.parse(name.slice(colon + 1)) };
}
