import { hash } from 'node:crypto';
import { MOST_PAGES } from '../../domain/cadence/wallet.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import type { RedisClient } from '../../store/commands.ts';
import type { Keys } from '../../store/keys.ts';
import type { PlanStore } from '../../store/plan.ts';
import { pageMember } from '../../store/plan-members.ts';
import type { StoredSweep } from '../../store/poll-start.ts';

/**
 * What a sweep reads: `all` pages of a wallet, the pages up to the first with something that stands as before (`new`), or
 * all pages of the transfers in one status.
 */
export type SweepScope = 'all' | 'new' | (string & {});

/** One sweep: `id` tells it from the one before on the same scope. */
export type Sweep = { wallet: SubjectId; scope: SweepScope; id: string };

/**
 * The page that a sweep reads next, how often that was tried in vain, and since when it looks for what is new: what has not
 * changed since ends a sweep over new transfers.
 */
export type SweepPage = Sweep & { page: number; cursor: string; tries: number; sinceMs: number };

/** So long after its beginning a sweep that was cut short may be tried again, where its cursors expire for instance. */
const BROKEN_FOR_MS = 30_000;

/** A sweep that has not moved for so long is given up, so that the next one can begin. */
const LIFETIME_MS = 3_600_000;

/**
 * Sweeps over the pages of a wallet behind the first. Each has one entry in the plan, for the page that is next. A sweep
 * only reads, and every record it shows is decided for itself; so one that is cut short or repeated costs requests and
 * never an event.
 */
export class Sweeps {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #plan: PlanStore;

  constructor(parts: { redis: RedisClient; keys: Keys; plan: PlanStore }) {
    this.#redis = parts.redis;
    this.#keys = parts.keys;
    this.#plan = parts.plan;
  }

  #key({ wallet, scope }: Pick<Sweep, 'wallet' | 'scope'>): string {
    return this.#keys.sweep(wallet, scope);
  }

  /** Whether a sweep on a scope may begin: none is under way that still moves, and none has just been cut short. */
  async mayBegin(sweep: Pick<Sweep, 'wallet' | 'scope'>, nowMs: number): Promise<boolean> {
    const [id, state, moved] = await this.#redis.hmget(this.#key(sweep), 'id', 'state', 'movedAtMs');
    if (state === 'running') {
      if (nowMs - Number(moved ?? 0) >= LIFETIME_MS) return true;
      return !(await this.#plan.isTracked(pageMember(sweep.wallet, sweep.scope)));
    }
    return state !== 'broken' || nowMs - Number(id ?? 0) >= BROKEN_FOR_MS;
  }

  /** Begins a sweep where the first page leads on to. A full one waits its turn; the others are about what moves now. */
  async begin(
    where: Pick<Sweep, 'wallet' | 'scope'>,
    from: { cursor: string; nowMs: number; sinceMs: number },
  ): Promise<void> {
    const sweep: Sweep = { ...where, id: String(from.nowMs) };
    const key = this.#key(sweep);
    await this.#redis
      .multi()
      .del(key)
      .hset(key, { id: sweep.id, movedAtMs: sweep.id, state: 'running', sinceMs: String(from.sinceMs) })
      .pexpire(key, LIFETIME_MS * 2)
      .exec();
    if (!(await this.next(sweep, { page: 1, cursor: from.cursor, nowMs: from.nowMs }))) return;
    const member = pageMember(sweep.wallet, sweep.scope);
    if (sweep.scope === 'all') await this.#plan.track([member]);
    else await this.#plan.ask([member]);
  }

  /**
   * Has the sweep read the page behind one. False where it cannot go on: its cursor was followed before (the upstream
   * would lead in a circle), or the page cap is reached.
   */
  async next(sweep: Sweep, from: { page: number; cursor: string; nowMs: number }): Promise<boolean> {
    if (!(await this.isPresent(sweep))) return true;
    const key = this.#key(sweep);
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
  async noteFailure(sweep: SweepPage): Promise<void> {
    if (await this.isPresent(sweep))
      await this.#redis.hset(this.#key(sweep), 'tries', String(sweep.tries + 1));
  }

  /** Whether a sweep is the present one on its scope. */
  async isPresent(sweep: Sweep): Promise<boolean> {
    return (await this.#redis.hget(this.#key(sweep), 'id')) === sweep.id;
  }

  /** Ends a sweep: it has read what it was to read, or, `broken`, it could not go on. */
  async end(sweep: Sweep, state: 'ended' | 'broken' = 'ended'): Promise<void> {
    if (await this.isPresent(sweep)) await this.#redis.hset(this.#key(sweep), 'state', state);
  }
}

/** The page that a stored sweep reads next; null where it has ended or cannot be read. */
export function parseSweep(wallet: SubjectId, scope: string, stored: StoredSweep): SweepPage | null {
  const { id = '', state, page = '', cursor, tries = '', sinceMs = '' } = stored;
  if (state !== 'running' || !NUMBER.test(id) || !NUMBER.test(page) || !cursor) return null;
  const number = (text: string): number => (NUMBER.test(text) ? Number(text) : 0);
  return { wallet, scope, id, page: number(page), cursor, tries: number(tries), sinceMs: number(sinceMs) };
}

const NUMBER = /^\d{1,15}$/;
