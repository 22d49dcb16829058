import { BoundedMap, bytesOfTexts, CACHES } from '../caches.ts';

/** Times of day without deliveries, by the wall clock of a time zone. `from` may be after `to`. */
export type QuietHours = {
  /** First quiet minute after midnight. */
  fromMinute: number;
  /** First minute after midnight that is not quiet. Never equal to `fromMinute`. */
  toMinute: number;
  /** Name in the IANA database. */
  timeZone: string;
};

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * End of the quiet hours that a time lies in, ms; null when it lies in none. A time is quiet exactly while the wall
 * clock is in the range: a clock put forward over `to` ends it there, one put back behind `to` restarts it.
 */
export function quietUntilMs(quiet: QuietHours, nowMs: number): number | null {
  let atMs = nowMs;
  // Each turn ends at `to` or at a clock change; no zone has several changes in a day.
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

/** Time until the wall clock shows `to`, without clock changes, ms. */
function untilTo({ toMinute, timeZone }: QuietHours, atMs: number): number {
  return (toMinute * MINUTE_MS - timeOfDayMs(timeZone, atMs) + DAY_MS) % DAY_MS;
}

function timeOfDayMs(timeZone: string, atMs: number): number {
  return (((atMs + offsetMs(timeZone, atMs)) % DAY_MS) + DAY_MS) % DAY_MS;
}

/** First time in a span at which the offset from UTC differs from that at its start; null for none. */
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

const CLOCKS = new BoundedMap<string, Intl.DateTimeFormat>({
  ...CACHES.timeZones,
  bytesOf: (timeZone) => bytesOfTexts(timeZone),
});

/** Offset of a zone's wall clock ahead of UTC, ms. */
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

/** Cached: making a format costs far more than using it. */
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

/** True when a text is a time zone that quiet hours accept. */
export function isTimeZone(name: string): boolean {
  try {
    clockOf(name);
    return true;
  } catch {
    return false;
  }
}

/** The events of a receiver are sent together `everyMs` after the first, or at once when `max` wait. */
type DigestRule = { everyMs: number; max: number };

/** Rules that make events wait for each other; with neither, each is sent alone at once. */
export type BatchingRules = { digest: DigestRule | null; quietHours: QuietHours | null };

export const MOST_IN_DIGEST = 100;

/** A delivery that may be due. `joinedAtMs`: begin of its wait (Redis time), else now; `waiting`: number of waiting ones. */
type BatchState = { joinedAtMs: number; isWaiting: boolean; waiting: number };

/** Decision on a delivery: `wait` until a time, send it `alone`, or send all waiting ones `together`. */
export type Plan =
  | { do: 'wait'; untilMs: number; reason: 'quiet' | 'batching' }
  | { do: 'alone'; reason: 'immediate' }
  | { do: 'together'; reason: 'enough' | 'time' | 'quiet-is-over' };

/** True when a delivery that becomes due now joins the waiting ones. */
export function joinsWaiting({ digest, quietHours }: BatchingRules, nowMs: number): boolean {
  return digest !== null || (quietHours !== null && quietUntilMs(quietHours, nowMs) !== null);
}

/**
 * Decides on a due delivery. Each delivery becomes due by itself, and the first takes all waiting ones with it. So a
 * digest is sent when its oldest event is due, and the next digest's time begins with the first event after it.
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
