import { z } from 'zod';
import { LISTED_REASONS } from '../domain/events/unmatched.ts';
import { isTrackedRoot, parseClaimRoot } from '../domain/subjects/claim.ts';
import { eventOf } from '../store/log-entry.ts';
import type { OperationParts } from './parts.ts';

/** An event that no receiver gets, though nobody chose that. */
export const UNMATCHED = z
  .object({
    event: z.string().describe('The id of the event.'),
    type: z.string(),
    subject: z.string(),
    at: z.iso.datetime().describe('When the event was made.'),
    reason: z
      .enum(LISTED_REASONS)
      .describe(
        '`no-receiver`: a subscription names a receiver that is not there. `not-in-config`: no subscription that leads to the subject is in the config any more.',
      ),
    subscriptions: z.array(z.string()).describe('The subscriptions that led to the subject.'),
  })
  .meta({ id: 'Unmatched' });

export type Unmatched = z.infer<typeof UNMATCHED>;

/** Behind which entry of the log the list goes on. */
export const UNMATCHED_PLACE = z.object({ entry: z.string().regex(/^\d{1,15}-\d{1,20}$/) });

export type UnmatchedPlace = z.infer<typeof UNMATCHED_PLACE>;

/** The events that no receiver gets, the newest first: a part of them. One that has left the log is left out. */
export async function listUnmatched(
  { from, limit }: { from: UnmatchedPlace | null; limit: number },
  { stores: { events, unmatched } }: OperationParts,
): Promise<{ unmatched: Unmatched[]; next: UnmatchedPlace | null }> {
  const listed = await unmatched.list({ before: from?.entry ?? null, count: limit });
  const entries = await events.atAll(listed.map(({ entry }) => entry));
  const found = listed.flatMap(({ reason }, index): Unmatched[] => {
    const stored = entries[index] ?? null;
    const event = eventOf(stored);
    if (event === null) return [];
    const roots = stored?.kind === 'event' ? stored.roots : [];
    const names = roots
      .filter((root) => !isTrackedRoot(root))
      .map((root) => parseClaimRoot(root).subscription);
    return [
      {
        event: event.id,
        type: event.type,
        subject: event.data.subject.id,
        at: event.timestamp,
        reason,
        subscriptions: [...new Set(names)],
      },
    ];
  });
  const last = listed.at(-1);
  return {
    unmatched: found,
    next: listed.length < limit || last === undefined ? null : { entry: last.entry },
  };
}
