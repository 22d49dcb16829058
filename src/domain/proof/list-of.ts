import { z } from 'zod';

/**
 * A list that is read until the first of it cannot be: that is the only fault that is reported. An answer may hold a million that
 * cannot, and one of each would take minutes and gigabytes.
 */
export function listOf<T>(item: z.ZodType<T>): z.ZodType<T[]> {
  return z.array(z.unknown(), { error: 'a list' }).transform((list, context) => {
    const read: T[] = [];
    for (const [index, value] of list.entries()) {
      const { success, data, error } = item.safeParse(value);
      if (!success) {
        const [issue] = error.issues;
        context.addIssue({ code: 'custom', message: issue?.message, path: [index, ...(issue?.path ?? [])] });
        return z.NEVER;
      }
      read.push(data);
    }
    return read;
  });
}
