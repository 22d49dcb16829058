import type { BreakKind } from '../domain/books/breaks.ts';
import type { EventLog } from '../store/event-log.ts';
import { compareEntries } from '../store/log-entry.ts';
import type { Place } from './book-store.ts';

/** A break, and where the books go on behind it. */
export type Break = { kind: BreakKind; detail: string; log: string; entry: string };

/** How far behind its last entry a log is read again that was set back: what is known already is not taken in twice. */
const AGAIN_MS = 60_000;

/** Holds the place of the books against the log. Null where it goes on. */
export async function findBreak(place: Place, events: EventLog): Promise<Break | null> {
  const [log, trimmed] = await Promise.all([events.ensureName(), events.trimmed()]);
  if (log !== place.log) {
    const detail = `found the event log ${log}, expected ${place.log}, read up to ${place.entry}: it was lost with its Redis. What happened between is not in the books but for what is still under way`;
    return { kind: 'other-log', detail, log, entry: trimmed ?? '0-0' };
  }
  if (trimmed !== null && compareEntries(place.entry, trimmed) < 0) {
    const detail = `events from ${timeOf(place.entry)} to ${timeOf(trimmed)} left the log (retention) before the books read them`;
    return { kind: 'trimmed', detail, log, entry: trimmed };
  }
  if (place.entry === '0-0' || place.entry === trimmed || (await events.at(place.entry)) !== null)
    return null;
  const [last] = (await events.before(place.entry, 1)).entries;
  const fromMs = Math.max(0, Number((last?.id ?? '0-0').split('-')[0]) - AGAIN_MS);
  const detail = `the entry ${place.entry}, which the books had read, is not in the log any more: its Redis was set back to ${last === undefined ? 'its beginning' : timeOf(last.id)}`;
  const again = `${fromMs}-0`;
  const entry = trimmed !== null && compareEntries(again, trimmed) < 0 ? trimmed : again;
  return { kind: 'lost', detail, log, entry };
}

function timeOf(entry: string): string {
  return new Date(Number(entry.split('-')[0])).toISOString();
}
