/**
 * Why no receiver gets an event. `no-receiver`: a subscription names a receiver that is not there. `not-in-config`: no
 * subscription that leads to its subject is in the config any more. `filtered`: the `events` and filters of its receivers
 * let it pass none. `pull-only`: who watches the subject names no receiver, and pulls events from the API.
 */
export const UNMATCHED_REASONS = ['no-receiver', 'not-in-config', 'filtered', 'pull-only'] as const;

export type UnmatchedReason = (typeof UNMATCHED_REASONS)[number];

/** The reasons that nobody chose: their events are listed. */
export const LISTED_REASONS = ['no-receiver', 'not-in-config'] as const satisfies readonly UnmatchedReason[];

export type ListedReason = (typeof LISTED_REASONS)[number];

export function isListed(reason: UnmatchedReason): reason is ListedReason {
  return LISTED_REASONS.some((listed) => listed === reason);
}
