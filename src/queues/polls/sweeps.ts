import { hash } from 'node:crypto';
import { afterTooLarge, PAGE_LIMIT } from '../../domain/cadence/pages.ts';
import { NARROW_STATUSES } from '../../domain/cadence/wait.ts';
import { MOST_PAGES } from '../../domain/cadence/wallet.ts';
import type { SubjectId } from '../../domain/subjects/subject.ts';
import type { RedisClient } from '../../store/commands.ts';
import type { Keys } from '../../store/keys.ts';
import type { PlanStore } from '../../store/plan.ts';
import { pageMember } from '../../store/plan-members.ts';
import type { StoredSweep } from '../../store/poll-start.ts';
import { scripts } from '../../store/scripts.ts';

/**
 * Pages that a sweep reads: `all` of a wallet, those up to the first with an unchanged transfer (`new`), or all of the
 * transfers in one status. `all-<status>` reads these in place of `all` where that meets a record that is too large.
 * `after-<status>` reads pages of the next status, for the transfers that the pages of `<status>` no longer show.
 */
export type SweepScope = 'all' | 'new' | (string & {});

/** The status to which the pages of a sweep are narrowed; null for none. */
export function statusOf(scope: SweepScope): string | null {
  if (scope === 'all' || scope === 'new') return null;
  const left = leftBehind(scope);
  if (left !== null) return NEXT_STATUS[left] ?? null;
  return scope.startsWith(INSTEAD) ? scope.slice(INSTEAD.length) : scope;
}

/** The status in which transfers most likely are when they are no longer in a status. */
const NEXT_STATUS: { readonly [status: string]: string | undefined } = {
  pending: 'filled',
  filled: 'settled',
};

const AFTER = 'after-';

/** The scope for transfers that left a status; null where it is not known which status is next. */
export function scopeAfter(status: string): SweepScope | null {
  return Object.hasOwn(NEXT_STATUS, status) ? `${AFTER}${status}` : null;
}

/** The status that the transfers of such a scope have left; null for any other scope. */
export function leftBehind(scope: SweepScope): string | null {
  return scope.startsWith(AFTER) ? scope.slice(AFTER.length) : null;
}

const INSTEAD = 'all-';

/** The statuses to which the interface can narrow a wallet's pages, each as the scope of a sweep that reads all of them. */
export const INSTEAD_OF_ALL: readonly SweepScope[] = [...NARROW_STATUSES, 'settled', 'refunded'].map(
  (status) => `${INSTEAD}${status}`,
);

/** True when a sweep reads all that a wallet has. Such a sweep waits its turn. */
export function isFull(scope: SweepScope): boolean {
  return scope === 'all' || scope.startsWith(INSTEAD);
}

/** One sweep: `id` distinguishes it from the earlier one on the same scope. */
export type Sweep = SweepKey & { id: string };

type SweepKey = { wallet: SubjectId; scope: SweepScope };

/**
 * The page that a sweep reads next (`cursor`: null for the first), its failed tries, and the start of the search
 * for changes (`sinceMs`): a transfer unchanged since then ends a sweep over new ones. `limit` is that of the next request,
 * `cursorLimit` that of the request whose answer had the cursor:
 *
 * | Answer                                   | limit | cursorLimit | Then                                            |
 * |------------------------------------------|-------|-------------|-------------------------------------------------|
 * | within its limits                        | same  | limit       | the next page                                   |
 * | too large, limit > 1                     | half  | same        | the same page again                             |
 * | too large, limit = 1                     |       |             | the record is reported; the sweep ends, blocked |
 * | cursor refused, limit < cursorLimit      | same  | limit       | the first page again, with that limit           |
 * | cursor refused, limit = cursorLimit      |       |             | the sweep ends, broken                          |
 *
 * `limit` never grows, so a sweep restarts at most five times. `isHurried`: its pages are read back to back (see
 * domain/cadence/pages.ts); `movedAtMs`: time of the request whose answer had the cursor; `acceptedMs`: the age of
 * the oldest cursor that was accepted; `isPartial`: a page had an unreadable record.
 */
export type SweepPage = Sweep & {
  page: number;
  cursor: string | null;
  tries: number;
  sinceMs: number;
  limit: number;
  cursorLimit: number;
  isHurried: boolean;
  isPartial: boolean;
  movedAtMs: number;
  acceptedMs: number;
};

/** Time after its start at which a broken sweep may be tried again, for example after its cursor expired. */
const BROKEN_FOR_MS = 30_000;

