import type { Transition } from '../changes/decision.ts';
import { valuesAt } from '../changes/leaves.ts';
import type { JsonObject } from '../json.ts';
import type { Proof } from '../proof/proof.ts';
import { statusMember } from '../subjects/kinds.ts';
import { asSubjectId } from '../subjects/subject.ts';
import { isTrackedKey, parseClaimKey, walletsOf } from '../subjects/subscription.ts';
import { COMMON_NAMES, type Directory } from '../transfers/chains.ts';
import { transferFacts } from '../transfers/transfer-facts.ts';
import {
  type Event,
  type EventFacts,
  type EventIdentity,
  type EventSubject,
  eventId,
  identify,
  type RenderedEvent,
} from './event.ts';
import type { ExpectedBy, Promised } from './event-schema.ts';
import { TEST_TYPE } from './event-types.ts';

/**
 * Input of an event. Times are Redis time in `nowMs`, else Unix seconds. `epoch`: number of restores of the data.
 * `identity`: absent for a subject without other events. `before`: the previous record, null at first observation.
 * `waitingSince`: first `updatedAt` in the previous waiting stage; null or absent when it was in none.
 * `afterRestore`: the state may have been reported before. `expectedBy`: expected end of the stage.
 */
export type EventInput = {
  subject: EventSubject;
  sequence: number;
  epoch: number;
  identity?: EventIdentity;
  afterRestore?: boolean;
  transition: Transition;
  record: JsonObject;
  updatedAt: number | null;
  waitingSince?: number | null;
  before?: JsonObject | null;
  promised?: Promised | null;
  fundedAt?: number | null;
  expectedBy?: ExpectedBy | null;
  proof?: Proof | null;
  nowMs: number;
};

export function makeEvent(input: EventInput): Event {
  const { subject, sequence, epoch, transition, record, updatedAt, nowMs } = input;
  const { type } = transition;
  const payment = input.proof?.payment;
  const identity =
    input.identity ??
    identify(
      { subject: subject.id, type, record, ...(payment === undefined ? {} : { payment }) },
      { emitted: [], restoredIn: null },
    );
  const elapsed = elapsedSeconds(input);
  const facts: EventFacts = {
    subject,
    sequence,
    epoch,
    status: transition.status,
    previousStatus: transition.previousStatus,
    changes: transition.changes,
    record,
    ...(transition.skipped ? { skipped: true } : {}),
    ...(transition.regression ? { regression: true } : {}),
    ...(input.afterRestore === true ? { afterRestore: true as const } : {}),
    ...(elapsed === null ? {} : { elapsedSeconds: elapsed }),
    ...(input.expectedBy == null ? {} : { expectedBy: input.expectedBy }),
    ...(input.proof == null ? {} : { proof: input.proof }),
    upstreamUpdatedAt: updatedAt,
    detectionDelaySeconds: detectionDelay(updatedAt, nowMs),
    ...(input.before == null ? {} : { before: oldValues(input.before, input) }),
    ...(input.promised == null ? {} : { promised: input.promised }),
    ...(input.fundedAt == null ? {} : { fundedAt: input.fundedAt }),
  };
  return {
    id: identity.id,
    type,
    timestamp: new Date(nowMs).toISOString(),
    data: facts,
  };
}

/** Old values of the changed members; that of the status is `previousStatus`. */
function oldValues(before: JsonObject, { subject, transition }: EventInput): JsonObject {
  const status = statusMember(asSubjectId(subject.id));
  return valuesAt(
    before,
    transition.changes.filter((path) => path !== status),
  );
}

function elapsedSeconds({ transition, updatedAt, waitingSince, nowMs }: EventInput): number | null {
  const { type, status, previousStatus } = transition;
  const isOverdue = type.endsWith('.overdue');
  const moves = previousStatus !== null && status.toLowerCase() !== previousStatus.toLowerCase();
  const until = isOverdue ? Math.floor(nowMs / 1_000) : moves ? updatedAt : null;
  return waitingSince == null || until === null ? null : Math.max(0, until - waitingSince);
}

/** Observation time minus `updatedAt`, at least 0, in seconds; the upstream's time is exact only to a second. */
function detectionDelay(updatedAt: number | null, nowMs: number): number | null {
  if (updatedAt === null) return null;
  return Math.max(0, Math.round(nowMs / 100 - updatedAt * 10) / 10);
}

/** Makes the event that `intentwatch test` sends to a receiver: signed like any other, without a subject, and in no log. */
export function makeTestEvent(receiver: string, nowMs: number): RenderedEvent {
  const timestamp = new Date(nowMs).toISOString();
  return {
    id: eventId([TEST_TYPE, receiver, timestamp]),
    type: TEST_TYPE,
    timestamp,
    data: {
      subject: { kind: 'intentwatch', id: 'intentwatch:test' },
      sequence: 1,
      epoch: 1,
      status: 'test',
      previousStatus: null,
      changes: [],
      record: { receiver, message: 'A test of this receiver. No transfer has changed.' },
      wallets: [],
      subscriptions: [],
      metadata: {},
      upstreamUpdatedAt: null,
      detectionDelaySeconds: null,
    },
  };
}

/** Members of a subscription that rendering needs; `order` is its position in the config. */
export type RenderedSubscription = { name: string; order: number; metadata: Record<string, string> };

/**
 * Renders an event for one receiver. `claimKeys` are the claims that lead to this receiver; wallets, subscriptions and
 * metadata come from them alone. Metadata merges in the subscriptions' order. `directory` names chains and tokens.
 */
export function renderEvent(
  event: Event,
  claimKeys: readonly string[],
  subscriptions: ReadonlyMap<string, RenderedSubscription>,
  directory: Directory = COMMON_NAMES,
): RenderedEvent {
  const names = [...new Set(claimKeys.map((key) => parseClaimKey(key).subscription))];
  const leading = names
    .map((name) => subscriptions.get(name) ?? { name, order: Number.MAX_SAFE_INTEGER, metadata: {} })
    .sort((a, b) => a.order - b.order);
  const { upstreamUpdatedAt, detectionDelaySeconds, before, promised, fundedAt, ...facts } = event.data;
  const transfer = transferFacts(event, directory);
  return {
    ...event,
    data: {
      ...facts,
      ...(transfer === null ? {} : { transfer }),
      wallets: walletsOf(claimKeys),
      subscriptions: leading.map(({ name }) => name).filter((name) => !isTrackedKey(name)),
      metadata: Object.assign({}, ...leading.map((subscription) => subscription.metadata)),
      upstreamUpdatedAt,
      detectionDelaySeconds,
    },
  };
}

/** Marks an event that waited until its subject's subscription came back into the config. */
export function withSuspended(event: RenderedEvent): RenderedEvent {
  const { upstreamUpdatedAt, detectionDelaySeconds, ...data } = event.data;
  return { ...event, data: { ...data, suspended: true, upstreamUpdatedAt, detectionDelaySeconds } };
}
