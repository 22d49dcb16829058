import { describe, expect, test } from 'vitest';
import { isHurried, mostHurried, neededRate } from '../../src/domain/cadence/pages.ts';

const NOW_MS = 1_763_638_260_000;
const HOUR = 3_600_000;

test('a wallet is hurried for a day after a cursor of it died', () => {
  const died = (agoMs: number) => ({ cursorDiedAtMs: NOW_MS - agoMs, cursorDiedAfterMs: 40_000 });
  expect(isHurried({ cursorDiedAtMs: 0, cursorDiedAfterMs: 0 }, NOW_MS)).toBe(false);
  expect([0, 23 * HOUR, 24 * HOUR].map((agoMs) => isHurried(died(agoMs), NOW_MS))).toEqual([
    true,
    true,
    false,
  ]);
});

test.each([
  [40_000, 5, 10],
  [600_000, 5, 20],
  [40_000, 1, 2],
  [10_000, 5, 2],
  [1_000, 5, 1],
  [0, 5, 1],
])('where a cursor died after %d ms, at %d requests/s, %d are hurried at once', (cursorDiedAfterMs, rate, most) => {
  expect(mostHurried({ cursorDiedAtMs: NOW_MS, cursorDiedAfterMs }, rate)).toBe(most);
});

describe('the rate that would do', () => {
  test('is that of one page within the life of a cursor, by the oldest that was accepted', () => {
    expect(neededRate({ ageMs: 9_000, sweepAgeMs: 8_000, acceptedMs: 4_000, pages: 200 })).toEqual({
      lifetimeSeconds: 4,
      pages: 1,
      requestsPerSecond: 1.3,
    });
  });

  test('is half of the age at which it was refused, where none was accepted', () => {
    expect(neededRate({ ageMs: 10_000, sweepAgeMs: 0, acceptedMs: 0, pages: 4 })).toEqual({
      lifetimeSeconds: 5,
      pages: 1,
      requestsPerSecond: 1,
    });
  });

  test('is that of all pages where cursors as old were accepted, and the sweep was too old', () => {
    expect(neededRate({ ageMs: 1_000, sweepAgeMs: 30_000, acceptedMs: 2_000, pages: 60 })).toEqual({
      lifetimeSeconds: 30,
      pages: 60,
      requestsPerSecond: 10,
    });
  });
});
