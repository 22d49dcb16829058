import { contentOf } from '../sandbox/world/record.ts';
import type { RenderedEvent } from '../src/domain/events/event.ts';
import { hasRival, type Observation } from './observation.ts';
import { isBackward } from './steps.ts';

/**
 * Reasons why an event was reported, or was not, against the rule for a single answer:
 *
 * - `history`: first observed with an `updatedAt` before the wallet was watched: no event.
 * - `overtaken`: another answer about the subject was under way at the same time and was ingested first.
 * - `lost`: the answer came while the watcher, or its store, was down, or it was never sent whole.
 * - `stale`: the answer was older than the known state, or `unknown`, or a step back without a newer time.
 * - `confirmed`: exact polls repeated a stale answer for so long that it counts.
 * - `clock`: time caused the event, not an answer.
 */
export const TOLERANCES = ['history', 'overtaken', 'lost', 'stale', 'confirmed', 'clock'] as const;

export type Tolerance = (typeof TOLERANCES)[number];

/** Settings and history of the watcher that the account needs. */
export type Rules = {
  /** Time for which exact polls must repeat a stale answer before it counts, in ms. */
  confirmAfterMs: number;
  /** Time after its last byte in which an answer may be ingested, in ms. */
  slackMs: number;
  /** First observations with an `updatedAt` before this (Unix seconds) may be history; null for none. */
  historyBefore: number | null;
  /** Times at which the watcher, or its store, was down (Unix ms): it may have lost answers of these times. */
  outages: readonly { fromMs: number; untilMs: number }[];
};

/** Time after which a return is confirmed where no answer has a time, ms: sooner than `confirmAfterMs`. */
const TIMELESS_CONFIRM_MS = 45_000;

const USUAL: Rules = { confirmAfterMs: 600_000, slackMs: 250, historyBefore: null, outages: [] };

/** Result for one subject; `stored` is the watcher's last stored status; null for none. */
export type Story = { problems: string[]; tolerated: Record<Tolerance, number>; stored: string | null };

type Facts = RenderedEvent['data'];

/**
 * State of the watcher: the last ingested record. `isReported`: it has an event. `left`: the earlier statuses and contents
 * under this `updatedAt`; the watcher returns to them only after exact polls have confirmed it.
 */
type StoredRecord = Pick<Observation, 'status' | 'updatedAt' | 'content'> & {
  isReported: boolean;
  left: readonly string[];
  unconfirmed: { key: string; sinceMs: number } | null;
};

/** One way in which the answers so far explain the first `reported` events. */
type Way = { reported: number; stored: StoredRecord | null; tolerated: Record<Tolerance, number> };

const UNKNOWN = 'unknown';

/**
 * Finds a way in which the observations of a subject explain its events. It follows all ways at once: of two answers under
 * way at one time, an outside observer cannot know which was ingested. Of equal ways it selects the one with the fewest
 * tolerances; a dropped answer is the last choice.
 */
export function explain(input: {
  subject: string;
  observations: readonly Observation[];
  events: readonly RenderedEvent[];
  rules: Partial<Rules>;
}): Story {
  const { subject, observations } = input;
  const rules = { ...USUAL, ...input.rules };
  const events = input.events.map(({ data }) => data).sort((a, b) => a.sequence - b.sequence);
  if (events.some(({ sequence }, index) => sequence !== index + 1)) {
    const found = events.map(({ sequence }) => sequence).join(', ');
    return failed(`${subject} has sequences ${found}, expected 1 to ${events.length}`);
  }
  let ways: Way[] = [{ reported: 0, stored: null, tolerated: none() }];
  const statuses = new Set<string>();
  for (const [index, observation] of observations.entries()) {
    const isDroppable = dropReason(observations, index, rules);
    const wasShown = statuses.has(observation.status);
    statuses.add(observation.status);
    const next = ways.flatMap((way) => {
      const next = take(way, { subject, observation, wasShown, events, rules });
      return isDroppable === null ? next : [...next, tolerate(way, isDroppable)];
    });
    const left = fewest(next.flatMap((way) => withClock(way, events)));
    if (left.length === 0) return failed(unexplained({ ...input, observation, ways, events }));
    ways = left;
  }
  const complete = ways
    .filter(({ reported }) => reported === events.length)
    .sort((a, b) => weight(a) - weight(b));
  const [best] = complete;
  if (best === undefined) return failed(invented({ ...input, ways, events }));
  return { problems: [], tolerated: best.tolerated, stored: best.stored?.status ?? null };
}

/** `wasShown`: an earlier answer had the status of this one. */
type Step = {
  subject: string;
  observation: Observation;
  wasShown: boolean;
  events: readonly Facts[];
  rules: Rules;
};

