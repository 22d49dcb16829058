import type { Snapshot } from '../../src/domain/subjects/record.ts';

/** A subject that was just polled for the fourth time, in a status, and reported twice. */
export function snapshotOf(nowMs: number): (status: string, more?: Partial<Snapshot>) => Snapshot {
  return (status, more = {}) => ({
    version: 4,
    sequence: 2,
    epoch: 1,
    commit: 9,
    status,
    updatedAt: null,
    record: { status },
    observedAtMs: nowMs,
    changedAtMs: nowMs,
    pendingSince: null,
    flags: [],
    unconfirmed: null,
    ahead: null,
    former: [],
    emitted: [],
    reported: true,
    ...more,
  });
}
