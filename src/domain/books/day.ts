import { isTimeZone, offsetMs } from '../events/batching.ts';
import type { BookState } from './book-state.ts';
import type { Posting } from './postings.ts';

const HOUR_MS = 3_600_000;

/** A day of a time zone: from its first ms to that of the next day. It has 23 or 25 hours when clocks change. */
export type Day = { day: string; zone: string; fromMs: number; toMs: number };

/** A day or a zone that does not exist. */
export class NoSuchDayError extends Error {
  override readonly name = 'NoSuchDayError';
}

const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;

/** Returns a day of a zone. Throws a NoSuchDayError for one that the calendar or the zone does not have. */
export function dayOf(day: string, zone: string): Day {
  checkedZone(zone);
  const next = nextDay(day);
  const [fromMs, toMs] = [startMs(day, zone), startMs(next, zone)];
  if (toMs <= fromMs) throw new NoSuchDayError(`found ${day}, a day that ${zone} left out`);
  return { day, zone, fromMs, toMs };
}

/** Returns a zone that exists. Throws a NoSuchDayError for another. */
export function checkedZone(zone: string): string {
  if (/^[A-Za-z]/.test(zone) && isTimeZone(zone)) return zone;
  throw new NoSuchDayError(
    `found the zone ${JSON.stringify(zone.slice(0, 60))}, expected a time zone of the IANA database, like Europe/Paris`,
  );
}

/** Day of a zone in which a time lies. */
export function dayAt(ms: number, zone: string): Day {
  return dayOf(dateOf(ms, zone), zone);
}

/** Returns the day after. */
export function nextDay(day: string): string {
  return shifted(day, 1);
}

/** Returns the day before. */
export function previousDay(day: string): string {
  return shifted(day, -1);
}

function shifted(day: string, days: number): string {
  const [, year, month, date] = DAY.exec(day) ?? [];
  const ms = Date.UTC(Number(year), Number(month) - 1, Number(date));
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== day || !isCounted(Number(year))) {
    throw new NoSuchDayError(
      `found ${JSON.stringify(day.slice(0, 40))}, expected a day of the calendar, like 2026-11-21`,
    );
  }
  return new Date(ms + days * 24 * HOUR_MS).toISOString().slice(0, 10);
}

/** Times begin in 1970, and the day after the last valid one has five digits of a year. */
function isCounted(year: number): boolean {
  return year >= 1970 && year < 9999;
}

function dateOf(ms: number, zone: string): string {
  return new Date(ms + offsetMs(zone, ms)).toISOString().slice(0, 10);
}

/** First ms whose date is the day or a later one: no zone is more than 15 hours from UTC. */
function startMs(day: string, zone: string): number {
  const midnightMs = Date.parse(`${day}T00:00:00Z`);
  let [earlierMs, laterMs] = [midnightMs - 16 * HOUR_MS, midnightMs + 16 * HOUR_MS];
  while (laterMs - earlierMs > 1) {
    const middleMs = Math.floor((earlierMs + laterMs) / 2);
    if (dateOf(middleMs, zone) >= day) laterMs = middleMs;
    else earlierMs = middleMs;
  }
  return laterMs;
}

/** Delivery to a receiver. `eventMs`: time at which the event was first due for it, maybe later than its observation. */
export type ReportDelivery = { receiver: string; state: string; deliveredMs: number | null; eventMs: number };

/** An event of a transfer, with the state after it and its deliveries. */
export type ReportEvent = {
  eventId: string;
  type: string;
  atMs: number;
  bookedMs: number;
  state: BookState;
  deliveries: readonly ReportDelivery[];
};

/** A transfer with all its postings; its events in order. */
export type ReportTransfer = {
  subject: string;
  postings: readonly Posting[];
  events: readonly ReportEvent[];
};

/** A transfer at the end of the day. */
export type DayTransfer = ReportTransfer & {
  state: BookState;
  /** Net count of started and not ended transfers, at the start and at the end of the day. */
  openBefore: number;
  openAfter: number;
  inDay: readonly Posting[];
  eventsInDay: readonly ReportEvent[];
};

/** Deliveries that count in a day: a delivery that became due for its receiver later does not. */
export function deliveriesBy({ atMs, deliveries }: ReportEvent, reportByMs: number): ReportDelivery[] {
  return deliveries.filter(({ eventMs }) => eventMs <= Math.max(atMs, reportByMs));
}
