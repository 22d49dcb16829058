import type { JsonObject } from './json.ts';

/** What an event is about: one of our subjects, or for operator events the upstream or a receiver. */
export type EventSubject = { kind: string; id: string };

/**
 * The facts of an event that are the same for every receiver. `sequence` counts 1, 2, 3 … per subject.
 * `record` is what the upstream said, whole. `upstreamUpdatedAt` is in Unix seconds.
 */
export type EventFacts = {
  subject: EventSubject;
  sequence: number;
  status: string | null;
  previousStatus: string | null;
  changes: string[];
  record: JsonObject;
  skipped?: boolean;
  regression?: boolean;
  /** How long the subject had waited when it moved on or became overdue: from its first `updatedAt` seen waiting. */
  elapsedSeconds?: number;
  upstreamUpdatedAt: number | null;
  detectionDelaySeconds: number | null;
};

/** The event as the log keeps it: immutable, one for all receivers. */
export type Event = { id: string; type: string; timestamp: string; data: EventFacts };

/**
 * What tells that a record was too large for a webhook and is there in part; `recordUrl` is where the whole is, if
 * it can be read anywhere.
 */
export type RecordCut = { recordTruncated?: true; recordUrl?: string };

/**
 * The event as one receiver gets it. `wallets`, `subscriptions` and `metadata` come only from the subscriptions that
 * lead from the event's subject to this receiver: nobody sees another's.
 */
export type RenderedEvent = {
  id: string;
  type: string;
  timestamp: string;
  data: EventFacts &
    RecordCut & { wallets: string[]; subscriptions: string[]; metadata: Record<string, string> };
};
