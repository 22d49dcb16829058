import { expect, test } from 'vitest';
import { nextForMore } from '../../src/domain/cadence/pages.ts';
import { EXPECTED_MODEL } from '../support/expected-model.ts';

const NOW_MS = 1_763_638_260_000;
const HOUR = 3_600_000;

const planned = (newestAtMs: number | null, isOpen: boolean) =>
  nextForMore({ newestAtMs, isOpen }, { nowMs: NOW_MS, price: 1, model: EXPECTED_MODEL });

test('further transfers are awaited for 24 h after the newest, and as long as one is open', () => {
  expect(planned(null, false)).toEqual({ state: 'unseen' });
  expect(planned(NOW_MS - 24 * HOUR + 1, false).state).toBe('watched');
  expect(planned(NOW_MS - 24 * HOUR, false)).toEqual({ state: 'over' });
  expect(planned(NOW_MS - 1_000 * HOUR, true).state).toBe('watched');
});

test.each([
  [0, 2, 30, 5],
  [600_000, 12, 360, 60],
  [24 * HOUR, 720, 7_200, 3_600],
  // A wrong clock noted a time ahead.
  [-HOUR, 2, 30, 5],
])('the wait grows with the time since the newest one: %d ms', (ageMs, least, most, usual) => {
  const { next } = { next: null, ...planned(NOW_MS - ageMs, true) };
  expect(next?.restMs).toBeCloseTo(1_000 * least);
  expect(next?.latestMs).toBeCloseTo(1_000 * most);
  expect(next?.virtualSeconds).toBeCloseTo(usual);
});
