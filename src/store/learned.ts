import { z } from 'zod';
import { AGE_BINS } from '../domain/cadence/ages.ts';
import { LARGEST_WEIGHT } from '../domain/cadence/decay.ts';
import { LEARNED_HALF_LIFE_MS, type StoredTally } from '../domain/cadence/knowledge.ts';
import type { Increment } from '../domain/cadence/learning.ts';
import { ANY_ROUTE } from '../domain/cadence/route-name.ts';
import { WATCHES, type Watch } from '../domain/cadence/watch-rules.ts';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';

/** What records say of their chains cannot make more entries than this. */
const MOST_NAMES = 2_000;

const WATCH = z.enum(WATCHES);

/** What was learned of the timing of stages, shared by all processes. */
export class LearnedStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #keepMs: number;

  constructor(redis: RedisClient, keys: Keys, options: { retentionMs: number }) {
    this.#redis = redis;
    this.#keys = keys;
    this.#keepMs = options.retentionMs;
  }

  /** Adds what was seen of one stage on one route. */
  async add(seen: { route: string; watch: Watch; increments: Iterable<Increment> }): Promise<void> {
    const name = `${seen.route}:${seen.watch}`;
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
      const { route, watch } = parseName(name);
      if (fields.landmark === undefined) {
        await this.#redis.srem(this.#keys.learnedNames, name);
        continue;
      }
      const sums = (letter: string): number[] =>
        AGE_BINS.map((_, bin) => Number(fields[`${letter}${bin}`] ?? 0));
      stored.push({
        route,
        watch,
        landmarkMs: Number(fields.landmark),
        tally: { ended: sums('e'), watchedSeconds: sums('s') },
      });
    }
    return stored;
  }

  /** Forgets what was learned on a route, or on all of them. Returns how many stages that were. */
  async reset(route: string | null): Promise<number> {
    const names = await this.#redis.smembers(this.#keys.learnedNames);
    const gone = names.filter((name) => route === null || parseName(name).route === route);
    for (const name of gone) {
      await this.#redis.multi().del(this.#keys.learned(name)).srem(this.#keys.learnedNames, name).exec();
    }
    return gone.length;
  }
}

/** `8453:10:pending`, `8453:*:pending`, `*:pending`. */
function parseName(name: string): { route: string; watch: Watch } {
  const colon = name.lastIndexOf(':');
  return { route: name.slice(0, colon) || ANY_ROUTE, watch: WATCH.parse(name.slice(colon + 1)) };
}
