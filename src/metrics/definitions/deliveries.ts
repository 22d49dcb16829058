import { UNMATCHED_REASONS } from '../../domain/events/event-types.ts';
import { RECEIVER_STATES } from '../../store/receivers.ts';
import { DROP_REASONS } from '../../store/waiting-events.ts';
import type { Definition } from '../definition.ts';
import { ATTEMPT_OUTCOMES, DELIVERY_OUTCOMES } from '../label-values.ts';

const ATTEMPT_BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60];

const DELAY_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200, 43_200, 259_200,
];

/** Metrics of receivers and their deliveries. */
export const DELIVERIES = {
  receiverInfo: {
    name: 'intentwatch_receiver_info',
    help: 'Always 1, for each receiver of the config.',
    type: 'gauge',
    labels: { receiver: 'receivers', type: 'one' },
  },
  opened: {
    name: 'intentwatch_deliveries_opened_total',
    help: 'Deliveries that the relay opened: one per event and receiver, and one per replay of it.',
    type: 'counter',
    labels: { receiver: 'receivers' },
  },
  deliveries: {
    name: 'intentwatch_deliveries_total',
    help: 'Deliveries that ended, by how.',
    type: 'counter',
    labels: { receiver: 'receivers', outcome: DELIVERY_OUTCOMES },
  },
  deliveryDelay: {
    name: 'intentwatch_delivery_delay_seconds',
    help: 'From the timestamp of an event to the time at which the receiver had accepted it, waits and failed attempts included. Without replays.',
    type: 'histogram',
    labels: { receiver: 'receivers' },
    buckets: DELAY_BUCKETS,
    exemplars: true,
  },
  oldestUndelivered: {
    name: 'intentwatch_oldest_undelivered_event_seconds',
    help: 'How old the oldest event is that a receiver has not accepted: the first of its open deliveries, else the first that it is owed among 100 entries of the log behind its cursor. 0 where none is.',
    type: 'gauge',
    labels: { receiver: 'receivers' },
    source: 'receivers',
  },
  attempts: {
    name: 'intentwatch_delivery_attempts_total',
    help: 'Attempts of deliveries: `failed` ones are tried again, `rejected` ones are not.',
    type: 'counter',
    labels: { receiver: 'receivers', outcome: ATTEMPT_OUTCOMES },
  },
  attemptDuration: {
    name: 'intentwatch_delivery_attempt_duration_seconds',
    help: 'How long attempts took.',
    type: 'histogram',
    labels: { receiver: 'receivers' },
    buckets: ATTEMPT_BUCKETS,
    exemplars: true,
  },
  refusedRecipients: {
    name: 'intentwatch_mail_recipients_refused_total',
    help: 'Recipients that did not get a mail since the mail server refused them for good, while it accepted the mail for others.',
    type: 'counter',
    labels: { receiver: 'receivers' },
  },
  pending: {
    name: 'intentwatch_deliveries_pending',
    help: 'Open deliveries. A receiver that left the config is shown as long as it has a backlog.',
    type: 'gauge',
    labels: { receiver: 'receivers' },
    source: 'deliveries',
  },
  deadLetters: {
    name: 'intentwatch_dead_letters',
    help: 'Deliveries that ended without success and are still stored.',
    type: 'gauge',
    labels: { receiver: 'receivers' },
    source: 'deliveries',
  },
  dropped: {
    name: 'intentwatch_events_dropped_total',
    help: 'Events that were dropped before a receiver got them: their retention ended, or Redis has lost them. `receiver.events_dropped` names them.',
    type: 'counter',
    labels: { receiver: 'receivers' },
  },
  unmatched: {
    name: 'intentwatch_events_unmatched_total',
    help: 'Events that no receiver gets, by why: `no-receiver` (a subscription names one that is not there), `not-in-config` (no subscription that leads to its subject is in the config), `filtered` (by `events` and filters), `pull-only`. `intentwatch undelivered` lists the first two.',
    type: 'counter',
    labels: { reason: UNMATCHED_REASONS },
  },
  suspendedSubjects: {
    name: 'intentwatch_suspended_subjects',
    help: 'What left the config and is suspended, or on its way back: subjects, each once per subscription that named it.',
    type: 'gauge',
    labels: {},
    source: 'suspensions',
  },
  withheld: {
    name: 'intentwatch_suspended_events',
    help: 'Events that wait for what is suspended. They are delivered when it comes back into the config within `removal.graceSpan`.',
    type: 'gauge',
    labels: {},
    source: 'suspensions',
  },
  withheldDropped: {
    name: 'intentwatch_suspended_events_dropped_total',
    help: 'Events that waited in vain, by why: `span-over` (`removal.graceSpan`), `removed` (`intentwatch remove`), `retention`. `intentwatch suspended --dropped` lists them.',
    type: 'counter',
    labels: { reason: DROP_REASONS },
  },
  receiverState: {
    name: 'intentwatch_receiver_state',
    help: '1 for the state in which a receiver is, 0 for the others. While it is `resting` or `failing` it is tried with one delivery at a time; while `disabled`, `enabling` or `paused`, with none.',
    type: 'gauge',
    labels: { receiver: 'receivers', state: RECEIVER_STATES },
    series: [],
    source: 'receivers',
  },
  receiverFull: {
    name: 'intentwatch_receiver_full',
    help: '1 while a receiver has as many open deliveries as may be: its cursor does not move, and what comes waits in the event log.',
    type: 'gauge',
    labels: { receiver: 'receivers' },
    source: 'receivers',
  },
  oldestDelivery: {
    name: 'intentwatch_oldest_delivery_seconds',
    help: 'How long the oldest open delivery has been open; 0 where none is.',
    type: 'gauge',
    labels: { receiver: 'receivers' },
    source: 'receivers',
  },
  nextAttempt: {
    name: 'intentwatch_next_attempt_seconds',
    help: 'How long until a receiver that rests or fails is tried again; 0 for others.',
    type: 'gauge',
    labels: { receiver: 'receivers' },
    source: 'receivers',
  },
  relayHolding: {
    name: 'intentwatch_relay_holding',
    help: '1 while this process relays events to deliveries; one process at a time does.',
    type: 'gauge',
    labels: {},
  },
  relayStopped: {
    name: 'intentwatch_relay_stopped',
    help: '1 while this process leaves the relay to others: the log goes on with an entry that only a newer version can read.',
    type: 'gauge',
    labels: {},
  },
  quarantine: {
    name: 'intentwatch_entries_quarantined_total',
    help: 'Entries of the event log that could not be read and were quarantined: `intentwatch quarantine` lists them.',
    type: 'counter',
    labels: {},
  },
} as const satisfies Record<string, Definition>;
