import { z } from 'zod';
import { lookupKey } from '../world/identifiers.ts';
import { INTENT_STATUSES, type IntentStatus } from '../world/record.ts';

/** A position in the pages of one wallet, after change `before`. `issuedMs`: time of issue (Unix ms), where cursors expire. */
export type Cursor = { wallet: string; status: IntentStatus | null; before: number; issuedMs: number | null };

const cursorSchema = z.strictObject({
  wallet: z.string().min(1),
  status: z.enum(INTENT_STATUSES).nullable(),
  before: z.int().min(1),
  issuedMs: z.int().nullable().default(null),
});

export function encodeCursor({ wallet, status, before, issuedMs }: Cursor): string {
  const issued = issuedMs === null ? {} : { issuedMs };
  const content = JSON.stringify({ wallet: lookupKey(wallet), status, before, ...issued });
  return Buffer.from(content).toString('base64url');
}

/** Reads a cursor; null when it is not one of ours, or belongs to another wallet or status. */
export function decodeCursor(
  text: string,
  expected: { wallet: string; status: IntentStatus | null },
): Cursor | null {
  if (!/^[\w-]+$/.test(text)) return null;
  const cursor = cursorSchema.safeParse(parseJson(Buffer.from(text, 'base64url').toString()));
  if (!cursor.success) return null;
  const { wallet, status } = cursor.data;
  return wallet === lookupKey(expected.wallet) && status === expected.status ? cursor.data : null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
