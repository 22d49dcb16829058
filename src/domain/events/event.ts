import type { z } from 'zod';
import type { EVENT, RENDERED_EVENT } from './event-schema.ts';

/** The event as the log keeps it: immutable, one for all receivers. */
export type Event = z.infer<typeof EVENT>;

/**
 * The facts of an event that are the same for every receiver. `sequence` counts 1, 2, 3 … per subject.
 * `record` is what the upstream said, whole. `upstreamUpdatedAt` is in Unix seconds.
 */
export type EventFacts = Event['data'];

/** What an event is about: one of our subjects, or for operator events the upstream or a receiver. */
export type EventSubject = EventFacts['subject'];

/**
 * The event as one receiver gets it. `wallets`, `subscriptions` and `metadata` come only from the subscriptions that
 * lead from the event's subject to this receiver: nobody sees another's. What was too large for a webhook is left out,
 * with `recordTruncated`; `recordUrl` is where the whole is, if it can be read anywhere.
 */
export type RenderedEvent = z.infer<typeof RENDERED_EVENT>;