/** All ways in which the watcher may ingest an answer; empty when it requires an event that did not come. */
function take(way: Way, step: Step): Way[] {
  const { observation, rules } = step;
  const { stored } = way;
  if (stored === null) {
    if (observation.status === UNKNOWN) return [way];
    const history =
      rules.historyBefore !== null &&
      observation.updatedAt !== null &&
      observation.updatedAt < rules.historyBefore;
    const silent = history ? [tolerate(replaced(way, observation, { isReported: false }), 'history')] : [];
    return [...silent, ...reportedAs(way, step, { from: null, regression: false, whole: true })];
  }
  if (stored.status === UNKNOWN) {
    if (observation.status === UNKNOWN) return [way];
    return reportedAs(way, step, { from: UNKNOWN, regression: false, whole: false });
  }
  if (isStale(step.subject, stored, observation)) return takeStale(way, stored, step);
  const isNewer = isAfter(observation, stored);
  const isUntimed = observation.updatedAt === null || stored.updatedAt === null;
  if (observation.status !== stored.status) {
    const regression = isBackward(step.subject, stored.status, observation.status);
    const fresh = reportedAs(way, step, { from: stored.status, regression, whole: isNewer });
    // Without a time, even a status that had an earlier time may come from a replica that lags.
    return isUntimed && step.wasShown ? [...fresh, ...takeStale(way, stored, step)] : fresh;
  }
  // Former contents of another time do not affect this one.
  const left = isNewer ? [] : stored.left;
  const same: Way = {
    ...way,
    stored: { ...stored, updatedAt: timeOf(observation, stored), left, unconfirmed: null },
  };
  const ways = [same];
  if (!stored.isReported)
    ways.push(...reportedAs(way, step, { from: null, regression: false, whole: false }));
  if (stored.left.includes(observation.content)) ways.push(...takeStale(way, stored, step));
  if (observation.content !== stored.content) {
    ways.push(...reportedAs(way, step, { from: stored.status, regression: false, whole: false }));
    // A part of the record may have gone back, which exact polls must confirm: the next event reports it.
    const next = step.events[way.reported];
    const canGoBack = stored.left.length > 0 || isUntimed;
    const goesBack = canGoBack && next?.regression === true && next.status === stored.status;
    if (goesBack) ways.push(...takeStale(way, stored, step));
  }
  return ways;
}

/** Ignores a stale answer; it may count once exact polls have repeated it for long enough. */
function takeStale(way: Way, stored: StoredRecord, step: Step): Way[] {
  const { observation, rules } = step;
  const ignored = observation.status === stored.status ? way : tolerate(way, 'stale');
  if (observation.isPage) return [ignored];
  const key = `${observation.status}@${observation.updatedAt}`;
  const sinceMs = stored.unconfirmed?.key === key ? stored.unconfirmed.sinceMs : observation.at;
  const unconfirming = { ...ignored, stored: { ...stored, unconfirmed: { key, sinceMs } } };
  const isTimeless =
    stored.updatedAt === null && observation.updatedAt === null && observation.status !== UNKNOWN;
  const confirmAfterMs = isTimeless
    ? Math.min(rules.confirmAfterMs, TIMELESS_CONFIRM_MS)
    : rules.confirmAfterMs;
  if (observation.at - sinceMs < confirmAfterMs - rules.slackMs) return [unconfirming];
  const how = { from: stored.status, regression: observation.status !== UNKNOWN, whole: false };
  // An answer that counts against a known time also replaces that time, even by none.
  const timeless: Way = { ...way, stored: { ...stored, updatedAt: null } };
  const silent = replaced(timeless, observation, { isReported: stored.isReported });
  const confirmed = [
    ...(observation.status === stored.status ? [silent] : []),
    ...reportedAs(timeless, step, how),
  ];
  return [unconfirming, ...confirmed.map((one) => tolerate(one, 'confirmed'))];
}

/**
 * Continues where the next event reports this answer: a first observation (`from` null), a new status, or other changes in
 * the same one; otherwise empty. `whole`: the event's record must equal the answer's, without earlier parts.
 */
function reportedAs(
  way: Way,
  { observation, events }: Step,
  how: { from: string | null; regression: boolean; whole: boolean },
): Way[] {
  const event = events[way.reported];
  const fits =
    event !== undefined &&
    event.status === observation.status &&
    event.previousStatus === how.from &&
    event.upstreamUpdatedAt === timeOf(observation, way.stored) &&
    (event.regression ?? false) === how.regression &&
    event.changes.length > 0 &&
    (!how.whole || contentOf(event.record) === observation.content);
  return fits ? [{ ...replaced(way, observation, { isReported: true }), reported: way.reported + 1 }] : [];
}

/**
 * The way, and its continuations by events of the clock. These are about the known status, or about `unknown` where none is,
 * as of an imported quote that expires before the upstream shows it.
 */
function withClock(way: Way, events: readonly Facts[]): Way[] {
  const event = events[way.reported];
  const isByClock =
    event !== undefined &&
    event.changes.length === 0 &&
    event.previousStatus === event.status &&
    event.status === (way.stored?.status ?? UNKNOWN);
  if (!isByClock) return [way];
  const stored = way.stored ?? NEVER_SHOWN;
  return [way, ...withClock(tolerate({ ...way, stored, reported: way.reported + 1 }, 'clock'), events)];
}

/** State after an event of the clock about a subject that the upstream has not shown. */
const NEVER_SHOWN: StoredRecord = {
  status: UNKNOWN,
  updatedAt: null,
  content: '',
  isReported: true,
  left: [],
  unconfirmed: null,
};

