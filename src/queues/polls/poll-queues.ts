import { Queue } from 'bullmq';
import { z } from 'zod';
import { ENDPOINT_GROUPS, type EndpointGroup } from '../../domain/subjects/kinds.ts';
import type { RedisClient } from '../../store/commands.ts';
import type { Keys } from '../../store/keys.ts';
import type { ClaimedPoll } from '../../store/plan.ts';

/** A claim on its way to a worker: a member of the plan, and its claim token. */
const SENT_POLL = z.object({ member: z.string(), token: z.string() });

export type SentPoll = z.infer<typeof SENT_POLL>;

/** A job carries claims that were made together: about 40 commands of Redis move it to a worker and end it. */
export const POLL_JOB = z.object({ polls: z.array(SENT_POLL) });

export type PollJob = z.infer<typeof POLL_JOB>;

/** Most claims of one job: further ones save little, and other processes also take some. */
export const MOST_IN_JOB = 10;

/** The job id, from the token of its first claim: no `:` and never an integer, which BullMQ reserves. */
function pollJobId(firstToken: string): string {
  return `claim-${firstToken}`;
}

/**
 * Options of all workers. Other processes claim the jobs of a dead one when their locks have expired and the next check
 * finds them; that is no failure, however often it happens. A lock that expires under a running job costs a second request
 * or attempt, never an event. An ended job is removed as a whole, because its id names the next one.
 */
export const TAKE_OVER = {
  lockDuration: 4_000,
  stalledInterval: 2_000,
  maxStalledCount: 1_000_000,
  // A worker whose connection was cut goes on as soon as Redis is back, and not after 15 s.
  runRetryDelay: 1_000,
  removeOnComplete: { count: 0 },
  removeOnFail: { count: 0 },
} as const;

/** An ended job leaves nothing behind: the plan has the polls, a job only carries one to a worker. */
const LEAVES_NOTHING = { removeOnComplete: true, removeOnFail: true } as const;

/** Length of BullMQ's event stream, which nothing reads: its default of 10,000 lines would cost Redis memory. */
const MOST_EVENTS = 100;

/** The poll queues, one per endpoint group of the upstream. They carry claims to the workers of all processes. */
export class PollQueues {
  readonly #queues: Map<EndpointGroup, Queue<PollJob>>;
  readonly #redis: RedisClient;

  constructor(deps: { redis: RedisClient; keys: Keys }) {
    this.#redis = deps.redis;
    this.#queues = new Map(
      ENDPOINT_GROUPS.map((endpointGroup) => [
        endpointGroup,
        new Queue<PollJob>(endpointGroup, {
          connection: deps.redis,
          prefix: deps.keys.queues,
          defaultJobOptions: LEAVES_NOTHING,
          streams: { events: { maxLen: MOST_EVENTS } },
        }),
      ]),
    );
    for (const queue of this.#queues.values()) queue.on('error', () => undefined);
  }

  /** Passes claims to the workers, each list in one job. A claim whose job is lost returns to the plan when its lease expires. */
  async add(endpointGroup: EndpointGroup, jobs: readonly (readonly ClaimedPoll[])[]): Promise<void> {
    await this.#queue(endpointGroup).addBulk(
      jobs.map((claimed) => ({
        name: 'polls',
        data: { polls: claimed.map(({ member, token }) => ({ member, token })) },
        opts: { jobId: pollJobId(claimed[0]?.token ?? '') },
      })),
    );
  }

  /** Returns those of some jobs that are lost or have ended. Each is named by the token of its first claim. */
  async missing(endpointGroup: EndpointGroup, jobs: readonly string[]): Promise<string[]> {
    if (jobs.length === 0) return [];
    const queue = this.#queue(endpointGroup);
    const pipeline = this.#redis.pipeline();
    for (const firstToken of jobs) pipeline.exists(queue.toKey(pollJobId(firstToken)));
    const replies = (await pipeline.exec()) ?? [];
    return jobs.filter((_, index) => replies[index]?.[1] === 0);
  }

  #queue(endpointGroup: EndpointGroup): Queue<PollJob> {
    const queue = this.#queues.get(endpointGroup);
    if (queue === undefined) throw new Error(`no queue for ${endpointGroup}`);
    return queue;
  }

  async depth(endpointGroup: EndpointGroup): Promise<{ waiting: number; delayed: number; active: number }> {
    const counts = await this.#queue(endpointGroup).getJobCounts('wait', 'delayed', 'active');
    return { waiting: counts.wait ?? 0, delayed: counts.delayed ?? 0, active: counts.active ?? 0 };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }
}
