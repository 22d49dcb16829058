import { expect, test } from 'vitest';
import { needs, noteOf } from '../support/optional-parts.ts';
import { skippedLine } from '../support/skipped-reporter.ts';

const HERE = { name: 'Here', place: '/usr/bin/here' };
const GONE = { name: 'Gone', place: null };
const LOST = { name: 'Lost', place: null };

test('a test is skipped where a part is missing, and its name states the part', () => {
  expect(needs(HERE)).toEqual({ skip: false, note: '' });
  expect(needs(HERE, GONE, LOST)).toEqual({ skip: true, note: ' (skipped without Gone and Lost)' });
});

test('one line counts the skipped tests by the part that they lack', () => {
  const names = [
    `a group${noteOf(['Gone'])} > one`,
    `a group${noteOf(['Gone'])} > two${noteOf(['Gone', 'Lost'])}`,
    'omitted by a filter of names',
  ];
  expect(skippedLine(names)).toBe(
    'Tests skipped for lack of a part: 2. Missing: Gone (2), Lost (1). To install the parts, type: npm run setup:all',
  );
});

test('there is no line where no part is missing', () => {
  expect(skippedLine([])).toBeNull();
  expect(skippedLine(['omitted by a filter of names'])).toBeNull();
});
