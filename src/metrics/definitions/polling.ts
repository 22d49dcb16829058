import { ENDPOINT_GROUPS } from '../../domain/subjects/kinds.ts';
import { RESERVED_KINDS, SUBJECT_KINDS } from '../../domain/subjects/subject.ts';
import { UNSWEPT_STATES } from '../../store/wallets.ts';
import {
  POLL_OUTCOMES,
  QUEUE_STATES,
  RECORD_OUTCOMES,
  REPAIRS,
  STALE_REASONS,
  SUBJECT_SERIES,
  SUBJECT_STATUSES,
} from '../label-values.ts';
import type { Definition } from './definition.ts';

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
  forgotten: {
    name: 'intentwatch_records_forgotten_total',
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
  unreadable: {
    name: 'intentwatch_records_unreadable_total',
    help: 'Parts of answers that could not be read: records, and members of records that are not as the interface describes them; by the kind of subject that was requested.',
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
    help: 'Polls of subjects, by how they ended. Only `answered` and `failed` ones asked the upstream.',
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
    help: 'How long ago the subject that waits longest was last looked at with success, by kind; 0 where none is tracked. What is suspended does not count.',
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
    help: 'Wallets of more than a page that were never read to the end: their first sweep is under way (`reading`), or a cursor of it has expired (`broken`) and it begins again.',
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
    help: 'Jobs in a queue: polls by endpoint group, deliveries by receiver; queues of receivers outside this config count as `(removed)`.',
    type: 'gauge',
    labels: { queue: 'queues', state: QUEUE_STATES },
    source: 'queues',
  },
} as const satisfies Record<string, Definition>;
