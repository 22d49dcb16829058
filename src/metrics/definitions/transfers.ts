import { BREAKS } from '../../domain/books/report-schema.ts';
import { SUBJECT_KINDS } from '../../domain/subjects/subject.ts';
import {
  FILL_OUTCOMES,
  OPEN_STATES,
  SETTLEMENT_OUTCOMES,
  VOLUME_OUTCOMES,
} from '../../domain/transfers/transfer-move.ts';
import { CHECK_STATES } from '../../store/check-record.ts';
import type { Definition } from '../definition.ts';
import { EVENT_TYPE_WORDS, MAIL_OUTCOMES, PROOF_STATES, RPC_OUTCOMES } from '../label-values.ts';

const DETECTION_BUCKETS = [0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600];

const FILL_BUCKETS = [2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 14_400, 86_400];

const SETTLEMENT_BUCKETS = [5, 30, 60, 300, 900, 3_600, 14_400, 86_400, 604_800];

const DELIVERED_BUCKETS = [
  0.5, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 1, 1.001, 1.01, 1.1,
];

/** Metrics of transfers, their money and their time. */
export const TRANSFERS = {
  transfersOpen: {
    name: 'intentwatch_transfers_open',
    help: 'Transfers that are tracked and have not come to an end, by state: `pending` ones wait to be filled, `overdue` ones were reported to have waited too long, the others need somebody. The 50 routes that have most; others count as `other`.',
    type: 'gauge',
    labels: { state: OPEN_STATES, route: 'learned' },
    series: [],
    source: 'transfers',
  },
  transfersOpenValue: {
    name: 'intentwatch_transfers_open_value_tokens',
    help: 'What these transfers have sent, in token units, by state and symbol of the source token. Tokens whose decimals are not certain are left out. Added up to the last base unit, shown to 15 digits. Tokens that are neither under `tokens` in the config nor packaged count as `other`, whatever the upstream calls them; so do those beyond 10 symbols.',
    type: 'gauge',
    labels: { state: OPEN_STATES, token: 'tokens' },
    series: [],
    source: 'transfers',
  },
  transferOldest: {
    name: 'intentwatch_transfer_oldest_seconds',
    help: 'How long the oldest of these transfers has been in its state: since its funding while it is `pending` or `overdue`, else since the upstream reported it. 0 where there is none.',
    type: 'gauge',
    labels: { state: OPEN_STATES },
    series: [],
    source: 'transfers',
  },
  fillTime: {
    name: 'intentwatch_transfer_fill_seconds',
    help: 'From the funding of a transfer to the end of its wait, as the upstream reports both, by what came of it. Without transfers that were first seen later. The first 50 routes; others count as `other`.',
    type: 'histogram',
    labels: { route: 'learned', outcome: FILL_OUTCOMES },
    buckets: FILL_BUCKETS,
    series: [],
    exemplars: true,
  },
  settlementTime: {
    name: 'intentwatch_transfer_settlement_seconds',
    help: 'From the fill of a transfer to its settlement, as the upstream reports both; `failed` where something else followed. Without transfers whose fill was not seen. The first 50 routes; others count as `other`.',
    type: 'histogram',
    labels: { route: 'learned', outcome: SETTLEMENT_OUTCOMES },
    buckets: SETTLEMENT_BUCKETS,
    series: [],
    exemplars: true,
  },
  volume: {
    name: 'intentwatch_transfer_volume_tokens_total',
    help: 'What transfers sent, in token units, each time that one came to an outcome; without what was history. Tokens whose decimals are not certain are left out. Tokens that are neither under `tokens` in the config nor packaged count as `other`, whatever the upstream calls them; so do those beyond 10 symbols, and routes beyond 50.',
    type: 'counter',
    labels: { route: 'learned', token: 'tokens', outcome: VOLUME_OUTCOMES },
    series: [],
  },
  deliveredRatio: {
    name: 'intentwatch_delivered_ratio',
    help: 'What was delivered of a transfer as a share of what its quote promised, by the pair of chains: only where the quote was imported, and both are amounts of one token on one chain. The first 50 pairs; others count as `other`.',
    type: 'histogram',
    labels: { route: 'learned' },
    buckets: DELIVERED_BUCKETS,
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
    exemplars: true,
  },
} as const satisfies Record<string, Definition>;

