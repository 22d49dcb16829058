import { Queue } from 'bullmq';
import { ENDPOINT_GROUPS, type EndpointGroup } from '../../domain/subjects/kinds.ts';
import type { RedisClient } from '../../store/commands.ts';
import type { Keys } from '../../store/keys.ts';
import type { ClaimedPoll } from '../../store/plan.ts';
import { type PollJob, pollJobId } from '../names.ts';

/** A job that ends leaves nothing behind: the plan says what is polled, a job only carries it to a worker. */
const LEAVES_NOTHING = { removeOnComplete: true, removeOnFail: true } as const;

/** Nobody reads what BullMQ tells of its jobs: of 10,000 lines, as many as it keeps otherwise, each is memory of Redis. */
const MOST_EVENTS = 100;

/** The poll queues, one per endpoint group of the upstream: they carry what was claimed to the workers of all processes. */
export class PollQueues {
  readonly #queues: Map<EndpointGroup, Queue<PollJob>>;
  readonly #redis: RedisClient;

  constructor(parts: { redis: RedisClient; keys: Keys }) {
    this.#redis = parts.redis;
    this.#queues = new Map(
      ENDPOINT_GROUPS.map((endpointGroup) => [
        endpointGroup,
        new Queue<PollJob>(endpointGroup, {
          connection: parts.redis,
          prefix: parts.keys.queues,
          defaultJobOptions: LEAVES_NOTHING,
          streams: { events: { maxLen: MOST_EVENTS } },
        }),
      ]),
    );
    for (const queue of this.#queues.values()) queue.on('error', () => undefined);
  }

  /** Hands claims to the workers. A claim whose job is lost goes back by its lease. */
  async add(endpointGroup: EndpointGroup, polls: readonly ClaimedPoll[]): Promise<void> {
    await this.#queue(endpointGroup).addBulk(
      polls.map(({ member, token }) => ({
        name: 'poll',
        data: { member, token },
        opts: { jobId: pollJobId(token) },
      })),
    );
  }

  /** Which of some claims have no job any more. */
  async missing(endpointGroup: EndpointGroup, tokens: readonly string[]): Promise<string[]> {
    if (tokens.length === 0) return [];
    const queue = this.#queue(endpointGroup);
    const pipeline = this.#redis.pipeline();
    for (const token of tokens) pipeline.exists(queue.toKey(pollJobId(token)));
    const replies = (await pipeline.exec()) ?? [];
    return tokens.filter((_, index) => replies[index]?.[1] === 0);
  }

  #queue(endpointGroup: EndpointGroup): Queue<PollJob> {
    const queue = this.#queues.get(endpointGroup);
    if (queue === undefined) throw new Error(`no queue for ${endpointGroup}`);
    return queue;
  }

  /** The number of jobs of an endpoint group by state. */
  async depth(endpointGroup: EndpointGroup): Promise<{ waiting: number; delayed: number; active: number }> {
    const counts = await this.#queue(endpointGroup).getJobCounts('wait', 'delayed', 'active');
    return { waiting: counts.wait ?? 0, delayed: counts.delayed ?? 0, active: counts.active ?? 0 };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }
}
