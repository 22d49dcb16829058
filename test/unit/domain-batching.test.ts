import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BatchingRules, joinsWaiting, type Plan, planBatch } from '../../src/domain/events/batching.ts';

const DIGEST = { everyMs: 900_000, max: 3 };
const NIGHT = { fromMinute: 22 * 60, toMinute: 7 * 60, timeZone: 'UTC' };
const NOON_MS = Date.parse('2026-11-20T12:00:00Z');
const MIDNIGHT_MS = Date.parse('2026-11-21T00:00:00Z');
const MORNING_MS = Date.parse('2026-11-21T07:00:00Z');

function plan(
  rules: BatchingRules,
  nowMs: number,
  state: { joinedAtMs: number; isWaiting?: boolean; waiting?: number },
): Plan {
  return planBatch(rules, { isWaiting: true, waiting: 1, ...state }, nowMs);
}

describe('with neither digest nor quiet hours, or by day', () => {
  test.each([
    [{ digest: null, quietHours: null }],
    [{ digest: null, quietHours: NIGHT }],
  ])('an event is sent by itself at once: %o', (rules) => {
    expect(joinsWaiting(rules, NOON_MS)).toBe(false);
    expect(plan(rules, NOON_MS, { joinedAtMs: NOON_MS, isWaiting: false, waiting: 0 })).toEqual({
      do: 'alone',
      reason: 'immediate',
    });
  });
});

describe('a digest', () => {
  const rules = { digest: DIGEST, quietHours: null };

  test('waits from its first event on', () => {
    expect(joinsWaiting(rules, NOON_MS)).toBe(true);
    expect(plan(rules, NOON_MS + 1, { joinedAtMs: NOON_MS })).toEqual({
      do: 'wait',
      untilMs: NOON_MS + 900_000,
      reason: 'batching',
    });
  });

  test('goes out when its time is over', () => {
    expect(plan(rules, NOON_MS + 900_000, { joinedAtMs: NOON_MS })).toEqual({
      do: 'together',
      reason: 'time',
    });
  });

  test('goes out at once when enough wait', () => {
    expect(plan(rules, NOON_MS, { joinedAtMs: NOON_MS, waiting: 2 })).toMatchObject({ do: 'wait' });
    expect(plan(rules, NOON_MS, { joinedAtMs: NOON_MS, waiting: 3 })).toEqual({
      do: 'together',
      reason: 'enough',
    });
  });
});

describe('quiet hours', () => {
  const rules = { digest: null, quietHours: NIGHT };
  const both = { digest: DIGEST, quietHours: NIGHT };

  test('hold everything, however much waits and however long', () => {
    expect(joinsWaiting(rules, MIDNIGHT_MS)).toBe(true);
    const held = { do: 'wait', untilMs: MORNING_MS, reason: 'quiet' };
    expect(plan(rules, MIDNIGHT_MS, { joinedAtMs: MIDNIGHT_MS })).toEqual(held);
    expect(plan(both, MIDNIGHT_MS, { joinedAtMs: NOON_MS, waiting: 100 })).toEqual(held);
  });

  test('send one digest at their end, of all their events', () => {
    const over = { do: 'together', reason: 'quiet-is-over' };
    expect(plan(rules, MORNING_MS, { joinedAtMs: MIDNIGHT_MS, waiting: 2 })).toEqual(over);
    expect(
      plan({ digest: { everyMs: 86_400_000, max: 9 }, quietHours: NIGHT }, MORNING_MS, {
        joinedAtMs: MIDNIGHT_MS,
      }),
    ).toEqual(over);
  });

  test('hold events that waited for their digest before them', () => {
    const eveningMs = Date.parse('2026-11-20T21:50:00Z');
    const dueMs = eveningMs + DIGEST.everyMs;
    expect(plan(both, eveningMs, { joinedAtMs: eveningMs })).toMatchObject({ untilMs: dueMs });
    expect(plan(both, dueMs, { joinedAtMs: eveningMs })).toMatchObject({
      untilMs: MORNING_MS,
      reason: 'quiet',
    });
    expect(plan(both, MORNING_MS, { joinedAtMs: eveningMs })).toEqual({ do: 'together', reason: 'time' });
  });
});

test('a waiting event is due at the end of its instructed wait, and not in quiet hours', () => {
  const rules = fc.record({
    digest: fc.option(
      fc.record({
        everyMs: fc.integer({ min: 1_000, max: 86_400_000 }),
        max: fc.integer({ min: 1, max: 100 }),
      }),
    ),
    quietHours: fc.constantFrom(null, NIGHT, { ...NIGHT, timeZone: 'Australia/Lord_Howe' }),
  });
  fc.assert(
    fc.property(rules, fc.nat({ max: 86_400_000 }), fc.nat({ max: 86_400_000 }), (rules, sinceMs, ageMs) => {
      let nowMs = NOON_MS + sinceMs + ageMs;
      const state = { joinedAtMs: NOON_MS + sinceMs, isWaiting: true, waiting: 1 };
      let turns = 0;
      for (;;) {
        const next = planBatch(rules, state, nowMs);
        if (next.do !== 'wait') break;
        expect(next.untilMs).toBeGreaterThan(nowMs);
        nowMs = next.untilMs;
        turns += 1;
        // The due time, and the quiet hours before and after it.
        expect(turns).toBeLessThanOrEqual(3);
      }
      expect(planBatch(rules, state, nowMs).do).toBe('together');
    }),
  );
});
