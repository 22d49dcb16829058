import { z } from 'zod';

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION = /^(\d{1,9})(ms|s|m|h|d)$/;

/** Milliseconds of a duration such as `500ms`, `2s`, `15m`, `1h` or `5d`; null for any other text. */
export function parseDuration(text: string): number | null {
  const [, count, unit] = DURATION.exec(text) ?? [];
  switch (unit) {
    case 'ms':
    case 's':
    case 'm':
    case 'h':
    case 'd':
      return Number(count) * UNIT_MS[unit];
    default:
      return null;
  }
}

/** A field that is written as a duration between two others and read as milliseconds. */
export function durationField({ min, max }: { min: string; max: string }) {
  const expected = `a duration from ${min} to ${max} (a whole number and ms, s, m, h or d)`;
  const [minMs, maxMs] = [parseDuration(min) ?? 0, parseDuration(max) ?? 0];
  return z
    .string({ error: expected })
    .regex(DURATION, { error: expected })
    .transform((text, context) => {
      const ms = parseDuration(text);
      if (ms !== null && ms >= minMs && ms <= maxMs) return ms;
      context.addIssue({ code: 'custom', message: expected });
      return z.NEVER;
    });
}
