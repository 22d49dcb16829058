import type { PlannedPoll } from './next-poll.ts';
import { keepable, virtualSeconds } from './wait.ts';
import type { CadenceModel } from './watched.ts';

/** Largest page that the interface allows: the most transfers for one request. */
export const PAGE_LIMIT = 50;

/**
 * The `limit` of the first page of a listing when a page last exceeded its limits, and the time of that (Redis time,
 * ms). 0: a page of a single record exceeded them.
 *
 * | Answer to a request with limit L      | State after it | Then                                                     |
 * |---------------------------------------|----------------|----------------------------------------------------------|
 * | within its limits, state none or >= 1 | as before      | the effective limit doubles every RECOVERS_MS, up to 50  |
 * | within its limits, state 0            | L, now         | as above                                                 |
 * | too large, L > 1                      | half of L, now | the same page is requested again with that limit         |
 * | too large, L = 1                      | 0, now         | the record is reported, and the listing waits BLOCKED_MS |
 *
 * A sweep has its own limit, which never grows: see queues/polls/sweeps.ts.
 */
export type PageLimit = { limit: number; atMs: number };

/** After this time without an excessive page, the limit doubles. */
const RECOVERS_MS = 600_000;

/** Delay before a listing whose next page holds too large a record is requested again. */
export const BLOCKED_MS = 300_000;

/** Limit of a request that is made now. */
export function effectiveLimit(state: PageLimit | undefined, nowMs: number): number {
  if (state === undefined) return PAGE_LIMIT;
  const doublings = Math.floor(Math.max(0, nowMs - state.atMs) / RECOVERS_MS);
  return Math.min(PAGE_LIMIT, Math.max(1, state.limit) * 2 ** Math.min(doublings, 6));
}

/** State after a page beyond its limits. */
export function afterTooLarge(limit: number, nowMs: number): PageLimit {
  return { limit: Math.floor(limit / 2), atMs: nowMs };
}

/** State after a page within its limits; null when it does not change. */
export function afterFitting(
  state: PageLimit | undefined,
  page: { limit: number; nowMs: number },
): PageLimit | null {
  return state?.limit === 0 ? { limit: page.limit, atMs: page.nowMs } : null;
}

/** True when the first record of a listing is too large, so that its first page cannot be read. */
export function isBlocked(state: PageLimit | undefined, nowMs: number): boolean {
  return state?.limit === 0 && nowMs - state.atMs <= 2 * BLOCKED_MS;
}

/*
 * Full sweeps of a wallet, by the known lifetime of its cursors:
 *
 *   | state   | while                                  | pages of a full sweep                  | leaves it                     |
 *   |---------|----------------------------------------|----------------------------------------|-------------------------------|
 *   | patient | no cursor of it was refused for 24 h   | each waits its turn, up to 2 min       | a cursor is refused ─► hurried |
 *   | hurried | one was                                | back to back; a sweep begins when it   | 24 h without ─► patient       |
 *   |         |                                        | has one of `mostHurried` turns         |                               |
 *
 * When the budget is too small for the lifetime, a cursor is refused even in a hurried sweep. It is then reported
 * with the rate that would suffice.
 */

/** Last refusal of a wallet's cursor (Redis time, 0 for never), and the age of that cursor. */
type CursorFacts = { cursorDiedAtMs: number; cursorDiedAfterMs: number };

const BELIEVED_MS = 86_400_000;

/** Share of the budget that pages of hurried sweeps get while other polls wait as well: see commands/claim-polls-2.lua. */
const SHARE = 0.2;

/** Most hurried sweeps at once, and the number of pages of each that must fit into a cursor's life. */
const MOST_AT_ONCE = 20;
const SAFETY = 4;

/** True when the full sweeps of a wallet are hurried. */
export function isHurried({ cursorDiedAtMs }: CursorFacts, nowMs: number): boolean {
  return cursorDiedAtMs > 0 && nowMs - cursorDiedAtMs < BELIEVED_MS;
}

/** Number of sweeps that may be hurried at once, so that a page of each comes well within its cursor's life. */
export function mostHurried({ cursorDiedAfterMs }: CursorFacts, requestsPerSecond: number): number {
  const pages = ((cursorDiedAfterMs / 1_000) * requestsPerSecond * SHARE) / SAFETY;
  return Math.max(1, Math.min(MOST_AT_ONCE, Math.floor(pages)));
}

