import { Queue } from 'bullmq';
import type { RedisClient } from '../store/commands.ts';
import type { Keys } from '../store/keys.ts';
import { deliveryQueueName } from './names.ts';

/** A delivery's job says nothing: its id is the delivery's, and the fact says all. */
export type DeliveryJob = Record<string, never>;

/** One queue per receiver, so that a receiver that hangs or fails delays nobody else. */
export class DeliveryQueues {
  readonly #queues = new Map<string, Queue<DeliveryJob>>();
  readonly #redis: RedisClient;
  readonly #keys: Keys;

  constructor(redis: RedisClient, keys: Keys) {
    this.#redis = redis;
    this.#keys = keys;
  }

  #queue(receiver: string): Queue<DeliveryJob> {
    let queue = this.#queues.get(receiver);
    if (queue === undefined) {
      queue = new Queue<DeliveryJob>(deliveryQueueName(receiver), {
        connection: this.#redis,
        prefix: this.#keys.queues,
        defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
      });
      queue.on('error', () => undefined);
      this.#queues.set(receiver, queue);
    }
    return queue;
  }

  /**
   * Sets how many attempts per second a receiver gets over all processes; null takes the limit away. One job per
   * interval, so that no second sees two seconds' worth.
   */
  async setRateLimit(receiver: string, attemptsPerSecond: number | null): Promise<void> {
    const queue = this.#queue(receiver);
    if (attemptsPerSecond === null) await queue.removeGlobalRateLimit();
    else await queue.setGlobalRateLimit(1, Math.ceil(1_000 / attemptsPerSecond));
  }

  /** Queues deliveries, in order. The job id is the delivery's: one that is queued already stays as it is. */
  async add(receiver: string, deliveries: readonly { id: string; afterMs: number }[]): Promise<void> {
    await this.#queue(receiver).addBulk(
      deliveries.map(({ id, afterMs }) => ({
        name: 'deliver',
        data: {},
        opts: { jobId: id, delay: Math.max(0, Math.round(afterMs)) },
      })),
    );
  }

  /** Takes deliveries off the queue that need no job any more, but for those that a worker holds. */
  async drop(receiver: string, ids: readonly string[]): Promise<void> {
    const queue = this.#queue(receiver);
    await Promise.all(ids.map((id) => queue.remove(id)));
  }

  /** Which of some deliveries have no job. */
  async missing(receiver: string, ids: readonly string[]): Promise<string[]> {
    if (ids.length === 0) return [];
    const queue = this.#queue(receiver);
    const pipeline = this.#redis.pipeline();
    for (const id of ids) pipeline.exists(queue.toKey(id));
    const replies = (await pipeline.exec()) ?? [];
    return ids.filter((_, index) => replies[index]?.[1] === 0);
  }

  /** Takes all jobs of a receiver off its queue but those that a worker holds. Returns whether none is left. */
  async empty(receiver: string): Promise<boolean> {
    const queue = this.#queue(receiver);
    await queue.drain(true);
    return (await queue.getJobCountByTypes('wait', 'delayed', 'prioritized', 'active')) === 0;
  }

  /** The number of a receiver's jobs by state. */
  async depth(receiver: string): Promise<{ waiting: number; delayed: number; active: number }> {
    const counts = await this.#queue(receiver).getJobCounts('wait', 'delayed', 'active');
    return { waiting: counts.wait ?? 0, delayed: counts.delayed ?? 0, active: counts.active ?? 0 };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }
}
