import { WATCHES } from '../../domain/cadence/watch-rules.ts';
import { COMPARISONS } from '../../domain/changes/second-source.ts';
import { ENDPOINT_GROUPS } from '../../domain/subjects/kinds.ts';
import { RESERVED_KINDS, SUBJECT_KINDS } from '../../domain/subjects/subject.ts';
import { HEALTH_STATES } from '../../store/health.ts';
import { UNSWEPT_STATES } from '../../store/wallets.ts';
import type { Definition } from '../definition.ts';
import {
  INTERNAL_PARTS,
  POLL_OUTCOMES,
  QUEUE_STATES,
  RECORD_OUTCOMES,
  REPAIRS,
  REQUEST_ENDPOINTS,
  REQUEST_OUTCOMES,
  STALE_REASONS,
  SUBJECT_SERIES,
  SUBJECT_STATUSES,
} from '../label-values.ts';

const LAG_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** Metrics of subjects, their records and their polls. */
export const POLLING = {
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
  expired: {
    name: 'intentwatch_records_expired_total',
    help: 'Records of wallets that were not known any more and are stored without an event: their status is final, and is older by `retention` than a sweep that has read the whole wallet before.',
    type: 'counter',
    labels: {},
  },
  stale: {
    name: 'intentwatch_stale_answers_total',
    help: 'Answers behind what is known, by why: an older `updatedAt`, `unknown` for something known, a status that steps backward, a status or value that `returned`.',
    type: 'counter',
    labels: { reason: STALE_REASONS },
  },
  comparisons: {
    name: 'intentwatch_status_comparisons_total',
    help: 'Statuses of the open source beside those of v1 (`upstream.statusSource: both`): `ahead` on the usual steps, `behind`, or `differs` on none of them; `unknown` to the open source.',
    type: 'counter',
    labels: { result: COMPARISONS },
  },
  unreadable: {
    name: 'intentwatch_records_unreadable_total',
    help: 'Parts of answers that could not be read: records, and members of records that are not as the interface describes them; by the kind of subject that was requested (`other`: the lists of chains and tokens).',
    type: 'counter',
    labels: { kind: SUBJECT_KINDS },
  },
  reserved: {
    name: 'intentwatch_records_reserved_total',
    help: 'Records that were skipped because their kind is one of the daemon itself, by that kind.',
    type: 'counter',
    labels: { kind: RESERVED_KINDS },
  },
  tooLarge: {
    name: 'intentwatch_records_too_large_total',
    help: 'Records of wallets that are too large to be read, each counted once; `upstream.record_too_large` names it.',
    type: 'counter',
    labels: {},
  },
  polls: {
    name: 'intentwatch_polls_total',
    help: 'Polls of subjects, by how they ended. Only `answered` and `failed` ones sent a request.',
    type: 'counter',
    labels: { endpoint_group: ENDPOINT_GROUPS, kind: SUBJECT_KINDS, outcome: POLL_OUTCOMES },
  },
  pollLag: {
    name: 'intentwatch_poll_lag_seconds',
    help: 'How much later a poll was made than promised: than it was requested or named, or than its longest wait. 0 for all others.',
    type: 'histogram',
    labels: { endpoint_group: ENDPOINT_GROUPS },
    buckets: LAG_BUCKETS,
  },
  internalErrors: {
    name: 'intentwatch_internal_errors_total',
    help: 'Errors that neither the upstream nor a receiver made, such as one of Redis. What failed is tried again.',
    type: 'counter',
    labels: { part: INTERNAL_PARTS },
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
    source: 'endpointGroups',
  },
  claimsReturned: {
    name: 'intentwatch_claims_returned_total',
    help: 'Claims whose lease ran out, as their process was gone or had lost them: their subjects went back into the plan.',
    type: 'counter',
    labels: { endpoint_group: ENDPOINT_GROUPS },
  },
  failing: {
    name: 'intentwatch_subjects_failing',
    help: 'Subjects whose polls fail again and again while others succeed; all together they get a tenth of the budget.',
    type: 'gauge',
    labels: { endpoint_group: ENDPOINT_GROUPS },
    series: [],
    source: 'endpointGroups',
  },
  longestWait: {
    name: 'intentwatch_longest_wait_seconds',
    help: 'How long ago the subject that waits longest was last polled with success, by kind; 0 where none is tracked. What is suspended does not count.',
    type: 'gauge',
    labels: { kind: SUBJECT_KINDS },
    series: [],
    source: 'waits',
  },
  overdue: {
    name: 'intentwatch_poll_overdue_seconds',
    help: 'By how much the most overdue subject has waited longer than its longest wait: above 0 for long, the budget is too small for it.',
    type: 'gauge',
    labels: { endpoint_group: ENDPOINT_GROUPS },
    series: [],
    source: 'endpointGroups',
  },
  neverSwept: {
    name: 'intentwatch_wallets_never_swept',
    help: 'Wallets of more than a page that were never read to the end: their first sweep is under way (`sweeping`), or a cursor of it has expired (`broken`) and it begins again.',
    type: 'gauge',
    labels: { state: UNSWEPT_STATES },
    source: 'sweeps',
  },
  repairs: {
    name: 'intentwatch_repairs_total',
    help: 'What the checks of plans, deliveries and counts had to repair.',
    type: 'counter',
    labels: { what: REPAIRS },
  },
  queueDepth: {
    name: 'intentwatch_queue_depth',
    help: 'Jobs in a queue: those of up to ten polls by endpoint group, deliveries by receiver; queues of receivers outside this config count as `(removed)`.',
    type: 'gauge',
    labels: { queue: 'queues', state: QUEUE_STATES },
    source: 'queues',
  },
} as const satisfies Record<string, Definition>;

