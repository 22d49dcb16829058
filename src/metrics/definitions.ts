import { WATCHES } from '../domain/cadence/watch-rules.ts';
import { SURFACES } from '../domain/subjects/kinds.ts';
import { SUBJECT_KINDS } from '../domain/subjects/subject.ts';
import { HEALTH_STATES } from '../store/health.ts';
import { RECEIVER_STATES } from '../store/receivers.ts';
import { STORED_KINDS } from '../store/stored.ts';
import {
  ATTEMPT_OUTCOMES,
  DELIVERY_OUTCOMES,
  EVENT_TYPE_WORDS,
  POLL_OUTCOMES,
  QUEUE_STATES,
  RECORD_OUTCOMES,
  REPAIRS,
  REQUEST_ENDPOINTS,
  REQUEST_OUTCOMES,
  STALE_REASONS,
  SUBJECT_SERIES,
  SUBJECT_STATUSES,
} from './label-values.ts';
import type { MetricSources } from './sources.ts';

/**
 * The values that a label can have: a closed set, the receivers of the config (`receivers`), the queues that follow
 * from them (`queues`), the routes of the config (`routes`), the routes on which most was learned (`learned`), or the one
 * value that a process has (`one`).
 */
export type LabelValues = readonly string[] | 'receivers' | 'queues' | 'routes' | 'learned' | 'one';

/**
 * A metric. `series` replaces the label combinations that exist from the start (every one of closed sets).
 * `source` is where a gauge is read at scrape time: such a gauge says the same in every process on one Redis.
 */
export type Definition = {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
  labels: { readonly [label: string]: LabelValues };
  buckets?: readonly number[];
  series?: readonly { readonly [label: string]: string }[];
  source?: keyof MetricSources;
};

const LAG_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const REQUEST_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const ATTEMPT_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60];
const DETECTION_BUCKETS = [0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600];

const DELIVERED_BUCKETS = [
  0.5, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 1, 1.001, 1.01, 1.1,
];

