import { Queue } from 'bullmq';
import type { RedisClient } from '../store/commands.ts';
import type { Keys } from '../store/keys.ts';
import { deliveryQueueName } from './names.ts';

type DeliveryJob = { eventId: string };

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

  /** Queues deliveries. The job id is the event's: one that is queued already stays as it is. */
  async add(receiver: string, deliveries: readonly { eventId: string; afterMs: number }[]): Promise<void> {
    await this.#queue(receiver).addBulk(
      deliveries.map(({ eventId, afterMs }) => ({
        name: 'deliver',
        data: { eventId },
        opts: { jobId: eventId, delay: Math.max(0, Math.round(afterMs)) },
      })),
    );
  }

  /** Which of some deliveries have no job. */
  async missing(receiver: string, eventIds: readonly string[]): Promise<string[]> {
    if (eventIds.length === 0) return [];
    const queue = this.#queue(receiver);
    const pipeline = this.#redis.pipeline();
    for (const eventId of eventIds) pipeline.exists(queue.toKey(eventId));
    const replies = (await pipeline.exec()) ?? [];
    return eventIds.filter((_, index) => replies[index]?.[1] === 0);
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
