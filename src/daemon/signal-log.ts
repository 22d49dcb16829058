import type { Logger } from 'pino';
import type { Event } from '../domain/events/event.ts';
import type { Signals } from '../signals.ts';
import type { ForeignEntry } from '../store/stored.ts';

/** How many places with entries of another shape are named in the log; the metric counts on. */
const MOST_FOREIGN_LOGGED = 1_000;

/** Writes into the log what the parts tell each other: every event, and where an entry of another shape stands. */
export function logSignals(signals: Signals, log: Logger): void {
  const foreign = new Set<string>();
  signals.on('event.committed', ({ event }) => logEvent(event, log));
  signals.on('store.foreign', (found) => logForeign(found, { foreign, log }));
}

function logEvent({ id, type, data }: Event, log: Logger): void {
  const { subject, sequence, status, previousStatus, changes, detectionDelaySeconds } = data;
  const line = { subject: subject.id, eventId: id, eventType: type, sequence, status, previousStatus };
  log.info({ ...line, changes, detectionDelaySeconds }, 'event.committed');
}

/** Says once of each place that what stands there has another shape: it can be read in every poll. */
function logForeign(found: ForeignEntry, { foreign, log }: { foreign: Set<string>; log: Logger }): void {
  if (foreign.has(found.where) || foreign.size >= MOST_FOREIGN_LOGGED) return;
  foreign.add(found.where);
  log.warn(found, 'store.foreign');
}
