import { z } from 'zod';
import type { RedisClient } from './commands.ts';
import type { Keys } from './keys.ts';

/** The kinds of stored entries that are reported where they have another shape than this program's. */
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

/** An entry of another shape: its expected kind, its place, and the error. */
export type ForeignEntry = { what: (typeof STORED_KINDS)[number]; where: string; reason: string };

/** Receives entries of another shape. Such an entry harms nothing but itself: it is dropped, or rewritten. */
export type OnForeign = (found: ForeignEntry) => void;

/** A part of the data in Redis. `onForeign` is notified of its entries of another shape. */
export abstract class RedisStore {
  protected readonly redis: RedisClient;
  protected readonly keys: Keys;
  protected readonly onForeign: OnForeign;

  constructor(redis: RedisClient, keys: Keys, options: { onForeign?: OnForeign } = {}) {
    this.redis = redis;
    this.keys = keys;
    this.onForeign = options.onForeign ?? (() => undefined);
  }
}

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

/** Parses a stored time of Redis (ms); null where there is none. */
export function storedMs(text: string | null): number | null {
  return text === null ? null : Number(text);
}

/** Reads a stored text or hash; null for one of another shape, which is reported. */
export function readStored<T>(
  schema: z.ZodType<T>,
  stored: unknown,
  { what, where, onForeign }: { what: ForeignEntry['what']; where: string; onForeign: OnForeign },
): T | null {
  const parsed = schema.safeParse(stored);
  if (parsed.success) return parsed.data;
  onForeign({ what, where, reason: reasonOf(parsed.error) });
  return null;
}

/** The readable part of a hash: null where there is none; `foreign` are the fields that cannot be read, null for none. */
export type ParsedHash<T> = { value: T | null; foreign: { fields: string[]; reason: string } | null };

/** Reads a stored hash. Fields of another shape count as missing. */
export function readHash<T>(schema: z.ZodType<T>, hash: { readonly [field: string]: string }): ParsedHash<T> {
  const whole = schema.safeParse(hash);
  if (whole.success) return { value: whole.data, foreign: null };
  const fields = [...new Set(whole.error.issues.map(({ path }) => String(path[0] ?? '')))];
  const rest = Object.fromEntries(Object.entries(hash).filter(([field]) => !fields.includes(field)));
  const foreign = { fields, reason: reasonOf(whole.error) };
  return { value: schema.safeParse(rest).data ?? null, foreign };
}

/** Waits for work on keys of a receiver; null where one has another type, which is reported, and harms that receiver alone. */
export async function isolated<T>(
  receiver: string,
  work: Promise<T>,
  onForeign: OnForeign,
): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes('WRONGTYPE')) throw error;
    onForeign({ what: 'delivery', where: `a key of the receiver ${receiver}`, reason: error.message });
    return null;
  }
}

/** Describes the errors of a value in one line. */
export function reasonOf(error: z.ZodError): string {
  return error.issues
    .map(({ path, message }) => [...path, message].join(': '))
    .slice(0, 3)
    .join('; ');
}
