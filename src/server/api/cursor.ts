import { z } from 'zod';

/** A place in a list as a cursor: opaque to whoever gets it. */
export function writeCursor(place: object | null): string | null {
  return place === null ? null : Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** Reads a cursor that `writeCursor` made of such a place. */
export function cursorField<T>(place: z.ZodType<T>, error = 'a cursor: `next` of the answer before') {
  return z
    .string({ error })
    .max(500, { error })
    .transform((text, context): T => {
      const read = place.safeParse(parsed(Buffer.from(text, 'base64url').toString('utf8')));
      if (read.success) return read.data;
      context.addIssue({ code: 'custom', message: error });
      return z.NEVER;
    });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
