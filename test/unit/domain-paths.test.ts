import { expect, test } from 'vitest';
import { valuesAt } from '../../src/domain/changes/paths.ts';
import type { JsonObject } from '../../src/domain/json.ts';

test.each<[string, JsonObject, string, JsonObject]>([
  ['a member', { a: 1 }, 'a', { a: 1 }],
  ['a member of a list of members', { a: [{ b: 1 }, { b: 2 }] }, 'a[1].b', { 'a[1].b': 2 }],
  ['a member whose name has a dot', { 'a.b': { c: 3 }, a: { x: 1 } }, 'a.b.c', { 'a.b.c': 3 }],
  ['a member whose name has a bracket', { 'a[0]': 4, a: [] }, 'a[0]', { 'a[0]': 4 }],
  ['the member with the longer name', { 'a.b': 5, a: { b: 6 } }, 'a.b', { 'a.b': 5 }],
  ['what is not there', { a: { c: 1 } }, 'a.b', {}],
  ['what every object inherits', {}, 'constructor', {}],
  ['what is beyond the end of a list', { a: [1] }, 'a[3]', {}],
  ['what is too long to keep', { a: 'x'.repeat(1_500) }, 'a', { a: null }],
])('%s is found at its path', (_, record, path, expected) => {
  expect(valuesAt(record, [path])).toEqual(expected);
});

test('a record of many changed members takes time in proportion', () => {
  const record = Object.fromEntries(Array.from({ length: 30_000 }, (_, index) => [`member-${index}`, index]));
  const startMs = performance.now();
  expect(Object.keys(valuesAt(record, Object.keys(record)))).toHaveLength(30_000 - 0);
  expect(performance.now() - startMs).toBeLessThan(10_000);
});
