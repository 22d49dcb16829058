import type { StaleReason } from '../domain/changes/decision.ts';
import { EVENT_TYPES } from '../domain/events/event-types.ts';
import { knownStatuses } from '../domain/subjects/kinds.ts';
import { SUBJECT_KINDS } from '../domain/subjects/subject.ts';
import type { PollOutcome, RecordOutcome, RepairKind, SignalMap } from '../signals.ts';

import { ENDPOINTS } from '../upstream/client/endpoint.ts';
import { FAILURE_CODES } from '../upstream/client/failure.ts';

/** The label value of every word that its closed set does not hold. */
export const OTHER = 'other';

/** The label value of receivers that are not in this config. No receiver can be called so. */
export const REMOVED = '(removed)';

export const POLL_OUTCOMES = words<PollOutcome>({
  answered: true,
  verified: true,
  failed: true,
  ended: true,
  aborted: true,
});

export const RECORD_OUTCOMES = words<RecordOutcome>({
  history: true,
  first: true,
  unchanged: true,
  stale: true,
  changed: true,
  superseded: true,
});

export const STALE_REASONS = [
  ...words<StaleReason>({ older: true, unknown: true, backward: true, returned: true }),
  OTHER,
];

export const REPAIRS = words<RepairKind>({
  'poll-missing': true,
  'delivery-missing': true,
});

export const ATTEMPT_OUTCOMES = words<SignalMap['delivery.attempted'][0]['outcome']>({
  delivered: true,
  failed: true,
  rejected: true,
});

export const DELIVERY_OUTCOMES = words<SignalMap['delivery.ended'][0]['outcome']>({
  delivered: true,
  dead: true,
});

export const QUEUE_STATES = ['waiting', 'delayed', 'active'];

export const REQUEST_ENDPOINTS = [...ENDPOINTS, OTHER];

export const REQUEST_OUTCOMES = ['ok', ...FAILURE_CODES, OTHER];

export const EVENT_TYPE_WORDS = [...EVENT_TYPES, OTHER];

/** Every kind with the statuses that can be foreseen for it; a wallet has none and is only watched. */
export const SUBJECT_SERIES = SUBJECT_KINDS.flatMap((kind) =>
  [...new Set([...knownStatuses(kind), kind === 'wallet' ? 'watched' : 'unseen', 'unknown', OTHER])].map(
    (status) => ({ kind, status }),
  ),
);

export const SUBJECT_STATUSES = [...new Set(SUBJECT_SERIES.map(({ status }) => status))];

/** The status of a kind as a label: in lower case, and `other` when it cannot be foreseen. */
export function statusLabel(kind: string, status: string): string {
  const word = status.toLowerCase();
  return SUBJECT_SERIES.some((series) => series.kind === kind && series.status === word) ? word : OTHER;
}

/** All words of a union: the record makes the compiler find a forgotten one. */
function words<T extends string>(set: Record<T, true>): readonly string[] {
  return Object.keys(set);
}
