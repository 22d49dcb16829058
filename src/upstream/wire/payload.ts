import { z } from 'zod';

/** A whole number that fits 256 bits, as digits: an amount or a nonce. */
export const digitsField = z.string().regex(/^\d{1,78}$/, { error: 'base units as digits' });

const SECONDS = { error: 'Unix seconds' };

/** Unix seconds, as a number or its digits. Sent unchanged. */
export const secondsField = z.union(
  [z.int().nonnegative(SECONDS), z.string().regex(/^\d{1,15}$/, SECONDS)],
  SECONDS,
);

export const secondsTextField = z.string().regex(/^\d{1,78}$/, { error: 'Unix seconds as digits' });

export const chainField = z
  .int({ error: 'a chain id as a whole number' })
  .min(1, { error: 'a chain id from 1' });

export const evmField = hexField({ bytes: 20 });

export const addressField = z.string().regex(/^[0-9A-Za-z]{20,90}$/, { error: 'an address' });

export const quoteIdField = z.string().regex(/^quote:./, { error: 'a quote id that begins with quote:' });

/** `0x` and this number of bytes in hex. */
export function hexField({ bytes }: { bytes: number }) {
  const pattern = new RegExp(`^0x[a-fA-F0-9]{${bytes * 2}}$`);
  return z.string().regex(pattern, { error: `0x and ${bytes * 2} hex digits` });
}

/** A signature, which may be longer than 65 bytes, as those of contract wallets are. */
export const anySignatureField = z
  .string()
  .regex(/^0x([a-fA-F0-9]{2})+$/, { error: 'a signature of 0x and hex digits' });

/** Serializes a request once, for identical resends. Throws a RangeError that names every bad field, without its value. */
export function payloadOf(schema: z.ZodType, value: unknown): string {
  const parsed = schema.safeParse(value);
  if (parsed.success) return JSON.stringify(parsed.data);
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'request'}: ${message}`);
  throw new RangeError(`request not sent: ${faults.join('; ')}`);
}
