import { WATCHES } from '../../domain/cadence/watch-rules.ts';
import type { Definition } from './definition.ts';

/** Metrics of what was learned of pairs of chains, and what priced routes cost. */
export const ROUTES = {
  learnedSeconds: {
    name: 'intentwatch_learned_seconds',
    help: 'How long a stage takes on a route of the upstream, as learned: of those that come to its end, so large a `share` has ended by then. `*` stands for any chain or all routes. The 50 routes of which most was seen.',
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
    help: 'How long the best quote says that delivery takes. Absent while no solver quotes, or where the quote does not say.',
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
