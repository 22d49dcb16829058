import { EventEmitter } from 'node:events';
import type { Logger } from 'pino';
import type { EndpointCall } from './chains/endpoint.ts';
import type { FILE_STATES, RemovedKind } from './config/sections/process.ts';
import type { BreakKind } from './domain/books/report-schema.ts';
import { BoundedMap, bytesOfTexts, CACHES } from './domain/caches.ts';
import type { Decision } from './domain/changes/decision.ts';
import type { Comparison } from './domain/changes/second-source.ts';
import type { Event } from './domain/events/event.ts';
import type { UnmatchedReason } from './domain/events/event-types.ts';
import type { ReservedKind, SubjectKind } from './domain/subjects/subject.ts';
import type { TransferMove } from './domain/transfers/transfer-move.ts';
import { loggedStatus, loggedType } from './log.ts';
import type { ReceiverMove } from './store/receivers.ts';
import type { ForeignEntry } from './store/stored.ts';
import type { SuspendedDropReason } from './store/waiting-events.ts';

/**
 * End of a poll: with records, with a failure of the upstream, without a request as no subject remains, or aborted.
 * `verified`: a quote was verified; that gives no information about the endpoint group that serves it.
 */
export type PollOutcome = 'answered' | 'verified' | 'failed' | 'ended' | 'aborted';

/** Result for a record beyond the decision: a commit can find that another process was faster. */
export type RecordOutcome = Decision['outcome'] | 'superseded';

export type RepairKind = 'poll-missing' | 'delivery-missing' | 'count-wrong';

type RemovedCounts = Readonly<Record<RemovedKind, { removed: number }>>;

/** Internal events for observers only: metrics, logs, the demo, tests. Durations in seconds. */
export type SignalMap = {
  'upstream.answered': [{ endpoint: string; outcome: string; durationSeconds: number }];
  'upstream.moved': [{ endpointGroup: string; before: string; after: string; reason: string }];
  'upstream.paused': [{ endpointGroup: string; seconds: number }];
  'poll.ended': [
    { endpointGroup: string; kind: SubjectKind; outcome: PollOutcome; lagSeconds: number | null },
  ];
  'poll.crashed': [{ subject: string; crashes: number }];
  'claims.returned': [{ endpointGroup: string; count: number }];
  'record.decided': [{ subject: string; kind: SubjectKind; outcome: RecordOutcome; reason: string | null }];
  /** The open source answered about a transfer whose status v1 decides. */
  'status.compared': [{ result: Comparison }];
  /** An unknown record was stored as history: it ended so long before the poll of its wallet that it was known then. */
  'record.expired': [{ subject: string }];
  'transfer.delivered': [{ route: string; ratio: number }];
  'transfer.moved': [{ move: TransferMove; eventId: string }];
  /** An answer had `count` records of a reserved kind. `id` is that of the first, as it may be logged. */
  'record.reserved': [{ kind: ReservedKind; id: string; count: number }];
  /** A record of a wallet is too large to be read; `id` is set where it could be read. */
  'record.too-large': [{ wallet: string; id: string | null; reason: string }];
  /** The budget lets cursors of a wallet expire; this was reported. */
  'cursor.expired': [{ wallet: string; neededRequestsPerSecond: number }];
  'record.unreadable': [{ where: string; reason: string }];
  'event.committed': [{ event: Event; kind: SubjectKind }];
  'delivery.opened': [{ receiver: string; eventId: string; eventType: string }];
  'delivery.attempted': [
    {
      receiver: string;
      /** Subject of the event; null where it cannot be read. */
      subject: string | null;
      eventId: string;
      eventType: string;
      attempt: number;
      outcome: 'delivered' | 'failed' | 'rejected';
      durationSeconds: number;
      reason: string;
      /** Recipients of a mail that the server refused for good, and that do not get it. */
      refused: number;
    },
  ];
  'delivery.ended': [
    {
      receiver: string;
      eventId: string;
      eventType: string;
      outcome: 'delivered' | 'dead';
      /** From the event to its acceptance; null where it was not accepted, or is a replay. */
      delaySeconds: number | null;
    },
  ];
  'receiver.moved': [{ receiver: string; move: ReceiverMove; reason: string }];
  'relay.moved': [{ holding: boolean }];
  'event.unmatched': [{ reason: UnmatchedReason }];
  'suspension.ended': [{ reason: SuspendedDropReason; events: number }];
  'relay.stopped': [{ stopped: boolean }];
  'store.foreign': [ForeignEntry];
  'relay.quarantined': [{ entry: string }];
  /** An error that neither the upstream nor a receiver made. What failed is tried again. */
  'error.internal': [{ part: InternalPart }];
  'repair.done': [{ what: RepairKind; subject: string }];
  'books.fed': [{ ingested: number; readMs: number }];
  'books.broken': [{ kind: BreakKind }];
  'books.failed': [{ reason: string }];
  /** A day was mailed, or `skipped`; a try `failed`; a recipient is `dead`: it does not get the mail. */
  'books.mail': [{ outcome: 'sent' | 'failed' | 'dead' | 'skipped' }];
  /** The config file was read: its state against the running config, and its removals where they are many. */
  'config.moved': [{ state: (typeof FILE_STATES)[number]; atMs: number; removal: RemovedCounts | null }];
  /** The clocks were compared; `isHeld`: reminders and book closings wait for them. */
  'clocks.compared': [{ isHeld: boolean }];
  'epoch.checked': [{ epoch: number }];
  'check.ended': [{ chainId: string; state: string; route: string; lagSeconds: number | null }];
  'check.failed': [{ chainId: string }];
  /** Entries of the log were removed before the feed of checks read them. */
  'checks.missed': [{ reason: string }];
  'rpc.called': [EndpointCall];
  'receiver.events-dropped': [{ receiver: string; count: number }];
};

/** A typed emitter. Listeners decide nothing: the daemon behaves the same without them. */
export class Signals extends EventEmitter<SignalMap> {}

/** Log lines of errors that neither the upstream nor a receiver made, and the parts by which these are counted. */
const INTERNAL_LINES = {
  'poll.error': 'poll',
  'dispatch.error': 'dispatch',
  'record.not_stored': 'record',
  'relay.error': 'relay',
  'delivery.error': 'delivery',
  'reconcile.error': 'reconcile',
  'repair.error': 'repair',
  'checks.error': 'check',
  'checks.feed_error': 'check',
} as const;

export type InternalPart = (typeof INTERNAL_LINES)[keyof typeof INTERNAL_LINES];

/** Logs an error of the daemon itself, and counts it. */
export function reportError(
  { signals, log }: { signals: Signals; log: Logger },
  line: keyof typeof INTERNAL_LINES,
  about: { error: unknown; [name: string]: unknown },
): void {
  log.error(about, line);
  signals.emit('error.internal', { part: INTERNAL_LINES[line] });
}

/** Interval at which skipped records of one reserved kind are logged; the metric counts each. */
const RESERVED_EVERY_MS = 60_000;

/** Logs the signals: every event, every unreadable entry, and skipped records. */
export function logSignals(signals: Signals, log: Logger): void {
  const foreign = new BoundedMap<string, true>({
    ...CACHES.foreignEntries,
    bytesOf: (where) => bytesOfTexts(where),
  });
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

/** Logs an unreadable entry once per place: every poll can read it again. */
function logForeign(
  found: ForeignEntry,
  { foreign, log }: { foreign: BoundedMap<string, true>; log: Logger },
): void {
  if (foreign.has(found.where) || !foreign.fits(found.where, true)) return;
  foreign.set(found.where, true);
  log.warn(found, 'store.foreign');
}
