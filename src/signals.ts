import { EventEmitter } from 'node:events';
import type { Logger } from 'pino';
import type { EndpointCall } from './chains/endpoint.ts';
import type { FILE_STATES, RemovedKind } from './config/sections/process.ts';
import type { BreakKind } from './domain/books/report-schema.ts';
import type { Decision } from './domain/changes/decision.ts';
import type { Event } from './domain/events/event.ts';
import type { UnmatchedReason } from './domain/events/unmatched.ts';
import type { ReservedKind, SubjectKind } from './domain/subjects/subject.ts';
import type { TransferMove } from './domain/transfers/transfer-move.ts';
import { loggedStatus, loggedType } from './log.ts';
import type { ReceiverMove } from './store/receivers.ts';
import type { ForeignEntry } from './store/stored.ts';
import type { DropReason } from './store/suspensions.ts';

/** How a poll ended: with records, with a failure of the upstream's, without a request as nothing is left, or cut off. */
/** `verified`: a quote was; that says nothing of the endpoint group at which it is requested. */
export type PollOutcome = 'answered' | 'verified' | 'failed' | 'ended' | 'aborted';

/** What was done with a record beyond the decision: a commit can find that somebody was faster. */
export type RecordOutcome = Decision['outcome'] | 'superseded';

export type RepairKind = 'poll-missing' | 'delivery-missing' | 'count-wrong';

/** The number of wallets, other subjects and receivers a config removes. */
type RemovedCounts = Readonly<Record<RemovedKind, { removed: number }>>;

/** What happens inside the daemon, for those who only watch: metrics, logs, the demo, tests. Durations in seconds. */
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
  /** An unknown record was stored as history: it ended so long before its wallet was read that it was known then. */
  'record.forgotten': [{ subject: string }];
  'transfer.delivered': [{ route: string; ratio: number }];
  'transfer.moved': [{ move: TransferMove; eventId: string }];
  /** An answer had so many records of a reserved kind. `id` is that of the first, as it may be logged. */
  'record.reserved': [{ kind: ReservedKind; id: string; count: number }];
  /** A record of a wallet was found too large to be read; `id`: where that could be read. */
  'record.too-large': [{ wallet: string; id: string | null; reason: string }];
  /** Cursors of a wallet expire at the rate that the budget leaves: it was reported. */
  'cursor.expired': [{ wallet: string; neededRequestsPerSecond: number }];
  'record.unreadable': [{ where: string; reason: string }];
  'event.committed': [{ event: Event; kind: SubjectKind }];
  'delivery.opened': [{ receiver: string; eventId: string; eventType: string }];
  'delivery.attempted': [
    {
      receiver: string;
      /** What the event is about; null where it cannot be read. */
      subject: string | null;
      eventId: string;
      eventType: string;
      attempt: number;
      outcome: 'delivered' | 'failed' | 'rejected';
      durationSeconds: number;
      reason: string;
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
  /** An event that no receiver gets was counted. */
  'event.unmatched': [{ reason: UnmatchedReason }];
  /** Waiting events were dropped with what they waited for. */
  'suspension.ended': [{ reason: DropReason; events: number }];
  'relay.stopped': [{ stopped: boolean }];
  'store.foreign': [ForeignEntry];
  'relay.quarantined': [{ entry: string }];
  'repair.done': [{ what: RepairKind; subject: string }];
  'books.fed': [{ taken: number; readMs: number }];
  'books.broken': [{ kind: BreakKind }];
  'books.failed': [{ reason: string }];
  /** The config file was read: what it is to the config that runs, and what it removes where that is much. */
  'config.moved': [{ state: (typeof FILE_STATES)[number]; atMs: number; removal: RemovedCounts | null }];
  /** The clocks were compared; `isHeld`: reminders and closings of the books wait for them. */
  'clocks.compared': [{ isHeld: boolean }];
  /** The epoch of the data was looked at. */
  'epoch.looked': [{ epoch: number }];
  'check.ended': [{ chainId: string; state: string; corridor: string; lagSeconds: number | null }];
  /** A check ended in an error of its own, and is requested again later. */
  'check.failed': [{ chainId: string }];
  /** Entries of the log went away before the feed of checks read them. */
  'checks.missed': [{ reason: string }];
  'rpc.called': [EndpointCall];
  'receiver.events-dropped': [{ receiver: string; count: number }];
};

/** A typed emitter. Whoever listens decides nothing: the daemon behaves the same without listeners. */
export class Signals extends EventEmitter<SignalMap> {}

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
