import { z } from 'zod';
import type { PriceState } from '../domain/cadence/price.ts';
import { asSubjectId, type SubjectId } from '../domain/subject.ts';
import type { RedisClient } from './commands.ts';
import { redisTimeMs } from './connection.ts';
import type { Keys } from './keys.ts';
import type { Surface } from './surface.ts';

/** Requests on a surface: all that were served, those of them that no plan foresaw, and how often it said `429`. */
export type Asked = { served: number; unplanned: number; pushedBack: number };

/** A price with what steers it, and how much had been asked when it was steered. */
export type StoredPrice = { state: PriceState; asked: Asked };

/** What the next price is made from. `asked` counts from the beginning, `demand` and `planned` are those of now. */
export type Demanded = { nowMs: number; demand: number; planned: number; asked: Asked };

const ASKED = z.object({ served: z.number(), unplanned: z.number(), pushedBack: z.number() });

const PRICE = z.object({
  state: z.object({
    atMs: z.number(),
    price: z.number(),
    correction: z.number(),
    demand: z.number().nullable(),
    busy: z.number(),
    unplannedPerSecond: z.number(),
    behindRequests: z.number(),
    penalty: z.number(),
  }),
  asked: ASKED,
}) satisfies z.ZodType<StoredPrice>;

/** One process at a time steers a price, and not again within this time. */
const TURN_MS = 1_000;

/** So many overdue subjects are looked through for the one that waits for its turn. */
const OVERDUE_READ = 500;

/** The prices that all processes share, and what they are steered by. */
export class PriceStore {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** The price of a surface as it was steered last; null before the first time. */
  async read(surface: Surface): Promise<StoredPrice | null> {
    const stored = await this.#redis.get(this.#keys.price(surface));
    return stored === null ? null : PRICE.parse(JSON.parse(stored));
  }

  async write(surface: Surface, price: StoredPrice): Promise<void> {
    await this.#redis.set(this.#keys.price(surface), JSON.stringify(price));
  }

  /** Whether it is for this process to steer the price of a surface now. */
  async takeTurn(surface: Surface): Promise<boolean> {
    return (await this.#redis.set(this.#keys.turn(surface), '1', 'PX', TURN_MS, 'NX')) !== null;
  }

  /** Adds what this process has asked for. */
  async count(surface: Surface, asked: Asked): Promise<void> {
    const pipeline = this.#redis.pipeline();
    for (const [what, count] of Object.entries(asked)) {
      if (count > 0) pipeline.hincrby(this.#keys.asked(surface), what, count);
    }
    await pipeline.exec();
  }

  /** What all planned requests of a surface want together, and what all processes have asked for. */
  async demanded(surface: Surface): Promise<Demanded> {
    const keys = this.#keys;
    const [nowMs, demand, planned, asked] = await Promise.all([
      redisTimeMs(this.#redis),
      this.#redis.get(keys.totalDemand(surface)),
      this.#redis.hlen(keys.demand(surface)),
      this.#redis.hgetall(keys.asked(surface)),
    ]);
    const { served = '0', unplanned = '0', pushedBack = '0' } = asked;
    return {
      nowMs,
      demand: Math.max(0, Number(demand ?? 0)),
      planned,
      asked: { served: Number(served), unplanned: Number(unplanned), pushedBack: Number(pushedBack) },
    };
  }

  /** The subjects whose poll is due and has not begun, the one that waits longest first. */
  async overdue(nowMs: number): Promise<{ subject: SubjectId; dueMs: number }[]> {
    const { due, starts } = this.#keys;
    const list = await this.#redis.zrangebyscore(due, '-inf', nowMs, 'WITHSCORES', 'LIMIT', 0, OVERDUE_READ);
    const waiting: { subject: SubjectId; dueMs: number }[] = [];
    for (let index = 0; index + 1 < list.length; index += 2) {
      waiting.push({ subject: asSubjectId(list[index] ?? ''), dueMs: Number(list[index + 1]) });
    }
    if (waiting.length === 0) return [];
    const begun = await this.#redis.hmget(starts, ...waiting.map(({ subject }) => subject));
    return waiting.filter((_, index) => (begun[index] ?? null) === null);
  }

  /** Sums the demand of a surface anew. */
  async recount(surface: Surface): Promise<void> {
    const keys = this.#keys;
    await this.#redis.iwRecountDemand(keys.demand(surface), keys.totalDemand(surface), keys.due);
  }
}
