import { statusOf } from '../subjects/kinds.ts';
import { type Snapshot, stageOf, stepBetween } from '../subjects/record.ts';
import type { SubjectId } from '../subjects/subject.ts';
import { routeName } from '../transfers/transfer.ts';
import {
  AGE_BINS,
  binOf,
  boundedRate,
  type Expectation,
  expectedHazard,
  type HazardCurve,
  lowerEdge,
  stillOpen,
  upperEdge,
} from './hazard.ts';
import { stageSinceMs } from './next-poll.ts';
import type { Watch } from './watch-rules.ts';

/**
 * Observations of one stage on one route, per age bin: number of ends, and watched time of transfers of that age.
 * Each observation is added with the weight of its time.
 */
export type Tally = { ended: readonly number[]; watchedSeconds: readonly number[] };

/** Unweighted addition of one poll to one bin. */
export type Increment = { bin: number; ended: number; watchedSeconds: number };

/** A stage was open at one age and, at the next poll, still open or ended. Ages in seconds. */
export type Interval = { fromSeconds: number; toSeconds: number; ended: boolean };

/** Weight of the expectation in observed transfers. No age counts less than a twentieth of them. */
export const PRIOR_TRANSFERS = 20;
const LEAST_REACHED = 0.05;

/** Tally without observations. */
export function emptyTally(): Tally {
  const zeros = AGE_BINS.map(() => 0);
  return { ended: zeros, watchedSeconds: zeros };
}

/**
 * Additions of an interval. The exact end within it is unknown: the end is spread over the bins by the present
 * estimate (the expectation step of EM), and so is the open time.
 */
export function increments(curve: HazardCurve, interval: Interval): Increment[] {
  const pieces = piecesOf(interval);
  if (!interval.ended) {
    return pieces.map(({ bin, seconds }) => ({ bin, ended: 0, watchedSeconds: seconds }));
  }
  let open = 1;
  const shares = pieces.map(({ bin, seconds }) => {
    const ends = open * -Math.expm1(-(curve[bin] ?? 0) * seconds);
    const mean = open - ends / 2;
    open -= ends;
    return { ends, mean };
  });
  const all = 1 - open;
  const whole = interval.toSeconds - interval.fromSeconds;
  return pieces.map(({ bin, seconds }, index) => {
    const { ends, mean } = shares[index] ?? { ends: 0, mean: 0 };
    if (!(all > 1e-9)) return { bin, ended: seconds / whole, watchedSeconds: seconds / 2 };
    return { bin, ended: ends / all, watchedSeconds: (seconds * (mean - open)) / all };
  });
}

function piecesOf({ fromSeconds, toSeconds }: Interval): { bin: number; seconds: number }[] {
  const pieces: { bin: number; seconds: number }[] = [];
  let from = Math.max(0, fromSeconds);
  while (from < toSeconds && Number.isFinite(toSeconds)) {
    const bin = binOf(from);
    const to = Math.min(toSeconds, upperEdge(bin));
    pieces.push({ bin, seconds: to - from });
    from = to;
  }
  return pieces;
}

/**
 * Hazard after the observations, with `weight` of the present time. Each bin has its own rate with the expectation as
 * (gamma) prior, so other shapes than log-normal are learned, and a bin with few observations stays near it.
 */
export function learnedHazard(expectation: Expectation, tally: Tally, weight: number): HazardCurve {
  const curve = expectedHazard(expectation);
  return updatedHazard({ curve, reached: expectation, transfers: PRIOR_TRANSFERS }, tally, weight);
}

export const NO_HAZARD: HazardCurve = AGE_BINS.map(() => boundedRate(0));

/** Prior of the rates, worth the given number of transfers; `reached` gives the share of them that reaches an age. */
type Prior = { curve: HazardCurve; reached: Expectation; transfers: number };

/** Hazard after the observations, each bin by itself. */
export function updatedHazard({ curve, reached, transfers }: Prior, tally: Tally, weight = 1): HazardCurve {
  return curve.map((expected, bin) => {
    const from = lowerEdge(bin);
    const width = Math.min(upperEdge(bin) - from, from);
    const share = Math.max(LEAST_REACHED, stillOpen(reached, from));
    const priorSeconds = transfers * share * (width || upperEdge(bin));
    const ended = (tally.ended[bin] ?? 0) / weight;
    const seconds = (tally.watchedSeconds[bin] ?? 0) / weight;
    return boundedRate((expected * priorSeconds + ended) / (priorSeconds + seconds));
  });
}

/** Observation of a stage's timing by a poll. `failed`: the stage failed within the interval. */
export type StageObservation = { route: string; watch: Watch; interval: Interval; failed: boolean };

/** A poll that found a subject in `status`. `seenAtMs`: the last poll that stored nothing, null for none. */
export type StatusPoll = {
  subject: SubjectId;
  before: Snapshot;
  seenAtMs: number | null;
  status: string;
  nowMs: number;
};

/** True when a transfer was refunded since the previous poll. */
export function isRefund({ subject, before, status }: StatusPoll): boolean {
  const [from, to] = [before.status.toLowerCase(), status.toLowerCase()];
  return to === REFUNDED && from !== REFUNDED && statusOf(subject, to) !== null;
}

const REFUNDED = 'refunded';

/** Observation of a stage's timing by a poll; null when nothing can be learned. */
export function observed(poll: StatusPoll): StageObservation | null {
  const { subject, before, status, nowMs } = poll;
  const { watch } = stageOf(subject, before.status);
  if (watch === null || before.unconfirmed !== null) return null;
  const step = stepBetween(subject, before.status, status);
  if (step === 'backward' || step === 'other') return null;
  const sinceMs = stageSinceMs(before);
  const fromMs = Math.max(before.observedAtMs, poll.seenAtMs ?? 0);
  if (fromMs >= nowMs) return null;
  const failed = step !== 'same' && statusOf(subject, status)?.isFailure === true;
  const interval = {
    fromSeconds: (fromMs - sinceMs) / 1_000,
    toSeconds: (nowMs - sinceMs) / 1_000,
    ended: step !== 'same' && !failed,
  };
  return { route: routeName(before.record), watch, interval, failed };
}
