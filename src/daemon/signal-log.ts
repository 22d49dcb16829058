import type { Logger } from 'pino';
import type { Event } from '../domain/events/event.ts';
import type { ReservedKind } from '../domain/subjects/subject.ts';
import { loggedStatus, loggedType } from '../log.ts';
import type { Signals } from '../signals.ts';
import type { ForeignEntry } from '../store/stored.ts';

/** The interval at which a skipped record of one reserved kind is logged; the metric counts each. */
const RESERVED_EVERY_MS = 60_000;

/** The number of places with entries of another shape are named in the log; the metric counts on. */
const MOST_FOREIGN_LOGGED = 1_000;

/** Writes into the log what the parts tell each other: every event, and where an entry of another shape stands, records that are skipped. */
export function logSignals(signals: Signals, log: Logger): void {
  const foreign = new Set<string>();
  signals.on('event.committed', ({ event }) => logEvent(event, log));
  const reservedAtMs = new Map<ReservedKind, number>();
  signals.on('record.reserved', ({ kind, id }) => {
    const nowMs = performance.now();
    if (nowMs - (reservedAtMs.get(kind) ?? Number.NEGATIVE_INFINITY) < RESERVED_EVERY_MS) return;
    reservedAtMs.set(kind, nowMs);
    log.warn({ kind, id }, 'record.reserved');
  });
  signals.on('store.foreign', (found) => logForeign(found, { foreign, log }));
}

function logEvent({ id, type, data }: Event, log: Logger): void {
  const { subject, sequence, status, previousStatus, changes, detectionDelaySeconds } = data;
  const line = {
    subject: subject.id,
    eventId: id,
    eventType: loggedType(type, status),
    sequence,
    status: loggedStatus(status),
    previousStatus: loggedStatus(previousStatus),
  };
  log.info({ ...line, changes, detectionDelaySeconds }, 'event.committed');
}

/** Says once of each place that what stands there has another shape: it can be read in every poll. */
function logForeign(found: ForeignEntry, { foreign, log }: { foreign: Set<string>; log: Logger }): void {
  if (foreign.has(found.where) || foreign.size >= MOST_FOREIGN_LOGGED) return;
  foreign.add(found.where);
  log.warn(found, 'store.foreign');
}
