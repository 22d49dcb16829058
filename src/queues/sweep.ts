import { sha256, stringToBytes } from 'viem';
import type { SubjectId } from '../domain/subject.ts';
import type { RedisClient } from '../store/commands.ts';
import type { Keys } from '../store/keys.ts';
import type { PollQueues } from './poll-queues.ts';

/** No wallet is followed further than this many pages: 100,000 transfers. */
const MOST_PAGES = 2_000;

/** A sweep that has not moved for so long is given up, so that the next one can begin. */
const SWEEP_LIFETIME_MS = 3_600_000;

/**
 * Sweeps of wallets: the pages behind the first, each a job of its own. A sweep only reads, and every record it shows
 * is decided for itself; so one that is cut short or repeated costs requests and never an event.
 */
export class Sweeps {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #queues: PollQueues;
  readonly #everyMs: number;

  constructor(parts: { redis: RedisClient; keys: Keys; queues: PollQueues; everyMs: number }) {
    this.#redis = parts.redis;
    this.#keys = parts.keys;
    this.#queues = parts.queues;
    this.#everyMs = parts.everyMs;
  }

  /**
   * Follows the first page of a wallet where there is reason to: no sweep for a while, or a page on which everything
   * was new, so that more that is new may stand behind it. One sweep of a wallet runs at a time.
   */
  async follow(
    wallet: SubjectId,
    head: { cursor: string | null; allNew: boolean; nowMs: number },
  ): Promise<void> {
    const key = this.#keys.sweep(wallet);
    const [id, state, moved] = await this.#redis.hmget(key, 'id', 'state', 'movedAtMs');
    const startedMs = Number(id ?? 0);
    const running = state === 'running' && head.nowMs - Number(moved ?? 0) < SWEEP_LIFETIME_MS;
    if (running || (!head.allNew && head.nowMs - startedMs < this.#everyMs)) return;
    const sweep = String(head.nowMs);
    await this.#redis
      .multi()
      .del(key)
      .hset(key, 'id', sweep, 'movedAtMs', sweep, 'state', head.cursor === null ? 'ended' : 'running')
      .pexpire(key, SWEEP_LIFETIME_MS * 2)
      .exec();
    if (head.cursor !== null) {
      await this.next({ wallet, sweep, page: 1, cursor: head.cursor, nowMs: head.nowMs });
    }
  }

  /**
   * Queues the page behind one. A cursor that was followed before ends the sweep (the upstream would lead in a circle),
   * and so does the page cap.
   */
  async next(page: {
    wallet: SubjectId;
    sweep: string;
    page: number;
    cursor: string;
    nowMs: number;
  }): Promise<void> {
    const { wallet, sweep, cursor } = page;
    if (!(await this.isPresent(wallet, sweep))) return;
    const key = this.#keys.sweep(wallet);
    const mark = `cursor:${sha256(stringToBytes(cursor)).slice(2, 34)}`;
    const isNew = (await this.#redis.hsetnx(key, mark, String(page.page + 1))) === 1;
    const follower = await this.#redis.hget(key, mark);
    // The same page may ask twice, after a crash between the mark and the job: then the mark is its own.
    if ((!isNew && follower !== String(page.page + 1)) || page.page >= MOST_PAGES)
      return this.end(wallet, sweep);
    await this.#redis.hset(key, 'movedAtMs', String(page.nowMs));
    await this.#redis.pexpire(key, SWEEP_LIFETIME_MS * 2);
    await this.#queues.addPage({ do: 'page', wallet, sweep, page: page.page + 1, cursor, tries: 0 });
  }

  /** Whether a sweep is the present one of its wallet. */
  async isPresent(wallet: SubjectId, sweep: string): Promise<boolean> {
    return (await this.#redis.hget(this.#keys.sweep(wallet), 'id')) === sweep;
  }

  async end(wallet: SubjectId, sweep: string): Promise<void> {
    if (await this.isPresent(wallet, sweep))
      await this.#redis.hset(this.#keys.sweep(wallet), 'state', 'ended');
  }

  /** Forgets the present sweep, so that the next poll of the first page begins a new one: its cursor was refused. */
  async restart(wallet: SubjectId, sweep: string): Promise<void> {
    if (await this.isPresent(wallet, sweep)) await this.#redis.del(this.#keys.sweep(wallet));
  }
}
