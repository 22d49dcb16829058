import type { z } from 'zod';
import type { FieldError } from './problem.ts';

/** What zod found wrong with a body, as field errors; `hints` say where a key that is not known belongs. */
export function fieldErrors(error: z.ZodError, hints: Readonly<Record<string, string>> = {}): FieldError[] {
  return error.issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') {
      return [{ field: dotted(issue.path) || 'body', detail: issue.message }];
    }
    return issue.keys.map((key) => {
      const field = dotted([...issue.path, key]) || '(empty)';
      const hint = Object.hasOwn(hints, field) ? hints[field] : undefined;
      return { field, detail: hint === undefined ? 'Unknown key' : `Unknown key: ${hint}` };
    });
  });
}

function dotted(path: readonly PropertyKey[]): string {
  return path.map(String).join('.');
}
