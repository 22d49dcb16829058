import { SUBJECT_KINDS } from '../../domain/subjects/subject.ts';
import { OPEN_STATES } from '../../domain/transfers/open-transfer.ts';
import { FILL_OUTCOMES, SETTLEMENT_OUTCOMES, VOLUME_OUTCOMES } from '../../domain/transfers/transfer-move.ts';
import { EVENT_TYPE_WORDS } from '../label-values.ts';
import type { Definition } from './definition.ts';

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
    help: 'How long the oldest of these transfers has been in its state: since its funding while it is `pending` or `overdue`, else since the upstream said so. 0 where there is none.',
    type: 'gauge',
    labels: { state: OPEN_STATES },
    series: [],
    source: 'transfers',
  },
  fillTime: {
    name: 'intentwatch_transfer_fill_seconds',
    help: 'From the funding of a transfer to the end of its wait, as the upstream says both, by what came of it. Without transfers that were first seen later. The first 50 routes; others count as `other`.',
    type: 'histogram',
    labels: { route: 'learned', outcome: FILL_OUTCOMES },
    buckets: FILL_BUCKETS,
    series: [],
    exemplars: true,
  },
  settlementTime: {
    name: 'intentwatch_transfer_settlement_seconds',
    help: 'From the fill of a transfer to its settlement, as the upstream says both; `failed` where something else followed. Without transfers whose fill was not seen. The first 50 routes; others count as `other`.',
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
