import { InvalidArgumentError } from 'commander';
import { parseDuration } from '../config/fields/duration.ts';

/** A moment as it was typed: a time, or a span before now. */
export type Moment = { atMs: number } | { agoMs: number };

/** Reads a moment from the command line. */
export function moment(text: string): Moment {
  const agoMs = parseDuration(text);
  if (agoMs !== null) return { agoMs };
  const atMs = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  if (Number.isNaN(atMs)) {
    throw new InvalidArgumentError(
      'expected a time with its zone like 2026-11-20T10:00:00Z, or a span like 2h',
    );
  }
  return { atMs };
}

/** A moment as ms since 1970, on the clock that says `nowMs`. */
export function momentMs(typed: Moment, nowMs: number): number {
  return 'atMs' in typed ? typed.atMs : nowMs - typed.agoMs;
}
