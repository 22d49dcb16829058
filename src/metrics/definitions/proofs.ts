import { CHECK_STATES } from '../../store/checks.ts';
import { PROOF_STATES, RPC_OUTCOMES } from '../label-values.ts';
import type { Definition } from './definition.ts';

const LAG_BUCKETS = [1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600];
const CALL_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Metrics of what was stated about payments, and of the RPC endpoints that are asked about it. */
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