/** Time after its start at which a sweep that met a too large record may be tried again. */
const BLOCKED_FOR_MS = 300_000;

/** Time for which a hurried sweep holds its turn after each page. */
const TURN_MS = 120_000;

/** Time without progress after which a sweep is abandoned, so that the next one can begin. */
const LIFETIME_MS = 3_600_000;

/**
 * Sweeps over the pages of a wallet behind the first. Each has one entry in the plan, for its next page. A sweep only reads,
 * and every record is decided by itself. So a broken or repeated sweep costs requests and never an event.
 */
export class Sweeps {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #plan: PlanStore;

  constructor(deps: { redis: RedisClient; keys: Keys; plan: PlanStore }) {
    this.#redis = deps.redis;
    this.#keys = deps.keys;
    this.#plan = deps.plan;
  }

  #key({ wallet, scope }: SweepKey): string {
    return this.#keys.sweep(wallet, scope);
  }

  /** True when a sweep may begin, see `state`. */
  async mayBegin(...which: Parameters<Sweeps['state']>): Promise<boolean> {
    return (await this.state(...which)) === 'free';
  }

  /**
   * State of the last sweep: `free` when the next one may begin. `resting`: it was just broken, or less than `everyMs` has passed
   * since the start of one of so many pages.
   */
  async state(
    sweep: SweepKey,
    nowMs: number,
    { everyMs = () => 0 }: { everyMs?: (pages: number) => number } = {},
  ): Promise<'free' | 'running' | 'resting'> {
    const [id, state, moved, pages] = await this.#redis.hmget(
      this.#key(sweep),
      'id',
      'state',
      'movedAtMs',
      'page',
    );
    if (state === 'running') {
      if (nowMs - Number(moved ?? 0) >= LIFETIME_MS) return 'free';
      return (await this.#plan.isTracked(pageMember(sweep.wallet, sweep.scope))) ? 'running' : 'free';
    }
    // A start later than now was noted by a wrong clock.
    if (nowMs < Number(id ?? 0)) return 'free';
    const leastMs = state === 'broken' ? BROKEN_FOR_MS : state === 'blocked' ? BLOCKED_FOR_MS : 0;
    const isRested = nowMs - Number(id ?? 0) >= Math.max(leastMs, everyMs(Number(pages ?? 0)));
    return isRested ? 'free' : 'resting';
  }

  /**
   * Begins a sweep at the cursor of the first page, with the limit of that page; or at the first page, where `cursor` is null.
   * A full sweep that is not hurried waits its turn; the others are about recent changes.
   */
  async begin(
    where: SweepKey,
    from: {
      cursor: string | null;
      limit: number;
      nowMs: number;
      sinceMs: number;
      isHurried?: boolean;
      isPartial?: boolean;
    },
  ): Promise<void> {
    const { cursor, limit, nowMs, sinceMs, isHurried = false, isPartial = false } = from;
    const sweep: Sweep = { ...where, id: String(nowMs) };
    await this.#write(
      {
        ...sweep,
        page: 1,
        cursor: null,
        tries: 0,
        sinceMs,
        limit,
        cursorLimit: limit,
        isHurried,
        isPartial,
        movedAtMs: nowMs,
        acceptedMs: 0,
      },
      nowMs,
    );
    if (cursor !== null && !(await this.next(sweep, { page: 1, cursor, limit, nowMs }))) return;
    const member = pageMember(sweep.wallet, sweep.scope);
    if (isFull(sweep.scope) && !isHurried) await this.#plan.track([member]);
    else await this.#plan.pollSoon([member]);
  }

  async #write(
    { id, sinceMs, limit, isHurried, isPartial, ...where }: SweepPage,
    nowMs: number,
  ): Promise<void> {
    const key = this.#key(where);
    await this.#redis
      .multi()
      .del(key)
      .hset(key, {
        id,
        movedAtMs: String(nowMs),
        state: 'running',
        sinceMs: String(sinceMs),
        page: '1',
        cursor: '',
        limit: String(limit),
        cursorLimit: String(limit),
        hurried: isHurried ? '1' : '0',
        partial: isPartial ? '1' : '0',
      })
      .pexpire(key, LIFETIME_MS * 2)
      .exec();
  }

  async shrink(sweep: SweepPage, nowMs: number): Promise<void> {
    if (!(await this.isPresent(sweep))) return;
    const { limit } = afterTooLarge(sweep.limit, nowMs);
    await this.#redis.hset(this.#key(sweep), { limit: String(limit), movedAtMs: String(nowMs), tries: '0' });
  }

  async restart(sweep: SweepPage, nowMs: number): Promise<void> {
    if (await this.isPresent(sweep)) await this.#write(sweep, nowMs);
  }

  /** Moves to the next page. False for a cursor followed before (a circle of the upstream's), or at the page cap. */
  async next(
    sweep: Sweep,
    from: { page: number; cursor: string; limit: number; nowMs: number; acceptedMs?: number },
  ): Promise<boolean> {
    if (!(await this.isPresent(sweep))) return true;
    const key = this.#key(sweep);
    const { page, cursor, limit, nowMs, acceptedMs = 0 } = from;
    const mark = `cursor:${hash('sha256', cursor).slice(0, 32)}`;
    const isNew = (await this.#redis.hsetnx(key, mark, String(page + 1))) === 1;
    const follower = isNew ? null : await this.#redis.hget(key, mark);
    // The same page may be read twice, after a crash between the mark and the end of its poll: then the mark is its own.
    if ((follower !== null && follower !== String(page + 1)) || page >= mostPages(limit)) return false;
    await this.#redis
      .multi()
      .hset(key, {
        movedAtMs: String(nowMs),
        page: String(page + 1),
        cursor,
        tries: '0',
        limit: String(limit),
        cursorLimit: String(limit),
        acceptedMs: String(acceptedMs),
      })
      .pexpire(key, LIFETIME_MS * 2)
      .exec();
    return true;
  }

  async notePartial(sweep: SweepPage): Promise<void> {
    if (await this.isPresent(sweep)) await this.#redis.hset(this.#key(sweep), 'partial', '1');
  }

  async noteFailure(sweep: SweepPage): Promise<void> {
    if (await this.isPresent(sweep))
      await this.#redis.hset(this.#key(sweep), 'tries', String(sweep.tries + 1));
  }

  async isPresent(sweep: Sweep): Promise<boolean> {
    return (await this.#redis.hget(this.#key(sweep), 'id')) === sweep.id;
  }

  /** Ends a sweep. It is complete, or could not go on because of its cursor (`broken`) or a too large record (`blocked`). */
  async end(sweep: Sweep, state: 'ended' | 'broken' | 'blocked' = 'ended'): Promise<void> {
    if (!(await this.isPresent(sweep))) return;
    await this.#redis.hset(this.#key(sweep), 'state', state);
    await this.#redis.zrem(this.#keys.sweepTurns, pageMember(sweep.wallet, sweep.scope));
  }

  async retainTurn(sweep: SweepKey): Promise<void> {
    await this.acquireTurn(sweep, 0);
  }

  /** Gives a sweep one of `most` turns in which pages are read back to back, or renews its own. False where none is free. */
  async acquireTurn({ wallet, scope }: SweepKey, most: number): Promise<boolean> {
    const member = pageMember(wallet, scope);
    return scripts.acquireSweepTurn(this.#redis, {
      keys: this.#keys,
      args: { member, turnMs: TURN_MS, most },
    });
  }
}

