import { parseDuration } from '../config/fields/fields.ts';

/** A time as it was written: a time, or a span before now. */
export type Moment = { atMs: number } | { agoMs: number };

/** How a moment is written, for those who wrote something else. */
export const MOMENT_EXPECTED = 'a time with its zone like 2026-11-20T10:00:00Z, or a span like 2h';

/** Reads a moment; null for any other text. */
export function parseMoment(text: string): Moment | null {
  const agoMs = parseDuration(text);
  if (agoMs !== null) return { agoMs };
  const atMs = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  return Number.isNaN(atMs) ? null : { atMs };
}

/** A time as ms since 1970, on the clock that says `nowMs`. */
export function momentMs(written: Moment, nowMs: number): number {
  return 'atMs' in written ? written.atMs : nowMs - written.agoMs;
}

/** A time as the API writes it: UTC, with milliseconds. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** The same of a time that may not be known. */
export function isoTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}
