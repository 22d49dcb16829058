import type { Event } from '../../domain/events/event.ts';
import type { EventLog } from '../../store/event-log.ts';
import { eventOf, isOfNewerVersion, type LogEntry, type UnreadableEntry } from '../../store/log-entry.ts';
import type { RawEntry } from '../../store/quarantine.ts';

/**
 * An event of the log with its place and its matching claims; null for the operator's events. `at` is the entry that states
 * the match; a subscribers entry is behind the event's. `withheld` are the suspended claims for which it waited.
 * `isSuspended`: it waited, and these are the claims that are back.
 */
export type Fact = {
  event: Event;
  place: string;
  roots: readonly string[] | null;
  at: string;
  withheld: readonly string[];
  isSuspended: boolean;
};

/** A fact for a receiver that gets all events: with the claims for which it waited. */
export function wholeFact(fact: Fact): Fact {
  if (fact.roots === null || fact.withheld.length === 0) return fact;
  return { ...fact, roots: [...fact.roots, ...fact.withheld] };
}

/** An event that was released to claims, at an entry, after it had expired from the log. */
export type GoneEvent = { at: string; eventId: string; roots: readonly string[] };

/**
 * The content of some log entries. `read` and `last` state how far they were read. `unreadable` are entries that no version
 * can read. `gone` are entries whose event expired from the log while it waited. `stoppedBy` is the entry behind `last` that
 * only a newer version can read. `isCut`: it ends with `last` for its size, and more of these entries can be read.
 */
export type LogBatch = {
  facts: Fact[];
  unreadable: (RawEntry & { reason: string })[];
  gone: GoneEvent[];
  read: number;
  last: string | null;
  stoppedBy: UnreadableEntry | null;
  isCut: boolean;
};

/** Thrown when the relay stops before an entry that only a newer version can read. */
export class NewerEntryError extends Error {
  override readonly name = 'NewerEntryError';
  readonly entry: UnreadableEntry;

  constructor(entry: UnreadableEntry) {
    super(`entry ${entry.id} of the log is of version ${entry.version} and cannot be read: ${entry.reason}`);
    this.entry = entry;
  }
}

/**
 * Reads log entries up to the first that only a newer version can read. Subscribers entries are small and name events that may
 * be large: the batch ends before one whose event does not fit in (see EventLog.atFirst). It reads at least one.
 */
export async function readBatch(entries: readonly LogEntry[], events: EventLog): Promise<LogBatch> {
  const batch: LogBatch = {
    facts: [],
    unreadable: [],
    gone: [],
    read: 0,
    last: null,
    stoppedBy: null,
    isCut: false,
  };
  const places = entries.flatMap((entry) => (entry.kind === 'subscribers' ? [entry.entry] : []));
  const named = await events.atFirst(places);
  for (const entry of entries) {
    if (entry.kind === 'subscribers' && named.length === 0) return { ...batch, isCut: true };
    const meant = entry.kind === 'subscribers' ? (named.shift() ?? null) : entry;
    if (meant?.kind === 'unreadable') {
      if (isOfNewerVersion(meant)) return { ...batch, stoppedBy: meant };
      batch.unreadable.push(entry.kind === 'subscribers' ? { ...entry, reason: meant.reason } : meant);
    }
    // Null for a late subscribers entry of an event that has expired from the log: there is nothing to deliver.
    const event = eventOf(meant);
    if (event !== null) batch.facts.push(factOf(entry, event));
    else if (entry.kind === 'subscribers' && entry.isSuspended) {
      batch.gone.push({ at: entry.id, eventId: entry.eventId, roots: entry.roots });
    }
    batch.read += 1;
    batch.last = entry.id;
  }
  return batch;
}

function factOf(entry: LogEntry, event: Event): Fact {
  const place = entry.kind === 'subscribers' ? entry.entry : entry.id;
  const claimKeys = entry.kind === 'event' || entry.kind === 'subscribers' ? entry.roots : null;
  const withheld = entry.kind === 'event' ? entry.withheld : [];
  const isSuspended = entry.kind === 'subscribers' && entry.isSuspended;
  return { event, place, roots: claimKeys, at: entry.id, withheld, isSuspended };
}
