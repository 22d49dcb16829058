import { parseDuration } from '../config/fields/fields.ts';

/** A time in the user's input: a time, or a span before now. */
export type TimeInput = { atMs: number } | { agoMs: number };

/** The accepted forms of such a time, for error messages. */
export const TIME_EXPECTED = 'a time with its zone like 2026-11-20T10:00:00Z, or a span like 2h';

/** Parses such a time; null for any other text. */
export function parseTime(text: string): TimeInput | null {
  const agoMs = parseDuration(text);
  if (agoMs !== null) return { agoMs };
  const atMs = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  return Number.isNaN(atMs) ? null : { atMs };
}

/** Converts it to ms since 1970, on the clock that reads `nowMs`. */
export function timeMs(written: TimeInput, nowMs: number): number {
  return 'atMs' in written ? written.atMs : nowMs - written.agoMs;
}

/** Formats a time for the API: UTC, with milliseconds. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Formats a time that may be unknown. */
export function isoTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}
