/**
 * Reasons why no receiver gets an event.
 * `no-receiver`: a subscription names a missing receiver.
 * `not-in-config`: no subscription that leads to its subject is in the config any more.
 * `filtered`: the `events` and filters of its receivers pass it to none.
 * `pull-only`: its subscriptions name no receiver; clients pull events from the API.
 */
export const UNMATCHED_REASONS = ['no-receiver', 'not-in-config', 'filtered', 'pull-only'] as const;

export type UnmatchedReason = (typeof UNMATCHED_REASONS)[number];

/** Unintended reasons: their events are listed. */
export const LISTED_REASONS = ['no-receiver', 'not-in-config'] as const satisfies readonly UnmatchedReason[];

export type ListedReason = (typeof LISTED_REASONS)[number];

export function isListed(reason: UnmatchedReason): reason is ListedReason {
  return LISTED_REASONS.some((listed) => listed === reason);
}
