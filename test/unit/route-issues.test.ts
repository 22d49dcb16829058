import { expect, test } from 'vitest';
import { listEvents } from '../../src/server/api/routes/log.ts';

const EXPECTED = 'an event type such as intent.filled, at most 128 characters with *, after a leading !';

function issuesOf(type: string | string[]) {
  const read = listEvents.read({ params: {}, query: { type }, body: undefined });
  return typeof read === 'function' ? [] : read;
}

test('a type that is wrong is named as it was found, alone or one of several', () => {
  const wrong = { place: 'query.type.0', found: '"in tent"', expected: EXPECTED };
  expect(issuesOf('in tent')).toEqual([wrong]);
  expect(issuesOf(['in tent'])).toEqual([wrong]);
  expect(issuesOf(['intent.*', 'in tent'])).toEqual([{ ...wrong, place: 'query.type.1' }]);
  expect(issuesOf('x'.repeat(129))).toEqual([{ ...wrong, found: `"${'x'.repeat(60)}"…` }]);
  expect(issuesOf(['*', '!intent.*'])).toEqual([]);
  expect(issuesOf('!intent.*')).toMatchObject([{ place: 'query.type', found: '"!intent.*"' }]);
});
