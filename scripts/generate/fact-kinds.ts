import { EVENT_TYPES, OPERATOR_TYPES, TEST_TYPE } from '../../src/domain/events/event-types.ts';
import { eventKind, UNKNOWN } from '../../src/domain/subjects/kinds.ts';

/**
 * Kinds of facts of events. Events of a subject arrive in any order, and a later event makes an earlier one stale only where
 * both are about the same fact: a proof that overtakes a status does not replace it.
 */
export const FACT_KINDS = {
  status: 'The status of the subject. A return to an earlier status is a newer status.',
  update: 'The record changed under the same status. Each word, such as `error`, is a fact of its own.',
  proof: 'The verdict of the chain on a payment. Each `data.proof.payment` is a fact of its own.',
  reminder: 'The clock reached a time. The newest reminder of a subject replaces the earlier ones.',
  route: 'The state and the price of a route. Each event has both.',
  notice: 'Something happened that no later event takes back. Each word is a fact of its own.',
} as const;

export type FactKind = keyof typeof FACT_KINDS;

/** States of the upstream and of receivers, which follow each other; other events for operators do not. */
const OPERATOR_STATES: ReadonlySet<string> = new Set([
  ...['upstream.unreachable', 'upstream.reachable', 'upstream.unauthorized', 'upstream.authorized'],
  ...['receiver.failing', 'receiver.disabled', 'receiver.recovered', 'receiver.paused', 'receiver.resumed'],
]);

export const FACTS_BY_TYPE: Readonly<Record<string, FactKind>> = Object.fromEntries([
  ...EVENT_TYPES.filter((type) => type.startsWith('route.')).map((type) => [type, 'route'] as const),
  ...[...OPERATOR_TYPES.filter((type) => !OPERATOR_STATES.has(type)), TEST_TYPE].map(
    (type) => [type, 'notice'] as const,
  ),
]);

/** The names that decide an event's kind of fact, unless it is about the status. */
export const FACTS_BY_WORD: Readonly<Record<string, FactKind>> = {
  updated: 'update',
  step_failed: 'update',
  error: 'update',
  refund_sent: 'update',
  verified: 'proof',
  disputed: 'proof',
  unproven: 'proof',
  overdue: 'reminder',
  expiring: 'reminder',
  // For a quote or a vault that was not funded in time: its status is the same. For a transfer it is a status.
  expired: 'reminder',
};

/** The kind of fact of a type of the catalogue. */
export function factKindOfType(type: string): FactKind {
  const [kind = '', word = ''] = type.split('.');
  const isStatus =
    OPERATOR_STATES.has(type) || word === UNKNOWN || Object.hasOwn(eventKind(kind).statuses, word);
  return FACTS_BY_TYPE[type] ?? (isStatus ? 'status' : (FACTS_BY_WORD[word] ?? 'notice'));
}
