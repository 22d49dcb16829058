import type { JsonObject } from '../json.ts';
import type { Unconfirmed } from '../subjects/record.ts';

/** A transition, named: what an event says beyond its id, subject and time. */
export type Transition = {
  type: string;
  status: string;
  previousStatus: string | null;
  changes: string[];
  skipped: boolean;
  regression: boolean;
};

/**
 * Why an answer is behind what is known: an older `updatedAt`; `unknown` for what is known; at an equal or missing
 * `updatedAt` a step backward, or a status or value that the subject has left already, as replicas that lag show them.
 */
export type StaleReason = 'older' | 'unknown' | 'backward' | 'returned';

/**
 * An event that no answer of the upstream's made. `flag` is set in the snapshot with the event, so that it comes once;
 * `raw` is what its record has beside that of the snapshot.
 */
export type FlaggedEvent = { flag: string; transition: Transition; raw: JsonObject };

/** What a snapshot becomes: the record to store and the time it carries. */
export type Accepted = { status: string; updatedAt: number | null; record: JsonObject };

/**
 * What an answer means for a subject.
 *
 * - `history`: first seen, and it happened before anyone asked: stored without an event.
 * - `first`: first sight that is an event.
 * - `unchanged`: nothing to tell; `accepted` is what to store where something silent moved, else null.
 * - `stale`: an answer behind what is known. `unconfirmed` is what an exact poll has to remember; null for a page.
 * - `changed`: one event.
 */
export type Decision =
  | { outcome: 'history'; accepted: Accepted }
  | { outcome: 'first'; accepted: Accepted; transition: Transition }
  | { outcome: 'unchanged'; accepted: Accepted | null }
  | { outcome: 'stale'; reason: StaleReason; unconfirmed: Unconfirmed | null }
  | { outcome: 'changed'; accepted: Accepted; transition: Transition };
