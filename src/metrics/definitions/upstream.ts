import { ENDPOINT_GROUPS } from '../../domain/subjects/kinds.ts';
import { HEALTH_STATES } from '../../store/health.ts';
import { REQUEST_ENDPOINTS, REQUEST_OUTCOMES } from '../label-values.ts';
import type { Definition } from './definition.ts';

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