/** Metrics of the books. */
export const BOOKS = {
  booksRead: {
    name: 'intentwatch_books_read_timestamp_seconds',
    help: 'When this process last had read the event log to its end for the books, in seconds since 1970; 0 where another process does, or none.',
    type: 'gauge',
    labels: {},
  },
  booksBreaks: {
    name: 'intentwatch_books_breaks_total',
    help: 'How often the event log did not go on as the books knew it: another log, entries that had left it, or an entry that was lost.',
    type: 'counter',
    labels: { kind: BREAKS },
  },
  booksMails: {
    name: 'intentwatch_books_mails_total',
    help: 'Mails of the books: days that were `sent` or `skipped`, tries that `failed`, and recipients that are `dead`: these do not get it.',
    type: 'counter',
    labels: { outcome: MAIL_OUTCOMES },
  },
  booksFailures: {
    name: 'intentwatch_books_failures_total',
    help: 'Rounds in which the books could not be stored; they are tried again.',
    type: 'counter',
    labels: {},
  },
} as const satisfies Record<string, Definition>;

const LAG_BUCKETS = [1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600];
const CALL_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Metrics of the checks of payments, and of the RPC endpoints for them. */
export const PROOFS = {
  proofChecks: {
    name: 'intentwatch_proof_checks',
    help: 'Checks of payments by chain and state; those that have ended are counted for the retention.',
    type: 'gauge',
    labels: { chain: 'chains', state: CHECK_STATES },
    source: 'checks',
  },
  proofOldest: {
    name: 'intentwatch_proof_oldest_waiting_seconds',
    help: 'How long the oldest check of a chain has waited for an outcome; 0 where none waits. Rollups take hours to finality.',
    type: 'gauge',
    labels: { chain: 'chains' },
    source: 'checks',
  },
  proofUnread: {
    name: 'intentwatch_proof_oldest_unread_event_seconds',
    help: 'How old the oldest event is that was not yet read for payments to check; 0 where all were. It grows while no process does it.',
    type: 'gauge',
    labels: {},
    source: 'checks',
  },
  proofs: {
    name: 'intentwatch_proofs_total',
    help: 'Checks of payments that this process ended, by their outcome.',
    type: 'counter',
    labels: { chain: 'chains', outcome: PROOF_STATES },
  },
  proofErrors: {
    name: 'intentwatch_proof_errors_total',
    help: 'Times at which a check of a payment ended in an error of its own; it is requested again, later each time.',
    type: 'counter',
    labels: { chain: 'chains' },
  },
  checksMissed: {
    name: 'intentwatch_proof_log_gaps_total',
    help: 'Times at which entries of the event log went away before checks were made of them.',
    type: 'counter',
    labels: {},
  },
  rpcCalls: {
    name: 'intentwatch_rpc_calls_total',
    help: 'Calls of RPC endpoints, by their names in the config and how they ended.',
    type: 'counter',
    labels: { chain: 'chains', endpoint: 'endpoints', outcome: RPC_OUTCOMES },
    series: [],
  },
  rpcDuration: {
    name: 'intentwatch_rpc_call_duration_seconds',
    help: 'How long calls of RPC endpoints took.',
    type: 'histogram',
    labels: { chain: 'chains', endpoint: 'endpoints' },
    series: [],
    buckets: CALL_BUCKETS,
  },
  upstreamLag: {
    name: 'intentwatch_upstream_lag_seconds',
    help: "From the time of the block that delivered to the upstream's `updatedAt` of the record that stated it, by the pair of chains: of deliveries that were verified. The first 50 pairs; others count as `other`.",
    type: 'histogram',
    labels: { route: 'learned' },
    buckets: LAG_BUCKETS,
  },
} as const satisfies Record<string, Definition>;
