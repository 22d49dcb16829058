import { TROUBLE_FACTOR, type Watch } from './watch-rules.ts';

const SECOND = 1_000;
const DAY = 86_400 * SECOND;

/**
 * How a stage of a subject is polled. Where something is waited for that has a learned model (`watch`), by that; else as if changes
 * came at a constant rate, that at which the interval `everyMs` is right at a price of 1, and no sooner than after
 * `leastFactor` shortest waits. Tracking ends `finishAfterMs` after the subject came into the stage; null means never. `waiting` stages are
 * those in which a transfer is under way, for which `overdue` exists.
 */
export type Stage = { finishAfterMs: number | null; waiting: boolean } & (
  | { watch: Watch }
  | { watch: null; everyMs: number; leastFactor: number }
);

/** Under way, until what is waited for comes. */
export function underWay(watch: Watch): Stage {
  return { watch, finishAfterMs: null, waiting: true };
}

/** Nothing is waited for that has a model. */
export function idle(everySeconds: number, finishAfterMs: number | null, leastFactor = 1): Stage {
  return { watch: null, everyMs: everySeconds * SECOND, finishAfterMs, leastFactor, waiting: false };
}

/** Changes slowly, and somebody else has to act. */
export function trouble(finishAfterMs: number): Stage {
  return idle(60, finishAfterMs, TROUBLE_FACTOR);
}

/** Nothing comes after it. */
export const FINISHED: Stage = idle(60, 0);

/** Watched for as long as the config names it. The plan of a wallet says when (see `planWallet`). */
export const WATCHED: Stage = idle(5, null);

/** A word that stands in no table: looked at slowly, and not for ever. */
export const UNNAMED: Stage = idle(30, 30 * DAY, 5);

/** Not known to the upstream yet: soon, for it may be indexed at any moment. */
export const UNSEEN: Stage = idle(5, null, 2);

/** A stage without a model is polled every thirtieth of its age, up to this. */
const IDLE_SHARE = 30;
const IDLE_LONGEST_MS = 600_000;

/**
 * The interval, at a price of 1, of a stage without a model that has lasted so long, seconds: a thirtieth of its age, within
 * bounds. What the upstream has not shown ages from when it was named.
 */
export function stageInterval({ everyMs }: { everyMs: number }, ageSeconds: number): number {
  return Math.max(everyMs / SECOND, Math.min(IDLE_LONGEST_MS / SECOND, ageSeconds / IDLE_SHARE));
}
