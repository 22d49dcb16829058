/** Times of day between which nothing is sent, as a wall clock in a time zone shows them. `from` may lie after `to`. */
export type QuietHours = {
  /** Minutes after midnight: the first that is quiet. */
  fromMinute: number;
  /** Minutes after midnight: the first that is not quiet any more. Never equal to `fromMinute`. */
  toMinute: number;
  /** A name of the IANA database. */
  timeZone: string;
};

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * When the quiet hours end that a moment lies in, ms; null when it lies in none. It is quiet exactly while the wall clock
 * shows a time of the range: a clock that is put forward over `to` ends it there, one that is put back behind `to`
 * begins it again.
 */
export function quietUntilMs(quiet: QuietHours, nowMs: number): number | null {
  let atMs = nowMs;
  // Each turn ends at `to` or at a change of the clock; no zone has several changes in a day.
  for (let turn = 0; turn < 10 && isQuiet(quiet, atMs); turn += 1) {
    const endMs = atMs + untilTo(quiet, atMs);
    atMs = clockChange(quiet.timeZone, { fromMs: atMs, toMs: endMs }) ?? endMs;
  }
  return atMs === nowMs ? null : atMs;
}

function isQuiet({ fromMinute, toMinute, timeZone }: QuietHours, atMs: number): boolean {
  const minute = timeOfDayMs(timeZone, atMs) / MINUTE_MS;
  return fromMinute < toMinute
    ? minute >= fromMinute && minute < toMinute
    : minute >= fromMinute || minute < toMinute;
}

/** The time that until the wall clock shows `to`, if nobody changes it, ms. */
function untilTo({ toMinute, timeZone }: QuietHours, atMs: number): number {
  return (toMinute * MINUTE_MS - timeOfDayMs(timeZone, atMs) + DAY_MS) % DAY_MS;
}

function timeOfDayMs(timeZone: string, atMs: number): number {
  return (((atMs + offsetMs(timeZone, atMs)) % DAY_MS) + DAY_MS) % DAY_MS;
}

/** The first moment in a span from which the wall clock is another step ahead of UTC than at its beginning. */
function clockChange(timeZone: string, { fromMs, toMs }: { fromMs: number; toMs: number }): number | null {
  const before = offsetMs(timeZone, fromMs);
  if (offsetMs(timeZone, toMs) === before) return null;
  let [lastMs, changedMs] = [fromMs, toMs];
  while (changedMs - lastMs > 1) {
    const middleMs = Math.floor((lastMs + changedMs) / 2);
    if (offsetMs(timeZone, middleMs) === before) lastMs = middleMs;
    else changedMs = middleMs;
  }
  return changedMs;
}

const CLOCKS = new Map<string, Intl.DateTimeFormat>();

/** How far the wall clock of a zone is ahead of UTC, ms. */
export function offsetMs(timeZone: string, atMs: number): number {
  const wholeMs = Math.floor(atMs / 1_000) * 1_000;
  const parts = new Map(
    clockOf(timeZone)
      .formatToParts(wholeMs)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
  const date = [part('year'), part('month') - 1, part('day')] as const;
  return Date.UTC(...date, part('hour'), part('minute'), part('second')) - wholeMs;
}

/** Making a format costs far more than using it. */
function clockOf(timeZone: string): Intl.DateTimeFormat {
  let clock = CLOCKS.get(timeZone);
  if (clock === undefined) {
    const numeric = 'numeric';
    clock = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: numeric,
      month: numeric,
      day: numeric,
      hour: numeric,
      minute: numeric,
      second: numeric,
    });
    CLOCKS.set(timeZone, clock);
  }
  return clock;
}

/** True when a text is a time zone that quiet hours can be stored in. */
export function isTimeZone(name: string): boolean {
  try {
    clockOf(name);
    return true;
  } catch {
    return false;
  }
}

/** When the events of a receiver are sent together: `everyMs` after the first, or at once when `max` wait. */
type DigestRule = { everyMs: number; max: number };

/** What makes events wait for each other; with neither, each is sent by itself at once. */
export type BatchingRules = { digest: DigestRule | null; quietHours: QuietHours | null };

/** The number of events one digest holds at most. */
export const MOST_IN_DIGEST = 100;

/**
 * A delivery that may be due. `joinedAtMs` is since when it waits (Redis time), now if it does not; `waiting` counts all
 * that wait.
 */
type BatchState = { joinedAtMs: number; isWaiting: boolean; waiting: number };

/**
 * What is to be done about a delivery: `wait` until a moment, send it `alone`, or send all that wait `together`.
 * `reason` says why.
 */
export type Plan =
  | { do: 'wait'; untilMs: number; reason: 'quiet' | 'batching' }
  | { do: 'alone'; reason: 'immediate' }
  | { do: 'together'; reason: 'enough' | 'time' | 'quiet-is-over' };

/** True when a delivery that comes up now joins those that wait. */
export function joinsWaiting({ digest, quietHours }: BatchingRules, nowMs: number): boolean {
  return digest !== null || (quietHours !== null && quietUntilMs(quietHours, nowMs) !== null);
}

/**
 * Decides about a delivery that comes up. Every delivery comes up when it is due, and the first that is takes all that
 * wait with it: so a digest goes out when the oldest is due, and the next one's time begins with the first event after.
 */
export function planBatch(rules: BatchingRules, batch: BatchState, nowMs: number): Plan {
  const { digest, quietHours } = rules;
  const { joinedAtMs, isWaiting, waiting } = batch;
  const quietEndMs = quietHours === null ? null : quietUntilMs(quietHours, nowMs);
  if (quietEndMs !== null) return { do: 'wait', untilMs: quietEndMs, reason: 'quiet' };
  if (digest === null)
    return isWaiting ? { do: 'together', reason: 'quiet-is-over' } : { do: 'alone', reason: 'immediate' };
  if (waiting >= digest.max) return { do: 'together', reason: 'enough' };
  const heldUntilMs = quietHours === null ? null : quietUntilMs(quietHours, joinedAtMs);
  if (heldUntilMs !== null) return { do: 'together', reason: 'quiet-is-over' };
  const dueMs = joinedAtMs + digest.everyMs;
  return dueMs <= nowMs
    ? { do: 'together', reason: 'time' }
    : { do: 'wait', untilMs: dueMs, reason: 'batching' };
}
