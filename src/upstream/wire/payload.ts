import { z } from 'zod';

/** A whole number that fits 256 bits, as digits: an amount or a nonce. */
export const digitsField = z.string().regex(/^\d{1,78}$/, { error: 'base units as digits' });

export const chainField = z
  .int({ error: 'a chain id as a whole number' })
  .min(1, { error: 'a chain id from 1' });

export const addressField = z.string().regex(/^[0-9A-Za-z]{20,90}$/, { error: 'an address' });

/** Serializes a request once, for identical resends. Throws a RangeError that names every bad field, without its value. */
export function payloadOf(schema: z.ZodType, value: unknown): string {
  const parsed = schema.safeParse(value);
  if (parsed.success) return JSON.stringify(parsed.data);
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'request'}: ${message}`);
  throw new RangeError(`request not sent: ${faults.join('; ')}`);
}
