/** The largest page that the interface allows: the most transfers for one request. */
export const PAGE_LIMIT = 50;

/**
 * The `limit` of the first page of a listing as it was when a page was last beyond its limits, and when that was (Redis
 * time, ms). 0: a page of a single record was.
 *
 * | Answer to a request with limit L      | State after it | Then                                                     |
 * |---------------------------------------|----------------|----------------------------------------------------------|
 * | within its limits, state none or >= 1 | as before      | the effective limit doubles every RECOVERS_MS, up to 50  |
 * | within its limits, state 0            | L, now         | as above                                                 |
 * | too large, L > 1                      | half of L, now | the same page is requested again with that limit         |
 * | too large, L = 1                      | 0, now         | the record is reported, and the listing waits BLOCKED_MS |
 *
 * A sweep has a limit of its own, which never grows: see queues/polls/sweeps.ts.
 */
export type PageLimit = { limit: number; atMs: number };

/** After so long without a page beyond its limits, pages of twice the size are requested. */
const RECOVERS_MS = 600_000;

/** A listing whose next page holds a record that is too large is requested again after this. */
export const BLOCKED_MS = 300_000;

/** The limit of a request that is made now. */
export function effectiveLimit(state: PageLimit | undefined, nowMs: number): number {
  if (state === undefined) return PAGE_LIMIT;
  const doublings = Math.floor(Math.max(0, nowMs - state.atMs) / RECOVERS_MS);
  return Math.min(PAGE_LIMIT, Math.max(1, state.limit) * 2 ** Math.min(doublings, 6));
}

/** The state after a page beyond its limits. */
export function afterTooLarge(limit: number, nowMs: number): PageLimit {
  return { limit: Math.floor(limit / 2), atMs: nowMs };
}

/** The state after a page within its limits; null where it stays as it is. */
export function afterFitting(
  state: PageLimit | undefined,
  page: { limit: number; nowMs: number },
): PageLimit | null {
  return state?.limit === 0 ? { limit: page.limit, atMs: page.nowMs } : null;
}

/** True when the first page of a listing cannot be read: its first record is too large. */
export function isBlocked(state: PageLimit | undefined, nowMs: number): boolean {
  return state?.limit === 0 && nowMs - state.atMs <= 2 * BLOCKED_MS;
}
