import { expect, test } from 'vitest';
import { valuesAt } from '../../src/domain/changes/leaves.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { countedReads } from '../support/counted-reads.ts';

test.each<[string, JsonObject, string, JsonObject]>([
  ['a member', { a: 1 }, 'a', { a: 1 }],
  ['a member of a list of members', { a: [{ b: 1 }, { b: 2 }] }, 'a[1].b', { 'a[1].b': 2 }],
  ['a member whose name has a dot', { 'a.b': { c: 3 }, a: { x: 1 } }, 'a.b.c', { 'a.b.c': 3 }],
  ['a member whose name has a bracket', { 'a[0]': 4, a: [] }, 'a[0]', { 'a[0]': 4 }],
  ['the member with the longer name', { 'a.b': 5, a: { b: 6 } }, 'a.b', { 'a.b': 5 }],
  ['a missing member', { a: { c: 1 } }, 'a.b', {}],
  ['an inherited member', {}, 'constructor', {}],
  ['a place beyond the end of a list', { a: [1] }, 'a[3]', {}],
  ['a text too long to store', { a: 'x'.repeat(1_500) }, 'a', { a: null }],
])('%s is found at its path', (_, record, path, expected) => {
  expect(valuesAt(record, [path])).toEqual(expected);
});

test('a record of many changed members is read in proportion', () => {
  const paths = Array.from({ length: 3_000 }, (_, index) => `member-${index}`);
  const { value: record, reads } = countedReads(
    Object.fromEntries(paths.map((path, index) => [path, index])),
  );
  expect(Object.keys(valuesAt(record, paths))).toHaveLength(paths.length);
  expect(reads()).toBeLessThanOrEqual(3 * paths.length);
});