const REQUEST_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Metrics of requests to the upstream and its endpoint groups. */
export const UPSTREAM = {
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
    labels: { endpoint_group: ENDPOINT_GROUPS },
  },
  upstreamState: {
    name: 'intentwatch_upstream_state',
    help: '1 for the state in which an endpoint group of the upstream is, 0 for the others.',
    type: 'gauge',
    labels: { endpoint_group: ENDPOINT_GROUPS, state: HEALTH_STATES },
    series: [],
    source: 'endpointGroups',
  },
  upstreamMoves: {
    name: 'intentwatch_upstream_state_changes_total',
    help: "Changes of an endpoint group's state that this process saw first, by the state it came to.",
    type: 'counter',
    labels: { endpoint_group: ENDPOINT_GROUPS, state: HEALTH_STATES },
  },
  budget: {
    name: 'intentwatch_upstream_budget_requests_per_second',
    help: 'The budget of an endpoint group, over all processes.',
    type: 'gauge',
    labels: { endpoint_group: ENDPOINT_GROUPS },
    series: [],
    source: 'endpointGroups',
  },
  budgetUsed: {
    name: 'intentwatch_upstream_budget_used_ratio',
    help: 'The share of the budget that was used of late, by all processes.',
    type: 'gauge',
    labels: { endpoint_group: ENDPOINT_GROUPS },
    series: [],
    source: 'endpointGroups',
  },
  price: {
    name: 'intentwatch_upstream_request_price_seconds',
    help: 'The price of a request, in delay of a fill: what a request saved of late where it was made. It is read off how fast polls are served and steers nothing; waits go with its square root.',
    type: 'gauge',
    labels: { endpoint_group: ENDPOINT_GROUPS },
    series: [],
    source: 'endpointGroups',
  },
} as const satisfies Record<string, Definition>;

/** Metrics of the learned timing of pairs of chains, and of the costs of priced routes. */
export const ROUTES = {
  learnedSeconds: {
    name: 'intentwatch_learned_seconds',
    help: 'How long a stage takes on a route of the upstream, as learned: of those that come to its end, so large a `share` has ended by then. `*` is any chain or all routes. The 50 routes of which most was seen.',
    type: 'gauge',
    labels: { route: 'learned', stage: WATCHES, share: ['0.5', '0.99'] },
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
    help: 'How long delivery takes by the best quote. Absent while no solver quotes, or where the quote does not state it.',
    type: 'gauge',
    labels: { route: 'routes' },
    series: [],
    source: 'routes',
  },
  routeSolvers: {
    name: 'intentwatch_route_solvers',
    help: 'How many solvers quote the route; absent until it was answered once. As of the last answer: see the state of the endpoint group `quotes`.',
    type: 'gauge',
    labels: { route: 'routes' },
    series: [],
    source: 'routes',
  },
} as const satisfies Record<string, Definition>;
