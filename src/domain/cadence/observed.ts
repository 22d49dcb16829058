import { statusOf } from '../subjects/kinds.ts';
import { stageOf, stepBetween } from '../subjects/lifecycle.ts';
import type { Snapshot } from '../subjects/record.ts';
import type { SubjectId } from '../subjects/subject.ts';
import type { Interval } from './learning.ts';
import { stageSinceMs } from './next-poll.ts';
import { routeName } from './route-name.ts';
import type { Watch } from './watch-rules.ts';

/** What a poll reported about the timing of a stage. `failed`: it left its way within the interval. */
export type Observed = { route: string; watch: Watch; interval: Interval; failed: boolean };

/** A poll that found a subject in `status` after one before. `seenAtMs` is the last that stored nothing, null for none. */
export type Look = {
  subject: SubjectId;
  before: Snapshot;
  seenAtMs: number | null;
  status: string;
  nowMs: number;
};

/** True when a poll found that a transfer was paid back since the one before. */
export function isRefund({ subject, before, status }: Pick<Look, 'subject' | 'before' | 'status'>): boolean {
  const [from, to] = [before.status.toLowerCase(), status.toLowerCase()];
  return to === REFUNDED && from !== REFUNDED && statusOf(subject, to) !== null;
}

/** The end of a transfer that was paid back. */
const REFUNDED = 'refunded';

/** What a poll tells about the timing of a stage; null where nothing can be learned of it. */
export function observed(look: Look): Observed | null {
  const { subject, before, status, nowMs } = look;
  const { watch } = stageOf(subject, before.status);
  if (watch === null || before.unconfirmed !== null) return null;
  const step = stepBetween(subject, before.status, status);
  if (step === 'backward' || step === 'other') return null;
  const sinceMs = stageSinceMs(before);
  const fromMs = Math.max(before.observedAtMs, look.seenAtMs ?? 0);
  if (fromMs >= nowMs) return null;
  const failed = step !== 'same' && statusOf(subject, status)?.isFailure === true;
  const interval = {
    fromSeconds: (fromMs - sinceMs) / 1_000,
    toSeconds: (nowMs - sinceMs) / 1_000,
    ended: step !== 'same' && !failed,
  };
  return { route: routeName(before.record), watch, interval, failed };
}
