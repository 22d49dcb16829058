import type { AnyEvent } from '../event.ts';
import type { FactKind } from '../event-types.ts';

/** How an event that the inbox takes for the first time relates to the events of its subject that were handled before. */
export type Claim = {
  /** What the event is about. */
  fact: FactKind;
  /** True when a newer event about the same fact was handled before. */
  isStale: boolean;
  /**
   * True when a newer status or update was handled before. Each of them has the whole record: `data.record` and
   * `data.transfer` of this one are older.
   */
  isRecordStale: boolean;
  /** The `sequence` of the newest event about the same fact that was handled before; null for none. */
  lastSequence: number | null;
};

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
   * Removes what was handled longer ago than `olderThanMs`, and returns how many events. What comes again after that is
   * handled again: keep it longer than the daemon's `retention`.
   */
  prune(options?: { olderThanMs?: number }): Promise<number>;
};

/** Whose events these are, where several programs share a database: each handles every event once. */
export const DEFAULT_CONSUMER = 'default';

/** Twice the daemon's default `retention`: nothing is sent again after that. */
export const DEFAULT_PRUNE_MS = 60 * 86_400_000;

/** The number of rows that are deleted in one transaction: others do not wait for long. */
export const PRUNE_BATCH = 5_000;
