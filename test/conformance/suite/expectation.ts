import assert from 'node:assert/strict';
import type { z } from 'zod';
import { isMembers } from './breakage.ts';

/** Fails unless a condition is true. */
export function holds(condition: boolean, message: string): asserts condition {
  assert.ok(condition, message);
}

/** Fails unless a value is the expected one. */
export function same(found: unknown, expected: unknown, what: string): void {
  const [shown, wanted] = [JSON.stringify(found), JSON.stringify(expected)];
  assert.deepEqual(found, expected, `${what}: found ${shown}, expected ${wanted}`);
}

/** Parses a value by a schema; fails when it does not match. */
export function conforms<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`.trim());
  assert.fail(`${what}: found ${JSON.stringify(value)?.slice(0, 500)}; ${problems.join('; ')}`);
}

/** The value at a place of a JSON value, such as `results.0.id`; undefined when there is none. */
export function read(value: unknown, place: string): unknown {
  let found = value;
  for (const key of place.split('.')) {
    if (Array.isArray(found)) found = found[Number(key)];
    else if (isMembers(found)) found = found[key];
    else return undefined;
  }
  return found;
}

/** A list at a place of a JSON value; fails when there is none. */
export function list(value: unknown, place: string): unknown[] {
  const found = read(value, place);
  assert.ok(Array.isArray(found), `${place}: found ${JSON.stringify(found)}, expected a list`);
  return found;
}

/** Text at a place of a JSON value; fails when there is none. */
export function text(value: unknown, place: string): string {
  const found = read(value, place);
  assert.ok(typeof found === 'string', `${place}: found ${JSON.stringify(found)}, expected text`);
  return found;
}
