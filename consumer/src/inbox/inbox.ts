import type { AnyEvent } from '../event.ts';

/**
 * What the inbox knows of an event that it takes for the first time. `lastSequence` is that of the event of its subject
 * that was handled last, null for none; `isStale`: this one is older than that.
 */
export type Claim = { lastSequence: number | null; isStale: boolean };

/**
 * Keeps which events were handled, in the user's own database, so that an event's id and what its handler does are stored
 * in one transaction: both, or neither. `Tx` is what a handler writes with.
 */
export type Inbox<Tx> = {
  /**
   * Runs `handle` in a transaction that also takes the event. False where the event was handled before: `handle` is not
   * run. Another delivery of the same event, or one of the same subject, waits until this one has ended. Rejects, with
   * nothing stored, where `handle` does or the database fails.
   */
  run(event: AnyEvent, handle: (tx: Tx, claim: Claim) => Promise<void>): Promise<boolean>;
  /** Makes the tables where they are missing. The same statements are in `sql/` for those who migrate by themselves. */
  createTables(): Promise<void>;
  /**
   * Forgets what was handled longer ago than `olderThanMs`, and returns how many events. What comes again after that is
   * handled again: keep it longer than the daemon's `retention`.
   */
  prune(options?: { olderThanMs?: number }): Promise<number>;
};

/** Whose events these are, where several programs share a database: each handles every event once. */
export const DEFAULT_CONSUMER = 'default';

/** Twice the daemon's default `retention`: nothing is sent again after that. */
export const DEFAULT_PRUNE_MS = 60 * 86_400_000;

/** How many rows are deleted in one transaction: others do not wait for long. */
export const PRUNE_BATCH = 5_000;
