import { sha256, stringToBytes } from 'viem';
import { MOST_PAGES } from '../domain/cadence/wallet.ts';
import type { SubjectId } from '../domain/subject.ts';
import type { RedisClient } from '../store/commands.ts';
import type { Keys } from '../store/keys.ts';
import type { PollQueues } from './poll-queues.ts';

/**
 * What a walk reads: `all` pages of a wallet, the pages up to the first with something known (`new`), or all pages of
 * the transfers in one status.
 */
export type Route = 'all' | 'new' | (string & {});

/** One walk: `id` tells it from the one before on the same route. */
export type Walk = { wallet: SubjectId; route: Route; id: string };

/** So long after its beginning a walk that was cut short may be tried again, where its cursors expire for instance. */
const BROKEN_FOR_MS = 30_000;

/** A walk that has not moved for so long is given up, so that the next one can begin. */
const LIFETIME_MS = 3_600_000;

/**
 * Walks over the pages of a wallet behind the first, each page a job of its own. A walk only reads, and every record it
 * shows is decided for itself; so one that is cut short or repeated costs requests and never an event.
 */
export class Walks {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #queues: PollQueues;

  constructor(parts: { redis: RedisClient; keys: Keys; queues: PollQueues }) {
    this.#redis = parts.redis;
    this.#keys = parts.keys;
    this.#queues = parts.queues;
  }

  #key({ wallet, route }: Pick<Walk, 'wallet' | 'route'>): string {
    return this.#keys.walk(wallet, route);
  }

  /** Whether a walk on a route may begin: none is under way that still moves, and none has just been cut short. */
  async mayBegin(walk: Pick<Walk, 'wallet' | 'route'>, nowMs: number): Promise<boolean> {
    const stored = await this.#redis.hmget(this.#key(walk), 'id', 'state', 'movedAtMs', 'page');
    const [id, state, moved, page] = stored;
    if (state === 'running') {
      if (nowMs - Number(moved ?? 0) >= LIFETIME_MS) return true;
      // A page lives until the one behind it is queued. Without either, nobody goes on: a process died in between.
      const last = Number(page ?? 0);
      const pages = [last - 1, last].map((number) => ({ ...walk, walk: id ?? '', page: number }));
      return !(await this.#queues.havePage(pages));
    }
    return state !== 'broken' || nowMs - Number(id ?? 0) >= BROKEN_FOR_MS;
  }

  /** Begins a walk where the first page leads on to. */
  async begin(where: Pick<Walk, 'wallet' | 'route'>, from: { cursor: string; nowMs: number }): Promise<void> {
    const walk: Walk = { ...where, id: String(from.nowMs) };
    const key = this.#key(walk);
    await this.#redis
      .multi()
      .del(key)
      .hset(key, 'id', walk.id, 'movedAtMs', walk.id, 'state', 'running')
      .pexpire(key, LIFETIME_MS * 2)
      .exec();
    await this.next(walk, { page: 1, cursor: from.cursor, nowMs: from.nowMs });
  }

  /**
   * Queues the page behind one. False where the walk cannot go on: its cursor was followed before (the upstream would
   * lead in a circle), or the page cap is reached.
   */
  async next(walk: Walk, from: { page: number; cursor: string; nowMs: number }): Promise<boolean> {
    if (!(await this.isPresent(walk))) return true;
    const key = this.#key(walk);
    const { page, cursor, nowMs } = from;
    const mark = `cursor:${sha256(stringToBytes(cursor)).slice(2, 34)}`;
    const isNew = (await this.#redis.hsetnx(key, mark, String(page + 1))) === 1;
    const follower = await this.#redis.hget(key, mark);
    // The same page may ask twice, after a crash between the mark and the job: then the mark is its own.
    if ((!isNew && follower !== String(page + 1)) || page >= MOST_PAGES) return false;
    await this.#redis.hset(key, 'movedAtMs', String(nowMs), 'page', String(page + 1));
    await this.#redis.pexpire(key, LIFETIME_MS * 2);
    const { wallet, route, id } = walk;
    await this.#queues.addPage({ do: 'page', wallet, route, walk: id, page: page + 1, cursor, tries: 0 });
    return true;
  }

  /** Whether a walk is the present one on its route. */
  async isPresent(walk: Walk): Promise<boolean> {
    return (await this.#redis.hget(this.#key(walk), 'id')) === walk.id;
  }

  /** Ends a walk: it has read what it was to read, or, `broken`, it could not go on. */
  async end(walk: Walk, state: 'ended' | 'broken' = 'ended'): Promise<void> {
    if (await this.isPresent(walk)) await this.#redis.hset(this.#key(walk), 'state', state);
  }
}
