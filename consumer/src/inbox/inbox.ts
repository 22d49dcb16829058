import type { AnyEvent } from '../event.ts';
import type { FactKind } from '../event-types.ts';

/** Position of a first-time event among the handled events of its subject. */
export type Claim = {
  /** The fact of the event. */
  fact: FactKind;
  /** True when a newer event about the same fact was handled before. */
  isStale: boolean;
  /** True when a newer status or update was handled: `data.record` and `data.transfer` of this event are older. */
  isRecordStale: boolean;
  /** The `sequence` of the newest handled event about the same fact; null for none. */
  lastSequence: number | null;
};

/**
 * Stores handled events in the user's database, in one transaction with the handler's writes. `Tx` is the handler's
 * connection.
 */
export type Inbox<Tx> = {
  /**
   * Runs `handle` in a transaction that also claims the event. False where the event was handled before: `handle` is not run.
   * Another delivery of the same event, or one of the same subject, waits until this one has ended. Rejects, with nothing
   * stored, where `handle` does or the database fails.
   */
  run(event: AnyEvent, handle: (tx: Tx, claim: Claim) => Promise<void>): Promise<boolean>;
  /** Makes missing tables. `sql/` has the same statements for a migration tool. */
  createTables(): Promise<void>;
  /**
   * Removes events that were handled longer ago than `olderThanMs`, and returns their number. A removed event that is sent
   * again is handled again: store them longer than the daemon's `retention`.
   */
  prune(options?: { olderThanMs?: number }): Promise<number>;
};

/** Default owner of events, where several programs share a database: each handles every event once. */
export const DEFAULT_CONSUMER = 'default';

/** Twice the daemon's default `retention`: nothing is sent again after that. */
export const DEFAULT_PRUNE_MS = 60 * 86_400_000;

/** Number of rows that one transaction deletes, so that others do not wait for long. */
export const PRUNE_BATCH = 5_000;
