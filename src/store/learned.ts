import { z } from 'zod';
import { LARGEST_WEIGHT } from '../domain/cadence/arrivals.ts';
import { AGE_BINS } from '../domain/cadence/hazard.ts';
import {
  type Knowledge,
  knowledgeOf,
  LEARNED_HALF_LIFE_MS,
  type LearningRules,
  type StoredTally,
} from '../domain/cadence/knowledge.ts';
import type { Increment } from '../domain/cadence/learning.ts';
import { STATISTICS, type Statistic } from '../domain/cadence/watch-rules.ts';
import { ANY_ROUTE } from '../domain/transfers/transfer.ts';
import { redisTimeMs } from './commands.ts';
import { readStamp } from './confirmed-time.ts';
import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

/** Most names: the chains in records cannot create more. */
const MOST_NAMES = 2_000;

const TRIMMED_AT_ONCE = 20;

/** Field with the time of the last estimates, ms: no route has this name. */
const ESTIMATED_AT = 'at';

const STATISTIC = z.enum(STATISTICS);

/** The learned timing of stages and of new transfers, shared by all processes. */
export class LearnedStore extends RedisStore {
  #cursor = '0';

  async add(seen: { route: string; statistic: Statistic; increments: Iterable<Increment> }): Promise<void> {
    const name = `${seen.route}:${seen.statistic}`;
    const { clock, learnedNames } = this.keys;
    const limits = { halfLifeMs: LEARNED_HALF_LIFE_MS, mostNames: MOST_NAMES, largestWeight: LARGEST_WEIGHT };
    await scripts.learn(this.redis, {
      keys: { learned: this.keys.learned(name), learnedNames },
      args: { name, ...limits, clock, increments: [...seen.increments] },
    });
  }

  /** Stores how long a delivery takes by quotes: route -> seconds. Only routes and quotes of a config are stored. */
  async estimate(estimates: ReadonlyMap<string, number>): Promise<void> {
    if (estimates.size === 0) return;
    const atMs = await readStamp(this.redis, this.keys);
    await this.redis.hset(this.keys.estimates, {
      ...Object.fromEntries(estimates),
      [ESTIMATED_AT]: String(atMs),
    });
  }

  async estimates(): Promise<Map<string, number>> {
    const stored = Object.entries(await this.redis.hgetall(this.keys.estimates));
    return new Map(
      stored.flatMap(([route, text]) => (/^[1-9]\d{0,8}$/.test(text) ? [[route, Number(text)]] : [])),
    );
  }

  /** Removes statistics without an addition since a time (ms), of a bounded number of names. */
  async trim(beforeMs: number): Promise<void> {
    const { learnedNames, estimates } = this.keys;
    const [cursor, names] = await this.redis.sscan(learnedNames, this.#cursor, 'COUNT', TRIMMED_AT_ONCE);
    this.#cursor = cursor;
    for (const name of names) {
      const atMs = await this.redis.hget(this.keys.learned(name), 'at');
      if (atMs !== null && Number(atMs) < beforeMs) await this.#remove(name);
    }
    const estimatedAt = await this.redis.hget(estimates, ESTIMATED_AT);
    if (estimatedAt !== null && Number(estimatedAt) < beforeMs) await this.redis.del(estimates);
  }

  /** Computes the current knowledge from all statistics, and from the expectations before them. */
  async knowledge({ rules, arrivals }: LearningRules): Promise<Knowledge> {
    const [stored, estimates, nowMs] = await Promise.all([
      this.all(),
      this.estimates(),
      redisTimeMs(this.redis),
    ]);
    return knowledgeOf(stored, { rules, arrivals, estimates, nowMs });
  }

  async all(): Promise<StoredTally[]> {
    const names = await this.redis.smembers(this.keys.learnedNames);
    const stored: StoredTally[] = [];
    for (const name of names) {
      const fields = await this.redis.hgetall(this.keys.learned(name));
      const parsed = parseName(name);
      if (fields.landmark === undefined) {
        await this.redis.srem(this.keys.learnedNames, name);
        continue;
      }
      const sums = (letter: string): number[] =>
        AGE_BINS.map((_, bin) => Number(fields[`${letter}${bin}`] ?? 0));
      const tally = { ended: sums('e'), watchedSeconds: sums('s') };
      const landmarkMs = Number(fields.landmark);
      if (parsed === null || ![landmarkMs, ...tally.ended, ...tally.watchedSeconds].every(isCount)) {
        this.onForeign({ what: 'learned', where: this.keys.learned(name), reason: 'expected sums by age' });
        await this.#remove(name);
        continue;
      }
      stored.push({ ...parsed, landmarkMs, tally });
    }
    return stored;
  }

  async #remove(name: string): Promise<void> {
    await this.redis.multi().del(this.keys.learned(name)).srem(this.keys.learnedNames, name).exec();
  }

  /** Null for all routes. Returns the number of removed statistics. */
  async reset(route: string | null): Promise<number> {
    const names = await this.redis.smembers(this.keys.learnedNames);
    const gone = names.filter((name) => route === null || parseName(name)?.route === route);
    for (const name of gone) await this.#remove(name);
    return gone.length;
  }
}

/** Parses `8453:10:pending`, `8453:*:pending`, `*:pending`, `*:arrivals`. */
function parseName(name: string): { route: string; statistic: Statistic } | null {
  const colon = name.lastIndexOf(':');
  const statistic = STATISTIC.safeParse(name.slice(colon + 1));
  return statistic.success ? { route: name.slice(0, colon) || ANY_ROUTE, statistic: statistic.data } : null;
}

function isCount(value: number): boolean {
  return Number.isFinite(value) && value >= 0;
}
