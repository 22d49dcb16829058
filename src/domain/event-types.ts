import { KNOWN_STATUSES } from './cadence/stages.ts';

/** What may fail while the status stands. */
const FAILURES = ['step_failed', 'error'];

/** Words beside the statuses: other changes, accepted `unknown`, and what the clock brings about. */
const WORDS: { readonly [kind: string]: readonly string[] } = {
  intent: ['updated', 'unknown', 'overdue', 'short', ...FAILURES, 'refund_sent'],
  // Seen on wallet pages only: nobody can ask for one alone, so none becomes `unknown` or `overdue`.
  'deposit-address': ['updated', ...FAILURES, 'refund_sent'],
  quote: ['updated', 'unknown', 'expiring', 'expired', 'signature_invalid', ...FAILURES, 'refund_sent'],
  gasless: ['updated', 'unknown', 'overdue', ...FAILURES],
  vault: ['updated', 'unknown', 'overdue', 'expiring', 'expired', 'error'],
  route: ['moved'],
};

/** Events about the daemon's surroundings; they reach only receivers whose `events` name them. */
export const OPERATOR_TYPES = [
  'upstream.unreachable',
  'upstream.reachable',
  'upstream.unauthorized',
  'upstream.authorized',
  'receiver.failing',
  'receiver.disabled',
  'receiver.recovered',
  'receiver.events_dropped',
] as const;

/** What `intentwatch test` sends: about nothing, and in no log. */
export const TEST_TYPE = 'intentwatch.test';

/** Every event type that can be foreseen. An unknown status of the upstream's makes a type of its own beside these. */
export const EVENT_TYPES: readonly string[] = [
  ...Object.entries(KNOWN_STATUSES).flatMap(([kind, statuses]) =>
    [...new Set([...statuses, ...(WORDS[kind] ?? [])])].map((word) => `${kind}.${word}`),
  ),
  ...OPERATOR_TYPES,
  TEST_TYPE,
];