/**
 * A refused cursor, ms: its age, and that of its sweep at the last answered page; the age of the oldest accepted
 * cursor in that sweep; and the least number of the wallet's pages.
 */
type RefusedCursor = { ageMs: number; sweepAgeMs: number; acceptedMs: number; pages: number };

/**
 * The observed lifetime, and the requests per second that would suffice. If a cursor of that age was accepted before,
 * the sweep was too old: all its pages must come within the lifetime, else one of them.
 */
export function neededRate({ ageMs, sweepAgeMs, acceptedMs, pages }: RefusedCursor): {
  lifetimeSeconds: number;
  pages: number;
  requestsPerSecond: number;
} {
  const isSweep = acceptedMs >= ageMs && sweepAgeMs > 0;
  const lifetimeMs = Math.max(1, isSweep ? sweepAgeMs : acceptedMs > 0 ? acceptedMs : ageMs / 2);
  const within = isSweep ? pages : 1;
  const requestsPerSecond = Math.ceil((10 * within * 1_000) / lifetimeMs / SHARE) / 10;
  return { lifetimeSeconds: Math.round(lifetimeMs / 100) / 10, pages: within, requestsPerSecond };
}

/*
 * A transaction or a quote can lead to several transfers, which the upstream may index one by one. It is polled for
 * further ones:
 *
 *   | state   | while                                                                   | next poll                      |
 *   | unseen  | no answer has shown a transfer                                          | that of any id never seen      |
 *   | watched | one of its transfers is open, or it showed a new one in the last 24 h   | `nextForMore`: a wait that     |
 *   |         |                                                                         | grows with the time since then |
 *   | over    | neither                                                                 | none                           |
 *
 * A new transfer moves it to `watched` and restarts the wait. A new claim, or a request for a poll, polls one in
 * `over` once more.
 */

/** Transfers of a subject: the time of the newest (Redis time, null for never), and whether one is open. */
type FurtherTransfers = { newestAtMs: number | null; isOpen: boolean };

/** State of a subject, and its next poll for further transfers. */
export type FurtherPoll = { state: 'unseen' | 'over' } | { state: 'watched'; next: PlannedPoll };

/** Time after the newest transfer within which another may come. */
const AWAITED_MS = 86_400_000;

/** The wait is a tenth of the time since the newest transfer, within bounds (seconds, at a price of 1). */
const SHARE_OF_AGE = 0.1;
const SHORTEST_SECONDS = 5;
const LONGEST_SECONDS = 3_600;

/** Bounds of the wait at any price: those of other stages without a model. */
const LEAST_SHARE = 0.2;
const LEAST_FACTOR = 2;
const MOST_FACTOR = 6;
const MOST_SECONDS = 7_200;

/** Returns the state of a subject, and its next poll for further transfers, counted from now. */
export function nextForMore(
  { newestAtMs, isOpen }: FurtherTransfers,
  { nowMs, price, model }: { nowMs: number; price: number; model: CadenceModel },
): FurtherPoll {
  if (newestAtMs === null) return { state: 'unseen' };
  const ageMs = Math.max(0, nowMs - newestAtMs);
  if (!isOpen && ageMs >= AWAITED_MS) return { state: 'over' };
  const everySeconds = Math.min(LONGEST_SECONDS, Math.max(SHORTEST_SECONDS, (SHARE_OF_AGE * ageMs) / 1_000));
  const { leastSeconds: shortest, mostSeconds: longest } = model.rules.pending.limits;
  const { leastSeconds, mostSeconds } = keepable({
    leastSeconds: Math.max(LEAST_FACTOR * shortest, LEAST_SHARE * everySeconds),
    mostSeconds: Math.max(longest, Math.min(MOST_SECONDS, MOST_FACTOR * everySeconds)),
  });
  const next: PlannedPoll = {
    virtualSeconds: virtualSeconds({ terms: [], constant: 2 / everySeconds ** 2, price }),
    restMs: 1_000 * leastSeconds,
    latestMs: 1_000 * mostSeconds,
    alarmMs: null,
    unseen: false,
  };
  return { state: 'watched', next };
}
