import type { PlannedPoll } from './next-poll.ts';
import { keepable, virtualSeconds } from './wait.ts';
import type { CadenceModel } from './watched.ts';

/*
 * A transaction or a quote can lead to several transfers, which the upstream may index one by one. It is polled for further
 * ones:
 *
 *   | state   | while                                                                   | next poll                      |
 *   | unseen  | no answer has shown a transfer                                          | that of any id never seen      |
 *   | watched | one of its transfers is open, or it showed a new one in the last 24 h   | `nextForMore`: a wait that     |
 *   |         |                                                                         | grows with the time since then |
 *   | over    | neither                                                                 | none                           |
 *
 * A new transfer moves it to `watched` and begins the wait anew. A new claim, or a request for a poll, has one that is over
 * polled once more.
 */

/** The transfers that a subject has led to: when it last showed a new one (Redis time, null for never), and whether one of them is open. */
export type FurtherTransfers = { newestAtMs: number | null; isOpen: boolean };

/** In which state a subject is, and its next poll for further transfers. */
export type FurtherPoll = { state: 'unseen' | 'over' } | { state: 'watched'; next: PlannedPoll };

/** For so long after the newest transfer another may come. */
const AWAITED_MS = 86_400_000;

/** The wait is a tenth of the time since the newest transfer, within bounds (seconds, at a price of 1). */
const SHARE_OF_AGE = 0.1;
const SHORTEST_SECONDS = 5;
const LONGEST_SECONDS = 3_600;

/** The bounds of the wait at any price: as those of other stages that have no model. */
const LEAST_SHARE = 0.2;
const LEAST_FACTOR = 2;
const MOST_FACTOR = 6;
const MOST_SECONDS = 7_200;

/** Says in which state a subject is, and when it is polled for further transfers. Its last poll was just now. */
export function nextForMore(
  { newestAtMs, isOpen }: FurtherTransfers,
  { nowMs, price, model }: { nowMs: number; price: number; model: CadenceModel },
): FurtherPoll {
  if (newestAtMs === null) return { state: 'unseen' };
  const ageMs = Math.max(0, nowMs - newestAtMs);
  if (!isOpen && ageMs >= AWAITED_MS) return { state: 'over' };
  const everySeconds = Math.min(LONGEST_SECONDS, Math.max(SHORTEST_SECONDS, (SHARE_OF_AGE * ageMs) / 1_000));
  const { leastSeconds: shortest, mostSeconds: longest } = model.rules.pending.limits;
  const { leastSeconds, mostSeconds } = keepable({
    leastSeconds: Math.max(LEAST_FACTOR * shortest, LEAST_SHARE * everySeconds),
    mostSeconds: Math.max(longest, Math.min(MOST_SECONDS, MOST_FACTOR * everySeconds)),
  });
  const next: PlannedPoll = {
    virtualSeconds: virtualSeconds({ terms: [], constant: 2 / everySeconds ** 2, price }),
    restMs: 1_000 * leastSeconds,
    latestMs: 1_000 * mostSeconds,
    alarmMs: null,
    unseen: false,
  };
  return { state: 'watched', next };
}
