/**
 * How the log does not go on as the books know it. `other-log`: it was lost with its Redis, and this is another.
 * `trimmed`: entries left the log before they were read. `lost`: the entry that was read last is gone, as after a Redis
 * that was set back to an older state.
 */
export const BREAKS = ['other-log', 'trimmed', 'lost'] as const;

export type BreakKind = (typeof BREAKS)[number];
