import type { BookState } from './book-state.ts';
import type { Posting } from './postings.ts';

/**
 * What became of an event for a receiver; `eventMs` is when it was first meant for that one, which may be later than it was
 * seen.
 */
export type ReportDelivery = { receiver: string; state: string; deliveredMs: number | null; eventMs: number };

/** An event of a transfer, with the state after it and what became of its deliveries. */
export type ReportEvent = {
  eventId: string;
  type: string;
  atMs: number;
  bookedMs: number;
  state: BookState;
  deliveries: readonly ReportDelivery[];
};

/** A transfer with all that was posted of it; its events in their order. */
export type ReportTransfer = {
  subject: string;
  postings: readonly Posting[];
  events: readonly ReportEvent[];
};

/** A transfer as it stood when the day ended. */
export type DayTransfer = ReportTransfer & {
  state: BookState;
  /** Net count of what had started and not ended, when the day began and when it ended. */
  openBefore: number;
  openAfter: number;
  inDay: readonly Posting[];
  eventsInDay: readonly ReportEvent[];
};

/** The deliveries that count in a day: nobody could be reported by then of what was meant for a receiver only later. */
export function deliveriesBy({ atMs, deliveries }: ReportEvent, tellByMs: number): ReportDelivery[] {
  return deliveries.filter(({ eventMs }) => eventMs <= Math.max(atMs, tellByMs));
}
