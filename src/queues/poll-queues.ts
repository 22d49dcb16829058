import { Queue } from 'bullmq';
import type { SubjectId } from '../domain/subject.ts';
import type { RedisClient } from '../store/commands.ts';
import { redisTimeMs } from '../store/connection.ts';
import type { HealthStore } from '../store/health.ts';
import type { Keys } from '../store/keys.ts';
import type { SubjectStore } from '../store/subjects.ts';
import { SURFACES, type Surface, surfaceOf } from '../store/surface.ts';
import { type PollJob, pageJobId, pollJobId } from './names.ts';

/** The place of a sweep's pages in the queue: behind everything else. */
const PAGE_PRIORITY = 10;

/** A job that ends leaves nothing behind: its id has to be free for the next one. */
const LEAVES_NOTHING = { removeOnComplete: true, removeOnFail: true } as const;

/** A stale answer on a page asks for an exact look-up, which comes within the first and not again within the second. */
const LOOK_WITHIN_MS = 600_000;
const LOOK_EVERY_MS = 15_000;

/** The poll queues, one per surface of the upstream; each has the surface's budget as its global rate limit. */
export class PollQueues {
  readonly #queues: Map<Surface, Queue<PollJob>>;
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #subjects: SubjectStore;
  readonly #health: HealthStore;

  constructor(parts: { redis: RedisClient; keys: Keys; subjects: SubjectStore; health: HealthStore }) {
    this.#redis = parts.redis;
    this.#keys = parts.keys;
    this.#subjects = parts.subjects;
    this.#health = parts.health;
    this.#queues = new Map(
      SURFACES.map((surface) => [
        surface,
        new Queue<PollJob>(surface, {
          connection: parts.redis,
          prefix: parts.keys.queues,
          defaultJobOptions: LEAVES_NOTHING,
        }),
      ]),
    );
    for (const queue of this.#queues.values()) queue.on('error', () => undefined);
  }

  /**
   * Sets the budget of a surface, in requests per second over all processes. One job per interval, and not many jobs
   * per second: the latter would let two seconds' worth through around the turn of a second.
   */
  async setBudget(surface: Surface, requestsPerSecond: number): Promise<void> {
    await this.queue(surface).setGlobalRateLimit(1, Math.ceil(1_000 / requestsPerSecond));
  }

  queue(surface: Surface): Queue<PollJob> {
    const queue = this.#queues.get(surface);
    if (queue === undefined) throw new Error(`no queue for ${surface}`);
    return queue;
  }

  /** Schedules a subject's poll, unless it is scheduled. */
  async add(subject: SubjectId, afterMs = 0): Promise<void> {
    await this.queue(surfaceOf(subject)).add(
      'subject',
      { do: 'subject', subject, careful: 0 },
      { jobId: pollJobId(subject), delay: Math.max(0, Math.round(afterMs)) },
    );
  }

  /** Removes whatever is left of a subject's poll and has it polled now. */
  async replace(subject: SubjectId): Promise<void> {
    await this.#redis.zadd(this.#keys.due, 'XX', await redisTimeMs(this.#redis), subject);
    await this.queue(surfaceOf(subject)).remove(pollJobId(subject));
    await this.add(subject);
  }

  /** Moves a poll that waits for its time to a later one, so many ms from now. One that has begun stays as it is. */
  async postpone(subject: SubjectId, afterMs: number): Promise<void> {
    const job = await this.queue(surfaceOf(subject)).getJob(pollJobId(subject));
    if (job === undefined) return;
    const movedMs = await this.#subjects.movePoll(subject, afterMs);
    if (movedMs === null) return;
    await job.changeDelay(movedMs).catch((error: unknown) => {
      // It has become due meanwhile, or has even ended.
      if (!/not in the delayed state|Missing key/.test(String(error))) throw error;
    });
  }

