import { scripts } from './scripts.ts';
import { RedisStore } from './stored.ts';

/** The place of a delivery in the list of a receiver's open or dead deliveries. */
export type ListPlace = { score: string; id: string };

/** Most open deliveries of a receiver. Beyond it the receiver's cursor stops, and events wait in the log at no cost. */
export const MOST_OPEN = 1_000;

/** The undelivered part of each receiver: open deliveries and dead letters, with their number, age and retention. */
export class Backlog extends RedisStore {
  /** Returns the ids of dead letters that died at a time (Redis time, ms) or later, in the order of their death. */
  async dead(receiver: string, { sinceMs, count }: { sinceMs: number; count: number }): Promise<string[]> {
    return this.redis.zrange(this.keys.dead(receiver), sinceMs, '+inf', 'BYSCORE', 'LIMIT', 0, count);
  }

  /**
   * Returns a receiver's deliveries that were attempted and not accepted: open ones by the time of opening, or dead ones by
   * the time of death. It returns `count` of them after a place, among the next `most`. `checked`: number of list entries read;
   * `reached`: the last of them, null at the end of the list.
   */
  async undelivered(
    receiver: string,
    {
      list,
      after,
      count,
      most,
    }: { list: 'open' | 'dead'; after: ListPlace | null; count: number; most: number },
  ): Promise<{ listed: ListPlace[]; checked: number; reached: ListPlace | null }> {
    const keys = this.keys;
    const { more, checked, score, id, listed } = await scripts.listUndelivered(this.redis, {
      keys: { list: list === 'open' ? keys.pending(receiver) : keys.dead(receiver) },
      args: {
        deliveryPrefix: keys.delivery(receiver, ''),
        score: after?.score ?? '',
        id: after?.id ?? '',
        most: count,
        mostChecked: most,
      },
    });
    return { listed, checked: checked, reached: more === 'end' ? null : { score, id } };
  }

  async counts(receiver: string): Promise<{ pending: number; dead: number }> {
    const [pending, dead] = await Promise.all([
      this.redis.zcard(this.keys.pending(receiver)),
      this.redis.zcard(this.keys.dead(receiver)),
    ]);
    return { pending, dead };
  }

  /** Counts the open deliveries of a receiver by queue, with the one that was opened first and its time (Redis time, ms). */
  async depth(receiver: string): Promise<{
    waiting: number;
    delayed: number;
    active: number;
    oldestMs: number | null;
    oldestId: string | null;
  }> {
    const queue = this.keys.queue(receiver);
    const [waiting, later, batched, active, oldest] = await Promise.all([
      this.redis.zcard(`${queue}:due`),
      this.redis.zcard(`${queue}:later`),
      this.redis.zcard(`${queue}:batched`),
      this.redis.hlen(`${queue}:sending`),
      this.redis.zrange(this.keys.pending(receiver), '0', '0', 'WITHSCORES'),
    ]);
    const oldestMs = oldest[1] === undefined ? null : Number(oldest[1]);
    return { waiting, delayed: later + batched, active, oldestMs, oldestId: oldest[0] ?? null };
  }

  /** Returns the due time of the next attempt by the deliveries' own times (ms); null where none waits. */
  async nextAt(receiver: string): Promise<number | null> {
    const [, at] = await this.redis.zrange(`${this.keys.queue(receiver)}:later`, '0', '0', 'WITHSCORES');
    return at === undefined ? null : Number(at);
  }

  /** Removes dead letters, waiting deliveries and batches from before a time (ms); a bounded number. */
  async trim(receiver: string, beforeMs: number): Promise<void> {
    const keys = this.keys;
    const before = `(${beforeMs}`;
    const [batches] = await Promise.all([
      this.redis.zrangebyscore(keys.batches(receiver), '-inf', before, 'LIMIT', 0, MOST_OPEN),
      this.redis.zremrangebyscore(keys.waiting(receiver), '-inf', before),
      scripts.trimDead(this.redis, {
        keys: { dead: keys.dead(receiver) },
        args: { beforeMs, most: MOST_OPEN, deliveryPrefix: keys.delivery(receiver, '') },
      }),
    ]);
    if (batches.length === 0) return;
    await this.redis.del(...batches.map((batch) => keys.batch(receiver, batch)));
    await this.redis.zrem(keys.batches(receiver), ...batches);
  }
}
