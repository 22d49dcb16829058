import { z } from 'zod';

// Every message in the schemas is what was expected; what was found is added where positions and secrets are known.

/** A mapping with exactly these keys. */
export function mapping<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, { error: 'a mapping' });
}

/** A number of requests or the like: more than 0, at most `max`, fractions allowed. */
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

/** A name of a receiver or a subscription. */
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
