/*
 * How the pages of a wallet's full sweeps are planned, by what is known of the lifetime of its cursors:
 *
 *   | state   | while                                  | pages of a full sweep                  | leaves it                     |
 *   |---------|----------------------------------------|----------------------------------------|-------------------------------|
 *   | patient | no cursor of it was refused for 24 h   | each waits its turn, up to 2 min       | a cursor is refused ─► hurried |
 *   | hurried | one was                                | back to back; a sweep begins when it   | 24 h without ─► patient       |
 *   |         |                                        | has one of `mostHurried` turns         |                               |
 *
 * A cursor that is refused in a hurried sweep, where the budget is too small for its lifetime, is reported with the rate that
 * would do.
 */

/** What a wallet's pages showed of its cursors: when one was refused last (Redis time, 0 for never), and how old that was. */
export type CursorFacts = { cursorDiedAtMs: number; cursorDiedAfterMs: number };

const BELIEVED_MS = 86_400_000;

/** The share of the budget that pages of hurried sweeps get while all else waits as well: see commands/claim-polls-2.lua. */
const SHARE = 0.2;

/** So many sweeps are hurried at once, and so many pages of each fit into the life of a cursor. */
const MOST_AT_ONCE = 20;
const SAFETY = 4;

/** True when the full sweeps of a wallet are hurried. */
export function isHurried({ cursorDiedAtMs }: CursorFacts, nowMs: number): boolean {
  return cursorDiedAtMs > 0 && nowMs - cursorDiedAtMs < BELIEVED_MS;
}

/** The number of sweeps that may be hurried at once, so that a page of each comes well within the life of its cursor. */
export function mostHurried({ cursorDiedAfterMs }: CursorFacts, requestsPerSecond: number): number {
  const pages = ((cursorDiedAfterMs / 1_000) * requestsPerSecond * SHARE) / SAFETY;
  return Math.max(1, Math.min(MOST_AT_ONCE, Math.floor(pages)));
}

/**
 * A cursor that was refused, ms: its age, and that of its sweep when the last page was answered; the age of the oldest cursor
 * that was accepted in that sweep; and how many pages the wallet has at least.
 */
export type RefusedCursor = { ageMs: number; sweepAgeMs: number; acceptedMs: number; pages: number };

/**
 * The lifetime that was seen, and the requests per second that would do. Where a cursor of that age was accepted before, it is
 * the sweep that was too old: then all its pages have to come within the lifetime, else one of them.
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
