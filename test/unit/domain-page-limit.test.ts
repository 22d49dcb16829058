import { describe, expect, test } from 'vitest';
import {
  afterFitting,
  afterTooLarge,
  effectiveLimit,
  isBlocked,
  type PageLimit,
} from '../../src/domain/cadence/pages.ts';

const T0_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;

describe('the limit of the first page of a listing', () => {
  test('is the largest that there is while no page was too large', () => {
    expect(effectiveLimit(undefined, T0_MS)).toBe(50);
  });

  test('is halved with each page that is too large, down to 1, and then the listing is blocked', () => {
    const limits: number[] = [];
    let state: PageLimit | undefined;
    while (!isBlocked(state, T0_MS)) {
      const limit = effectiveLimit(state, T0_MS);
      limits.push(limit);
      state = afterTooLarge(limit, T0_MS);
    }
    expect(limits).toEqual([50, 25, 12, 6, 3, 1]);
  });

  test('doubles every ten minutes after the last page that was too large, up to the largest', () => {
    const state = afterTooLarge(6, T0_MS);
    const at = (minutes: number): number => effectiveLimit(state, T0_MS + minutes * MINUTE_MS);
    expect([0, 9, 10, 20, 30, 40, 50, 100_000].map(at)).toEqual([3, 3, 6, 12, 24, 48, 50, 50]);
  });

  test('is halved anew where the larger page is still too large', () => {
    const grown = effectiveLimit(afterTooLarge(50, T0_MS), T0_MS + 10 * MINUTE_MS);
    expect(grown).toBe(50);
    expect(effectiveLimit(afterTooLarge(grown, T0_MS + 10 * MINUTE_MS), T0_MS + 19 * MINUTE_MS)).toBe(25);
  });

  test('is as it was where its time lies ahead, for a clock that has gone back', () => {
    expect(effectiveLimit({ limit: 3, atMs: T0_MS }, T0_MS - MINUTE_MS)).toBe(3);
  });
});

describe('a listing whose first record is too large', () => {
  const blocked = afterTooLarge(1, T0_MS);

  test('is requested with a limit of 1, and is blocked until a page can be read, or it was not tried for ten minutes', () => {
    expect(effectiveLimit(blocked, T0_MS + 5 * MINUTE_MS)).toBe(1);
    expect(isBlocked(blocked, T0_MS + 10 * MINUTE_MS)).toBe(true);
    expect(isBlocked(blocked, T0_MS + 11 * MINUTE_MS)).toBe(false);
  });

  test('is blocked no more once a page can be read, and its limit grows from then on', () => {
    const nowMs = T0_MS + 5 * MINUTE_MS;
    const state = afterFitting(blocked, { limit: 1, nowMs });
    expect(state).toEqual({ limit: 1, atMs: nowMs });
    expect(isBlocked(state ?? undefined, nowMs)).toBe(false);
    expect(effectiveLimit(state ?? undefined, nowMs + 10 * MINUTE_MS)).toBe(2);
  });

  test('a page that can be read changes no other state', () => {
    expect(afterFitting(undefined, { limit: 50, nowMs: T0_MS })).toBe(null);
    expect(afterFitting({ limit: 6, atMs: T0_MS }, { limit: 6, nowMs: T0_MS })).toBe(null);
  });
});
