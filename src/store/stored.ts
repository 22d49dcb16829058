import { z } from 'zod';

/** The kinds of stored entries that are read with a word where they have another shape than this program's. */
export const STORED_KINDS = [
  'subscription',
  'receiver',
  'route',
  'claim',
  'snapshot',
  'quote',
  'tracked',
  'learned',
  'receiver-state',
  'delivery',
  'replay',
  'cursor',
  'directory',
  'check',
] as const;

/** An entry of another shape: what it should be, where it stands, and what is wrong with it. */
export type ForeignEntry = { what: (typeof STORED_KINDS)[number]; where: string; reason: string };

/** Hears of entries of another shape. Such an entry harms nothing but itself: it is dropped, or written anew. */
export type OnForeign = (found: ForeignEntry) => void;

/** A stored text that holds JSON. */
export const JSON_TEXT = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue({ code: 'custom', message: 'expected JSON' });
    return z.NEVER;
  }
});

/** A stored text that holds a whole number. */
export const INTEGER_TEXT = z
  .string()
  .regex(/^-?\d{1,15}$/)
  .transform(Number);

/** A time of Redis (ms) as it is stored; null where there is none. */
export function storedMs(text: string | null): number | null {
  return text === null ? null : Number(text);
}

/** Reads a stored text; null for one of another shape, which is reported. */
export function readStored<T>(
  schema: z.ZodType<T>,
  text: string,
  { what, where, onForeign }: Omit<ForeignEntry, 'reason'> & { onForeign: OnForeign },
): T | null {
  const parsed = schema.safeParse(text);
  if (parsed.success) return parsed.data;
  onForeign({ what, where, reason: reasonOf(parsed.error) });
  return null;
}

/** What of a hash can be read: null where nothing can, `foreign` are the fields that cannot, null for none. */
export type HashReading<T> = { value: T | null; foreign: { fields: string[]; reason: string } | null };

/** Reads a stored hash. Fields of another shape are read as if they were not there. */
export function readHash<T>(
  schema: z.ZodType<T>,
  hash: { readonly [field: string]: string },
): HashReading<T> {
  const whole = schema.safeParse(hash);
  if (whole.success) return { value: whole.data, foreign: null };
  const fields = [...new Set(whole.error.issues.map(({ path }) => String(path[0] ?? '')))];
  const rest = Object.fromEntries(Object.entries(hash).filter(([field]) => !fields.includes(field)));
  const foreign = { fields, reason: reasonOf(whole.error) };
  return { value: schema.safeParse(rest).data ?? null, foreign };
}

/** What is wrong with a value, in a line. */
export function reasonOf(error: z.ZodError): string {
  return error.issues
    .map(({ path, message }) => [...path, message].join(': '))
    .slice(0, 3)
    .join('; ');
}