function isStale(subject: string, stored: StoredRecord, { status, updatedAt }: Observation): boolean {
  if (status === UNKNOWN) return true;
  if (stored.updatedAt !== null && updatedAt !== null && updatedAt !== stored.updatedAt) {
    return updatedAt < stored.updatedAt;
  }
  return isBackward(subject, stored.status, status) || stored.left.includes(status);
}

function isAfter(observation: Observation, stored: StoredRecord): boolean {
  return (
    stored.updatedAt !== null && observation.updatedAt !== null && observation.updatedAt > stored.updatedAt
  );
}

/** The time of an observation; one without a time leaves the known time unchanged. */
function timeOf(observation: Observation, stored: StoredRecord | null): number | null {
  return observation.updatedAt ?? stored?.updatedAt ?? null;
}

function replaced(way: Way, observation: Observation, { isReported }: { isReported: boolean }): Way {
  const { status, content } = observation;
  const updatedAt = timeOf(observation, way.stored);
  const stored = {
    status,
    content,
    updatedAt,
    isReported,
    unconfirmed: null,
    left: leftBy(way.stored, observation),
  };
  return { ...way, stored };
}

/** Contents that an observation replaces; a new time clears them. */
function leftBy(stored: StoredRecord | null, observation: Observation): string[] {
  if (stored === null) return [];
  if (
    stored.updatedAt !== null &&
    observation.updatedAt !== null &&
    stored.updatedAt !== observation.updatedAt
  )
    return [];
  const { status, content } = observation;
  return [...stored.left, stored.status, stored.content].filter((one) => one !== status && one !== content);
}

function dropReason(observations: readonly Observation[], index: number, rules: Rules): Tolerance | null {
  const observation = observations[index];
  if (observation === undefined) return null;
  const untilMs = (observation.doneAt ?? observation.at) + rules.slackMs;
  const isOut = rules.outages.some(
    (outage) => outage.fromMs <= untilMs && outage.untilMs >= observation.requestedAt,
  );
  if (isOut || observation.doneAt === null) return 'lost';
  return hasRival(observations, index, rules.slackMs) ? 'overtaken' : null;
}

function fewest(ways: readonly Way[]): Way[] {
  const best = new Map<string, Way>();
  for (const way of ways) {
    const key = JSON.stringify([way.reported, way.stored]);
    const other = best.get(key);
    if (other === undefined || weight(way) < weight(other)) best.set(key, way);
  }
  return [...best.values()];
}

function none(): Record<Tolerance, number> {
  return { history: 0, overtaken: 0, lost: 0, stale: 0, confirmed: 0, clock: 0 };
}

function tolerate(way: Way, reason: Tolerance): Way {
  return { ...way, tolerated: { ...way.tolerated, [reason]: way.tolerated[reason] + 1 } };
}

/** Weighs a way. A dropped answer is the last choice: the rules explain most without. */
function weight({ tolerated }: Way): number {
  const dropped = tolerated.overtaken + tolerated.lost;
  return TOLERANCES.reduce((sum, reason) => sum + tolerated[reason], dropped * 100);
}

function failed(problem: string): Story {
  return { problems: [problem], tolerated: none(), stored: null };
}

type Failure = {
  subject: string;
  observations: readonly Observation[];
  ways: readonly Way[];
  events: readonly Facts[];
};

function unexplained({
  subject,
  observation,
  ways,
  ...rest
}: Failure & { observation: Observation }): string {
  const states = [...new Set(ways.map((way) => (way.stored === null ? 'nothing' : words(way.stored))))];
  const text = `was shown as ${words(observation)} at ${observation.at} where ${states.join(' or ')} was known`;
  return `${subject} ${text}, which no event reports; ${context({ subject, ways, ...rest })}`;
}

function invented({ subject, ways, events, observations }: Failure): string {
  const reported = Math.max(...ways.map((way) => way.reported));
  const event = events[reported];
  const text = event === undefined ? 'nothing' : eventWords(event);
  return `${subject} was reported as ${text} (sequence ${reported + 1}), which no answer explains; ${context({ subject, ways, events, observations })}`;
}

function context({ observations, events }: Failure): string {
  const isNew = (one: Observation, index: number): boolean => {
    const before = observations[index - 1];
    return before === undefined || words(before) !== words(one);
  };
  const shown = observations.filter(isNew).map((one) => `${words(one)} at ${one.at}`);
  return `shown: ${shown.join(', ')}; reported: ${events.map(eventWords).join(', ')}`;
}

function words({ status, updatedAt }: Pick<Observation, 'status' | 'updatedAt'>): string {
  return updatedAt === null ? status : `${status}@${updatedAt}`;
}

function eventWords({ status, previousStatus, upstreamUpdatedAt, regression, changes }: Facts): string {
  const moved = `${status} after ${previousStatus ?? 'nothing'}`;
  const word = status === previousStatus ? `${status} (${changes.join(' ') || 'clock'})` : moved;
  return `${word}@${upstreamUpdatedAt}${regression ? ' back' : ''}`;
}
