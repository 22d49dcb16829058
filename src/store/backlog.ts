import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';
import { scripts } from './scripts.ts';

/** A delivery's place in the list of a receiver's open or dead ones. */
export type ListPlace = { score: string; id: string };

/**
 * The number of deliveries of a receiver may be open: beyond it, its cursor stands still, and what it is owed waits in the
 * log, where it costs nothing.
 */
export const MOST_OPEN = 1_000;

/** What receivers have not got: their open deliveries and dead letters, how many, since when, and for how long they are stored. */
export class Backlog {
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  /** The ids of dead letters that died at a moment (Redis time, ms) or later, the first to die first. */
  async dead(receiver: string, { sinceMs, count }: { sinceMs: number; count: number }): Promise<string[]> {
    return this.#redis.zrange(this.#keys.dead(receiver), sinceMs, '+inf', 'BYSCORE', 'LIMIT', 0, count);
  }

  /**
   * A receiver's deliveries that were attempted and not accepted: open ones by when they were opened, or dead ones by when
   * they died, from behind a place on: `count` of them, among the next `most`. `looked` is how many of the list were read,
   * `reached` up to where; null at the end of the list.
   */
  async undelivered(
    receiver: string,
    {
      list,
      after,
      count,
      most,
    }: { list: 'open' | 'dead'; after: ListPlace | null; count: number; most: number },
  ): Promise<{ listed: ListPlace[]; looked: number; reached: ListPlace | null }> {
    const keys = this.#keys;
    const { more, checked, score, id, listed } = await scripts.listUndelivered(this.#redis, {
      keys: { list: list === 'open' ? keys.pending(receiver) : keys.dead(receiver) },
      args: {
        deliveryPrefix: keys.delivery(receiver, ''),
        score: after?.score ?? '',
        id: after?.id ?? '',
        most: count,
        mostChecked: most,
      },
    });
    return { listed, looked: checked, reached: more === 'end' ? null : { score, id } };
  }

  async counts(receiver: string): Promise<{ pending: number; dead: number }> {
    const [pending, dead] = await Promise.all([
      this.#redis.zcard(this.#keys.pending(receiver)),
      this.#redis.zcard(this.#keys.dead(receiver)),
    ]);
    return { pending, dead };
  }

  /** The place where the open deliveries of a receiver are, which of them was opened first, and when (Redis time, ms). */
  async depth(receiver: string): Promise<{
    waiting: number;
    delayed: number;
    active: number;
    oldestMs: number | null;
    oldestId: string | null;
  }> {
    const queue = this.#keys.queue(receiver);
    const [waiting, later, batched, active, oldest] = await Promise.all([
      this.#redis.zcard(`${queue}:due`),
      this.#redis.zcard(`${queue}:later`),
      this.#redis.zcard(`${queue}:batched`),
      this.#redis.hlen(`${queue}:sending`),
      this.#redis.zrange(this.#keys.pending(receiver), '0', '0', 'WITHSCORES'),
    ]);
    const oldestMs = oldest[1] === undefined ? null : Number(oldest[1]);
    return { waiting, delayed: later + batched, active, oldestMs, oldestId: oldest[0] ?? null };
  }

  /** When the next attempt is due by the deliveries' own times (ms); null where none waits for one. */
  async nextAt(receiver: string): Promise<number | null> {
    const [, at] = await this.#redis.zrange(`${this.#keys.queue(receiver)}:later`, '0', '0', 'WITHSCORES');
    return at === undefined ? null : Number(at);
  }

  /** Removes dead letters from before a moment (ms), and what waits to be sent together since then; a bounded number. */
  async trim(receiver: string, beforeMs: number): Promise<void> {
    const keys = this.#keys;
    await scripts.trimDead(this.#redis, {
      keys: { dead: keys.dead(receiver) },
      args: { beforeMs, most: MOST_OPEN, deliveryPrefix: keys.delivery(receiver, '') },
    });
    await this.#redis.zremrangebyscore(keys.waiting(receiver), '-inf', `(${beforeMs}`);
    const batches = await this.#redis.zrangebyscore(
      keys.batches(receiver),
      '-inf',
      `(${beforeMs}`,
      'LIMIT',
      0,
      MOST_OPEN,
    );
    if (batches.length === 0) return;
    await this.#redis.del(...batches.map((batch) => keys.batch(receiver, batch)));
    await this.#redis.zrem(keys.batches(receiver), ...batches);
  }
}