  /**
   * Takes a subject whose tracking has ended, as its snapshot of a commit says, off the schedule without waiting for its
   * last poll to find that; unless somebody wants more of it by now than its pages show.
   */
  async retire(subject: SubjectId, commit: number): Promise<void> {
    if (!(await this.#subjects.retire(subject, commit))) return;
    await this.queue(surfaceOf(subject)).remove(pollJobId(subject));
    // Who has put it back on the schedule since may have relied on the job that is gone now.
    if (await this.#subjects.isPolled(subject)) await this.add(subject);
  }

  /** Has a subject polled as soon as the budget allows, also one whose tracking had ended. */
  async soon(subject: SubjectId): Promise<void> {
    await this.#redis.zadd(this.#keys.due, 'NX', await redisTimeMs(this.#redis), subject);
    const job = await this.queue(surfaceOf(subject)).getJob(pollJobId(subject));
    if (job === undefined) return this.add(subject);
    const state = await job.getState();
    if (state === 'active') await this.#subjects.nudge(subject);
    // Between the look and the promotion the job may have become active: then it is being polled anyway.
    if (state === 'delayed') await job.promote().catch(() => this.#subjects.nudge(subject));
  }

  /** As `soon`, but at most once in a while for one subject: for answers on pages that are behind. */
  async lookAgain(subject: SubjectId): Promise<void> {
    const first = await this.#redis.set(this.#keys.looked(subject), 'asked', 'PX', LOOK_WITHIN_MS, 'NX');
    if (first !== null) await this.soon(subject);
  }

  /** Whether a look was asked for, and not taken yet: then even a finished subject has to be asked for. */
  async takeLook(subject: SubjectId): Promise<boolean> {
    if ((await this.#redis.get(this.#keys.looked(subject))) !== 'asked') return false;
    await this.#redis.set(this.#keys.looked(subject), 'taken', 'PX', LOOK_EVERY_MS);
    return true;
  }

  /** Queues a page of a walk. One over all pages waits for everything else; the others are about what moves now. */
  async addPage(page: Extract<PollJob, { do: 'page' }>): Promise<void> {
    const urgency = page.route === 'all' ? { priority: PAGE_PRIORITY } : {};
    await this.queue('status').add('page', page, { jobId: pageJobId(page), ...urgency });
  }

  /** Whether one of some pages is queued, or is being read. */
  async havePage(pages: readonly Parameters<typeof pageJobId>[0][]): Promise<boolean> {
    const keys = pages.map((page) => this.queue('status').toKey(pageJobId(page)));
    return (await this.#redis.exists(...keys)) > 0;
  }

  /** Pauses all workers of a surface for at least this long; returns the pause in ms. */
  async pause(surface: Surface, forMs: number): Promise<number> {
    const pauseMs = await this.#health.pause(surface, forMs);
    await this.queue(surface).rateLimit(Math.ceil(pauseMs));
    // Another process may have set a longer one in between, which ours would have cut short.
    const leftMs = await this.#health.pause(surface, 0);
    if (leftMs > pauseMs) await this.queue(surface).rateLimit(Math.ceil(leftMs));
    return Math.max(pauseMs, leftMs);
  }

  /** Which of some subjects have no job. */
  async missing(subjects: readonly SubjectId[]): Promise<SubjectId[]> {
    if (subjects.length === 0) return [];
    const pipeline = this.#redis.pipeline();
    for (const subject of subjects) {
      pipeline.exists(this.queue(surfaceOf(subject)).toKey(pollJobId(subject)));
    }
    const replies = (await pipeline.exec()) ?? [];
    return subjects.filter((_, index) => replies[index]?.[1] === 0);
  }

  /** Whether an overdue subject's job is not where a worker will take it from before long. */
  async isHeldUp(subject: SubjectId): Promise<boolean> {
    const state = await this.queue(surfaceOf(subject)).getJobState(pollJobId(subject));
    return state !== 'waiting' && state !== 'active' && state !== 'prioritized';
  }

  /** The number of jobs of a surface by state. */
  async depth(surface: Surface): Promise<{ waiting: number; delayed: number; active: number }> {
    const counts = await this.queue(surface).getJobCounts('wait', 'prioritized', 'delayed', 'active');
    return {
      waiting: (counts.wait ?? 0) + (counts.prioritized ?? 0),
      delayed: counts.delayed ?? 0,
      active: counts.active ?? 0,
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }
}
