import { performance } from 'node:perf_hooks';
import type { PlannedPoll } from '../../domain/cadence/next-poll.ts';
import type { EndpointGroup } from '../../domain/subjects/kinds.ts';
import type { PollOutcome } from '../../signals.ts';
import { isOpenChanged, NOTHING_OBSERVED, type PageFacts } from '../../store/observed.ts';
import type { EndedPoll, PlanStore, PollEnd, PollEnded } from '../../store/plan.ts';
import type { PollStart } from '../../store/poll-start.ts';
import type { PollFailure } from './poll-failures.ts';
import { MOST_IN_JOB } from './poll-queues.ts';

/** Work behind an end, with its reply: whether the endpoint group's state needs the response, null where another has the claim. */
export type Follow = (isWaitedFor: boolean | null) => Promise<void>;

type WaitingEnd = {
  ended: EndedPoll;
  sinceMs: number;
  done: (reply: PollEnded) => void;
  fail: (error: unknown) => void;
  whole: Promise<void>;
};

/** Longest wait of an end for a claim: the dispatcher claims at least this often. */
const LONGEST_WAIT_MS = 1_000;

/** True for the end of a poll that changed nothing, while nothing waits for its answer and the next one rests for longer. */
export function isQuietEnd({ lane }: PollStart, { outcome, end, next, observed }: Polled): boolean {
  const { restMs, alarmMs } = next;
  return (
    outcome === 'answered' &&
    end === 'next' &&
    Math.min(restMs, alarmMs ?? restMs) >= LONGEST_WAIT_MS &&
    lane !== 'suspect' &&
    lane !== 'probe' &&
    !isOpenChanged(observed)
  );
}

/**
 * Ends the polls of one endpoint group. An end that nothing depends on goes with the next command about the plan, so that a turn of
 * Redis and of this process serves several.
 *
 * | an end               | goes                                                             |
 * |----------------------|------------------------------------------------------------------|
 * | is of consequence    | at once, with those that wait                                    |
 * | may wait             | with the next claim, the next end of consequence or failure, the |
 * |                      | tenth that waits, or the last poll that this process has started |
 * | follows a failure    | at once, until a later end found that none counts any more: a    |
 * |                      | success between failures must be noted before the next one       |
 */
export class PollEnds {
  readonly #plan: PlanStore;
  readonly #endpointGroup: EndpointGroup;
  #waiting: WaitingEnd[] = [];
  /** True while no failure counts, as far as this process has seen; and how often it was in doubt. */
  #isQuiet = true;
  #doubts = 0;

  constructor(plan: PlanStore, endpointGroup: EndpointGroup) {
    this.#plan = plan;
    this.#endpointGroup = endpointGroup;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Ends a poll, and what follows that; `mayWait` is false where it must go at once. */
  async end(ended: EndedPoll, mayWait: boolean, follow: Follow): Promise<void> {
    const { promise, resolve: done, reject: fail } = Promise.withResolvers<PollEnded>();
    const whole = promise.then((reply) => {
      if (reply instanceof Error) throw reply;
      return follow(reply);
    });
    this.#waiting.push({ ended, sinceMs: performance.now(), done, fail, whole });
    if (!mayWait || !this.#isQuiet || this.#waiting.length >= MOST_IN_JOB) void this.flush();
    return whole;
  }

  /** As `flush`, and lets none wait until one that is sent from now on finds no failure that counts. */
  async doubt(): Promise<void> {
    this.#doubts += 1;
    this.#isQuiet = false;
    await this.flush();
  }

  /** Sends the ends that wait. Resolves when what follows them has ended as well. */
  async flush(): Promise<void> {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    const nowMs = performance.now();
    const doubts = this.#doubts;
    const polls = waiting.map(({ ended, sinceMs }) => ({
      ...ended,
      next: since(ended.next, nowMs - sinceMs),
    }));
    this.#plan.end(this.#endpointGroup, polls).then(
      (replies) => {
        if (replies.includes(true)) this.#isQuiet = false;
        else if (doubts === this.#doubts && foundQuiet(waiting, replies)) this.#isQuiet = true;
        for (const [at, { done }] of waiting.entries()) done(replies[at] ?? new Error('found no reply'));
      },
      (error: unknown) => {
        for (const { fail } of waiting) fail(error);
      },
    );
    await Promise.allSettled(waiting.map(({ whole }) => whole));
  }
}

/** True where a reply has read the endpoint group's state: that of a poll without a result has not. */
function foundQuiet(ends: readonly WaitingEnd[], replies: readonly PollEnded[]): boolean {
  return ends.some(({ ended: { outcome } }, at) => outcome !== 'back' && replies[at] === false);
}

/** The next poll after a time that has passed since it was planned. */
function since(next: PlannedPoll, ms: number): PlannedPoll {
  const rest = (planMs: number | null): number | null => (planMs === null ? null : Math.max(0, planMs - ms));
  return {
    ...next,
    restMs: Math.max(0, next.restMs - ms),
    latestMs: rest(next.latestMs),
    alarmMs: rest(next.alarmMs),
  };
}

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