/** Parses the page that a stored sweep reads next; null where the sweep has ended or is unreadable. */
export function parseSweep(wallet: SubjectId, scope: string, stored: StoredSweep): SweepPage | null {
  const { id = '', state, page = '', cursor = '', tries = '', sinceMs = '' } = stored;
  if (state !== 'running' || !NUMBER.test(id) || !NUMBER.test(page)) return null;
  if (cursor === '' && page !== '1') return null;
  const number = (text: string): number => (NUMBER.test(text) ? Number(text) : 0);
  const limitOf = (text = ''): number => Math.min(PAGE_LIMIT, Math.max(1, number(text) || PAGE_LIMIT));
  return {
    wallet,
    scope,
    id,
    page: number(page),
    cursor: cursor === '' ? null : cursor,
    tries: number(tries),
    sinceMs: number(sinceMs),
    limit: limitOf(stored.limit),
    cursorLimit: limitOf(stored.cursorLimit),
    isHurried: stored.hurried === '1',
    isPartial: stored.partial === '1',
    movedAtMs: number(stored.movedAtMs ?? '') || Number(id),
    acceptedMs: number(stored.acceptedMs ?? ''),
  };
}

const NUMBER = /^\d{1,15}$/;

/** Page cap. A sweep with a smaller limit reads as many transfers as any other, in more pages. */
function mostPages(limit: number): number {
  return Math.ceil((MOST_PAGES * PAGE_LIMIT) / Math.max(1, limit));
}
