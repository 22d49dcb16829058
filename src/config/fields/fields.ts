import { z } from 'zod';
import { LIMITS } from '../../domain/limits.ts';

// Every message in the schemas is the expected value. The found value is added where positions and secrets are known.

/** A mapping with exactly these keys. */
export function mapping<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, { error: 'a mapping' });
}

/** A rate: more than 0, at most `max`, fractions allowed. */
export function rateField({ max }: { max: number }) {
  const error = `a number above 0, at most ${max}`;
  return z.number({ error }).gt(0, { error }).max(max, { error });
}

/** A whole number within bounds, both included. */
export function wholeNumberField({ min, max }: { min: number; max: number }) {
  const error =
    max === Number.MAX_SAFE_INTEGER
      ? `a whole number of at least ${min}`
      : `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

/** `true` or `false`. */
export function flagField() {
  return z.boolean({ error: 'true or false' });
}

/** Text that matches a pattern. */
export function textField({ pattern, expected }: { pattern: RegExp; expected: string }) {
  return z.string({ error: expected }).regex(pattern, { error: expected });
}

export const nameField = textField({
  pattern: /^[a-z0-9][a-z0-9-]{0,62}$/,
  expected: 'a name of 1 to 63 lower-case letters, digits and hyphens that does not begin with a hyphen',
});

const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;

/** A UUID without the upstream's prefix, read in lower case. */
export function uuidField({ prefix }: { prefix: string }) {
  return textField({
    pattern: UUID,
    expected: `a UUID without the prefix "${prefix}", like 3f1c2a9e-5b7d-4c1e-9a53-0d6f8e2b7c41`,
  }).transform((uuid) => uuid.toLowerCase());
}

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION = /^(\d{1,9})(ms|s|m|h|d)$/;

/** Parses a duration such as `500ms`, `2s`, `15m`, `1h` or `5d` into milliseconds; null for any other text. */
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

/** A duration between two others, read as milliseconds. */
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

export const METADATA_LIMIT = `at most ${LIMITS.metadata.bytes} bytes of metadata, as JSON in UTF-8`;

/** True when metadata is within the limit of one subscription or tracked subject. */
export function fitsMetadata(metadata: Record<string, string>): boolean {
  return Buffer.byteLength(JSON.stringify(metadata), 'utf8') <= LIMITS.metadata.bytes;
}