/** Every metric of the program's own, in the order in which they are exposed and documented. */
export const DEFINITIONS = {
  buildInfo: {
    name: 'intentwatch_build_info',
    help: 'Always 1; the labels say which version runs on which Node.',
    type: 'gauge',
    labels: { version: 'one', node_version: 'one' },
  },
  time: {
    name: 'intentwatch_time_seconds',
    help: 'The clock of the process at the scrape, in seconds since 1970.',
    type: 'gauge',
    labels: {},
  },
  ready: {
    name: 'intentwatch_ready',
    help: '1 while the process is ready, as `/readyz` says.',
    type: 'gauge',
    labels: {},
  },
  configReloaded: {
    name: 'intentwatch_config_last_reload_successful',
    help: '1 when the config that was read last is the one that runs; 0 when it was refused, and the one before goes on.',
    type: 'gauge',
    labels: {},
  },
  configReloadedAt: {
    name: 'intentwatch_config_last_reload_success_timestamp_seconds',
    help: 'When the config that runs was read, at the start or by a reload, in seconds since 1970.',
    type: 'gauge',
    labels: {},
  },
  redisReachable: {
    name: 'intentwatch_redis_reachable',
    help: '1 while Redis answers on the connections of this process; 0 after 5 s without an answer.',
    type: 'gauge',
    labels: {},
  },
  redisPersistent: {
    name: 'intentwatch_redis_persistent',
    help: '1 when Redis keeps what it is given, in an append-only file or in dumps; 0 when it proves to keep nothing, or fails to write. Absent where it does not say. As of the last minute in which it was reachable.',
    type: 'gauge',
    labels: {},
    series: [],
  },

  subjects: {
    name: 'intentwatch_subjects',
    help: 'Subjects by kind and status. What the upstream has not shown yet is `unseen`, a wallet is `watched`.',
    type: 'gauge',
    labels: { kind: SUBJECT_KINDS, status: SUBJECT_STATUSES },
    series: SUBJECT_SERIES,
    source: 'subjects',
  },
  records: {
    name: 'intentwatch_records_total',
    help: 'Records read, by what they meant. A transition is `first` or `changed`; `superseded` ones are dropped and read again.',
    type: 'counter',
    labels: { kind: SUBJECT_KINDS, outcome: RECORD_OUTCOMES },
  },
  stale: {
    name: 'intentwatch_stale_answers_total',
    help: 'Answers behind what is known, by why: an older `updatedAt`, `unknown` for something known, a status that steps backward, a status or value that `returned`.',
    type: 'counter',
    labels: { reason: STALE_REASONS },
  },
  unreadable: {
    name: 'intentwatch_records_unreadable_total',
    help: 'Parts of answers that could not be read: records, and members of records that are not as the interface describes them; by the kind of subject that was asked for.',
    type: 'counter',
    labels: { kind: SUBJECT_KINDS },
  },
  events: {
    name: 'intentwatch_events_total',
    help: 'Events committed to the log by this process.',
    type: 'counter',
    labels: { type: EVENT_TYPE_WORDS },
  },
  detectionDelay: {
    name: 'intentwatch_detection_delay_seconds',
    help: "From the upstream's `updatedAt`, which is good to a second, to the commit of the event. Without events that only the clock made.",
    type: 'histogram',
    labels: { kind: SUBJECT_KINDS },
    buckets: DETECTION_BUCKETS,
  },

  deliveredRatio: {
    name: 'intentwatch_delivered_ratio',
    help: 'What was delivered of a transfer as a share of what its quote promised, by the pair of chains: only where the quote was handed over, and both are amounts of one token on one chain. The first 50 pairs; others count as `other`.',
    type: 'histogram',
    labels: { route: 'learned' },
    buckets: DELIVERED_BUCKETS,
  },

  polls: {
    name: 'intentwatch_polls_total',
    help: 'Polls of subjects, by how they ended. Only `answered` and `failed` ones asked the upstream.',
    type: 'counter',
    labels: { surface: SURFACES, kind: SUBJECT_KINDS, outcome: POLL_OUTCOMES },
  },
  pollLag: {
    name: 'intentwatch_poll_lag_seconds',
    help: 'How much later a poll was made than promised: than it was asked for or named, or than its longest wait. 0 for all others.',
    type: 'histogram',
    labels: { surface: SURFACES },
    buckets: LAG_BUCKETS,
  },
  pollCrashes: {
    name: 'intentwatch_poll_crashes_total',
    help: 'Polls whose process was gone before they ended, from the second time in a row on.',
    type: 'counter',
    labels: { kind: SUBJECT_KINDS },
  },
  crashing: {
    name: 'intentwatch_subjects_crashing',
    help: 'Subjects that were polled twice in a row when their process ended; they are polled one at a time.',
    type: 'gauge',
    labels: {},
    source: 'surfaces',
  },
  claimsReturned: {
    name: 'intentwatch_claims_returned_total',
    help: 'Claims whose lease ran out, as their process was gone or had lost them: their subjects went back into the plan.',
    type: 'counter',
    labels: { surface: SURFACES },
  },
  failing: {
    name: 'intentwatch_subjects_failing',
    help: 'Subjects whose polls fail again and again while others succeed; all together they get a tenth of the budget.',
    type: 'gauge',
    labels: { surface: SURFACES },
    series: [],
    source: 'surfaces',
  },
  longestWait: {
    name: 'intentwatch_longest_wait_seconds',
    help: 'How long ago the subject that waits longest was last looked at with success, by kind; 0 where none is tracked.',
    type: 'gauge',
    labels: { kind: SUBJECT_KINDS },
    series: [],
    source: 'waits',
  },
  overdue: {
    name: 'intentwatch_overdue_seconds',
    help: 'By how much the most overdue subject has waited longer than its longest wait: above 0 for long, the budget is too small for it.',
    type: 'gauge',
    labels: { surface: SURFACES },
    series: [],
    source: 'surfaces',
  },
  repairs: {
    name: 'intentwatch_repairs_total',
    help: 'What the checks of plans and deliveries had to repair.',
    type: 'counter',
    labels: { what: REPAIRS },
  },
  queueDepth: {
    name: 'intentwatch_queue_depth',
    help: 'Jobs in a queue: polls by surface, deliveries by receiver; queues of receivers outside this config count as `(removed)`.',
    type: 'gauge',
    labels: { queue: 'queues', state: QUEUE_STATES },
    source: 'queues',
  },

  requests: {
    name: 'intentwatch_upstream_requests_total',
    help: 'Requests to the upstream, by how they ended.',
    type: 'counter',
    labels: { endpoint: REQUEST_ENDPOINTS, outcome: REQUEST_OUTCOMES },
  },
  requestDuration: {
    name: 'intentwatch_upstream_request_duration_seconds',
    help: 'How long requests to the upstream took, body included.',
    type: 'histogram',
    labels: { endpoint: REQUEST_ENDPOINTS },
    buckets: REQUEST_BUCKETS,
  },
  paused: {
    name: 'intentwatch_upstream_paused_seconds_total',
    help: 'Time for which polls were paused after a `429`, counted when the pause begins; pauses that overlap count once.',
    type: 'counter',
    labels: { surface: SURFACES },
  },
  upstreamState: {
    name: 'intentwatch_upstream_state',
    help: '1 for the state in which a surface of the upstream is, 0 for the others.',
    type: 'gauge',
    labels: { surface: SURFACES, state: HEALTH_STATES },
    series: [],
    source: 'surfaces',
  },
  upstreamMoves: {
    name: 'intentwatch_upstream_state_changes_total',
    help: "Changes of a surface's state that this process saw first, by the state it came to.",
    type: 'counter',
    labels: { surface: SURFACES, state: HEALTH_STATES },
  },
  budget: {
    name: 'intentwatch_upstream_budget_requests_per_second',
    help: 'The budget of a surface, over all processes.',
    type: 'gauge',
    labels: { surface: SURFACES },
    series: [],
    source: 'surfaces',
  },
  budgetUsed: {
    name: 'intentwatch_upstream_budget_used_ratio',
    help: 'The share of the budget that was used of late, by all processes.',
    type: 'gauge',
    labels: { surface: SURFACES },
    series: [],
    source: 'surfaces',
  },
  price: {
    name: 'intentwatch_price',
    help: 'The price of a request, in seconds of delay of a fill: what a request saved of late where it was made. It is read off how fast polls are served and steers nothing; waits go with its square root.',
    type: 'gauge',
    labels: { surface: SURFACES },
    series: [],
    source: 'surfaces',
  },

  learnedSeconds: {
    name: 'intentwatch_learned_seconds',
    help: 'How long a stage takes on a route of the upstream, as learned: of those that come to its end, half and 99 % have ended by then. `*` stands for any chain or all routes. The 50 routes of which most was seen.',
    type: 'gauge',
    labels: { route: 'learned', stage: WATCHES, quantile: ['0.5', '0.99'] },
    series: [],
    source: 'learned',
  },
  learnedObservations: {
    name: 'intentwatch_learned_observations',
    help: 'How many ends of a stage on a route were seen; one seen a day ago counts half. Routes beyond the first 50 count as `other`.',
    type: 'gauge',
    labels: { route: 'learned', stage: WATCHES },
    series: [],
    source: 'learned',
  },
  learnedNewTransfers: {
    name: 'intentwatch_learned_new_transfers_per_second',
    help: 'How many new transfers a second are usual in a watched wallet, as learned from all of them.',
    type: 'gauge',
    labels: {},
    series: [],
    source: 'learned',
  },

  routeOutput: {
    name: 'intentwatch_route_output_ratio',
    help: 'What the best quote gives for 1 of what is paid, in token units; in base units where the decimals of a token are not known. Absent while no solver quotes.',
    type: 'gauge',
    labels: { route: 'routes' },
    series: [],
    source: 'routes',
  },
  routeFees: {
    name: 'intentwatch_route_fee_ratio',
    help: 'Fees of the best quote as a share of the amount: those in the source token of the input, those in the destination token of the output. Absent while no solver quotes.',
    type: 'gauge',
    labels: { route: 'routes' },
    series: [],
    source: 'routes',
  },
  routeFill: {
    name: 'intentwatch_route_fill_estimate_seconds',
    help: 'How long the best quote says that delivery takes. Absent while no solver quotes, or where the quote does not say.',
    type: 'gauge',
    labels: { route: 'routes' },
    series: [],
    source: 'routes',
  },
  routeSolvers: {
    name: 'intentwatch_route_solvers',
    help: 'How many solvers quote the route; absent until it was answered once. As of the last answer: see the state of the surface `quotes`.',
    type: 'gauge',
    labels: { route: 'routes' },
    series: [],
    source: 'routes',
  },

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
    help: 'Deliveries that ended without success and are still kept.',
    type: 'gauge',
    labels: { receiver: 'receivers' },
    source: 'deliveries',
  },
  dropped: {
    name: 'intentwatch_events_dropped_total',
    help: 'Events whose retention ended before a receiver got them.',
    type: 'counter',
    labels: { receiver: 'receivers' },
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
    help: '1 while a receiver has as many open deliveries as may be: its cursor stands still, and what comes waits in the event log.',
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
  foreign: {
    name: 'intentwatch_foreign_entries_total',
    help: 'Entries in Redis that had another shape than this version writes, by what they should be. They were dropped or written anew.',
    type: 'counter',
    labels: { what: STORED_KINDS },
  },
  setAside: {
    name: 'intentwatch_entries_set_aside_total',
    help: 'Entries of the event log that could not be read and were set aside: `intentwatch set-aside` lists them.',
    type: 'counter',
    labels: {},
  },

  scrapeErrors: {
    name: 'intentwatch_scrape_errors_total',
    help: 'Times at which a source of gauges failed or took longer than 0.8 s, as all do while Redis is away; its gauges are then absent.',
    type: 'counter',
    labels: {
      source: ['subjects', 'queues', 'deliveries', 'receivers', 'surfaces', 'waits', 'routes', 'learned'],
    },
  },
} as const satisfies Record<string, Definition>;

type Table = typeof DEFINITIONS;

/** The key of a metric in the table. */
export type MetricKey = keyof Table;

type KeysOf<Type extends Definition['type']> = {
  [Key in MetricKey]: Table[Key]['type'] extends Type ? Key : never;
}[MetricKey];

export type CounterKey = KeysOf<'counter'>;
export type GaugeKey = KeysOf<'gauge'>;
export type HistogramKey = KeysOf<'histogram'>;

/** The labels that a metric wants, all of them. */
export type LabelsOf<Key extends MetricKey> = { [Label in keyof Table[Key]['labels']]: string };
