import type { JsonObject } from './json.ts';
import type { SubjectId } from './subject.ts';

/**
 * What the upstream said about a subject, parsed. `updatedAt` is in Unix seconds; null when the answer had none.
 * `said` is the record whole, unknown members included; `unreadable` lists the top-level members of `said` that did
 * not have the shape of the interface. `names` are the intent hashes that the record mentions.
 */
export type UpstreamRecord = {
  subject: SubjectId;
  status: string;
  updatedAt: number | null;
  names: string[];
  said: JsonObject;
  unreadable: string[];
};

/** A stale answer that exact look-ups keep giving: what of it they repeat, and since when (Redis time, ms). */
export type Doubt = { key: string; sinceMs: number };

/**
 * The last accepted record of a subject.
 *
 * `version` counts snapshots, `sequence` counts events, `commit` is the number that the commit counter had when this
 * snapshot was written. `pendingSince` is the first `updatedAt` (Unix seconds) seen in the present stage of waiting.
 * `flags` are the events of time that were already made. `told`: there was an event that everybody who had claimed the
 * subject was entitled to; false while all that happened was history. `former` are the values that it has left at its
 * present `updatedAt`, as hashes (see `formerAfter`). Times in ms are Redis time.
 */
export type Snapshot = {
  version: number;
  sequence: number;
  commit: number;
  status: string;
  updatedAt: number | null;
  record: JsonObject;
  observedAtMs: number;
  changedAtMs: number;
  pendingSince: number | null;
  flags: string[];
  doubt: Doubt | null;
  former: string[];
  told: boolean;
  /** It could not be read whole: its record is not known, and its status only where it is not empty. */
  salvaged?: true;
};
