import type { PlannedPoll } from '../../domain/cadence/next-poll.ts';
import type { PollOutcome } from '../../signals.ts';
import { NOTHING_OBSERVED, type PageFacts } from '../../store/observed.ts';
import type { PollEnd } from '../../store/plan.ts';
import type { PollStart } from '../../store/poll-start.ts';
import type { PollFailure } from './poll-failures.ts';

/** End of a poll: the move of its subject, the next poll, the observation, and the counted outcome. */
export type Polled = { end: PollEnd; next: PlannedPoll; observed: PageFacts; outcome: PollOutcome };

/** The way in which a kind of subject is polled. */
export type Adapter = {
  isOver: (start: PollStart) => Promise<boolean>;
  /** Makes the one request, ingests its answer, and plans the next poll. Throws UpstreamFailure, or the signal's reason. */
  poll: (start: PollStart, signal: AbortSignal) => Promise<Polled>;
  failed: (start: PollStart, failure: PollFailure) => Promise<Polled>;
};

/** The next poll as soon as there is a slot for it. */
export const AT_ONCE: PlannedPoll = {
  virtualSeconds: 0,
  restMs: 0,
  latestMs: null,
  alarmMs: null,
  unseen: false,
};

const SUPERSEDED_RETRY_MS = 250;

/** The next poll after an answer that raced with a newer one. */
export const AFTER_SUPERSEDED: PlannedPoll = {
  ...AT_ONCE,
  restMs: SUPERSEDED_RETRY_MS,
  alarmMs: SUPERSEDED_RETRY_MS,
};

/** A poll after which nothing remains to be done. */
export function over(outcome: PollOutcome): Polled {
  return { end: 'finish', next: AT_ONCE, observed: NOTHING_OBSERVED, outcome };
}

/** A poll that was answered; `next` is null where nothing remains to be done. */
export function answered(next: PlannedPoll | null, observed: PageFacts = NOTHING_OBSERVED): Polled {
  if (next === null) return { ...over('answered'), observed };
  return { end: 'next', next, observed, outcome: 'answered' };
}

/** A poll that failed: its subject waits alone, or the endpoint group is at fault. */
export function failed(failure: PollFailure, observed: PageFacts = NOTHING_OBSERVED): Polled {
  return {
    end: failure.own ? 'failed' : 'back',
    next: { ...AT_ONCE, restMs: failure.afterMs },
    observed,
    outcome: 'failed',
  };
}
