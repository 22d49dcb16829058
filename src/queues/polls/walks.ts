import { hash } from 'node:crypto';
import { MOST_PAGES } from '../../domain/cadence/wallet.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import type { RedisClient } from '../../store/commands.ts';
import type { Keys } from '../../store/keys.ts';
import { type PlanStore, pageMember } from '../../store/plan.ts';
import type { StoredWalk } from '../../store/poll-start.ts';

/**
 * What a walk reads: `all` pages of a wallet, the pages up to the first with something that stands as before (`new`), or
 * all pages of the transfers in one status.
 */
export type Route = 'all' | 'new' | (string & {});

/** One walk: `id` tells it from the one before on the same route. */
export type Walk = { wallet: SubjectId; route: Route; id: string };

/**
 * The page that a walk reads next, how often that was tried in vain, and since when it looks for what is new: what has not
 * changed since ends a walk over new transfers.
 */
export type WalkPage = Walk & { page: number; cursor: string; tries: number; sinceMs: number };

/** So long after its beginning a walk that was cut short may be tried again, where its cursors expire for instance. */
const BROKEN_FOR_MS = 30_000;

/** A walk that has not moved for so long is given up, so that the next one can begin. */
const LIFETIME_MS = 3_600_000;

/**
 * Walks over the pages of a wallet behind the first. Each has one entry in the plan, for the page that is next. A walk
 * only reads, and every record it shows is decided for itself; so one that is cut short or repeated costs requests and
 * never an event.
 */
export class Walks {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #plan: PlanStore;

  constructor(parts: { redis: RedisClient; keys: Keys; plan: PlanStore }) {
    this.#redis = parts.redis;
    this.#keys = parts.keys;
    this.#plan = parts.plan;
  }

  #key({ wallet, route }: Pick<Walk, 'wallet' | 'route'>): string {
    return this.#keys.walk(wallet, route);
  }

  /** Whether a walk on a route may begin: none is under way that still moves, and none has just been cut short. */
  async mayBegin(walk: Pick<Walk, 'wallet' | 'route'>, nowMs: number): Promise<boolean> {
    const [id, state, moved] = await this.#redis.hmget(this.#key(walk), 'id', 'state', 'movedAtMs');
    if (state === 'running') {
      if (nowMs - Number(moved ?? 0) >= LIFETIME_MS) return true;
      return !(await this.#plan.isTracked(pageMember(walk.wallet, walk.route)));
    }
    return state !== 'broken' || nowMs - Number(id ?? 0) >= BROKEN_FOR_MS;
  }

  /** Begins a walk where the first page leads on to. One over all pages waits its turn; the others are about what moves now. */
  async begin(
    where: Pick<Walk, 'wallet' | 'route'>,
    from: { cursor: string; nowMs: number; sinceMs: number },
  ): Promise<void> {
    const walk: Walk = { ...where, id: String(from.nowMs) };
    const key = this.#key(walk);
    await this.#redis
      .multi()
      .del(key)
      .hset(key, { id: walk.id, movedAtMs: walk.id, state: 'running', sinceMs: String(from.sinceMs) })
      .pexpire(key, LIFETIME_MS * 2)
      .exec();
    if (!(await this.next(walk, { page: 1, cursor: from.cursor, nowMs: from.nowMs }))) return;
    const member = pageMember(walk.wallet, walk.route);
    if (walk.route === 'all') await this.#plan.track([member]);
    else await this.#plan.ask([member]);
  }

  /**
   * Has the walk read the page behind one. False where it cannot go on: its cursor was followed before (the upstream
   * would lead in a circle), or the page cap is reached.
   */
  async next(walk: Walk, from: { page: number; cursor: string; nowMs: number }): Promise<boolean> {
    if (!(await this.isPresent(walk))) return true;
    const key = this.#key(walk);
    const { page, cursor, nowMs } = from;
    const mark = `cursor:${hash('sha256', cursor).slice(0, 32)}`;
    const isNew = (await this.#redis.hsetnx(key, mark, String(page + 1))) === 1;
    const follower = isNew ? null : await this.#redis.hget(key, mark);
    // The same page may be read twice, after a crash between the mark and the end of its poll: then the mark is its own.
    if ((follower !== null && follower !== String(page + 1)) || page >= MOST_PAGES) return false;
    await this.#redis
      .multi()
      .hset(key, { movedAtMs: String(nowMs), page: String(page + 1), cursor, tries: '0' })
      .pexpire(key, LIFETIME_MS * 2)
      .exec();
    return true;
  }

  /** Notes that a page could not be read. */
  async noteFailure(walk: WalkPage): Promise<void> {
    if (await this.isPresent(walk)) await this.#redis.hset(this.#key(walk), 'tries', String(walk.tries + 1));
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

/** The page that a stored walk reads next; null where it has ended or cannot be read. */
export function parseWalk(wallet: SubjectId, route: string, stored: StoredWalk): WalkPage | null {
  const { id = '', state, page = '', cursor, tries = '', sinceMs = '' } = stored;
  if (state !== 'running' || !NUMBER.test(id) || !NUMBER.test(page) || !cursor) return null;
  const number = (text: string): number => (NUMBER.test(text) ? Number(text) : 0);
  return { wallet, route, id, page: number(page), cursor, tries: number(tries), sinceMs: number(sinceMs) };
}

const NUMBER = /^\d{1,15}$/;
