import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type QuietHours, quietUntilMs } from '../../src/domain/events/batching.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Zones with changes of an hour at several times of day, of half an hour, of a whole day, and none. */
const ZONES = [
  'Europe/Paris',
  'America/New_York',
  'America/Santiago',
  'America/St_Johns',
  'Africa/Cairo',
  'Africa/Casablanca',
  'Asia/Beirut',
  'Asia/Kathmandu',
  'Asia/Tehran',
  'Atlantic/Azores',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Chatham',
  'Pacific/Kiritimati',
  'UTC',
];

const CLOCKS = new Map(
  ZONES.map((timeZone) => [
    timeZone,
    new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' }),
  ]),
);

function wallMinute(timeZone: string, atMs: number): number {
  const text = CLOCKS.get(timeZone)?.format(atMs) ?? '';
  return Number(text.slice(0, 2)) * 60 + Number(text.slice(3, 5));
}

/** True when a minute is quiet, by counting on from `from` to `to`. */
function isQuiet({ fromMinute, toMinute, timeZone }: QuietHours, atMs: number): boolean {
  const length = (toMinute - fromMinute + 1_440) % 1_440;
  return (wallMinute(timeZone, atMs) - fromMinute + 1_440) % 1_440 < length;
}

const minute = fc.integer({ min: 0, max: 1_439 });

const quietHours = fc
  .record({ fromMinute: minute, toMinute: minute, timeZone: fc.constantFrom(...ZONES) })
  .filter(({ fromMinute, toMinute }) => fromMinute !== toMinute);

/** Times from 2020 to 2030; every other one within a day of a change of the zone's clocks, where there is one. */
const time = fc.record({
  atMs: fc.integer({ min: Date.UTC(2020, 0) / MINUTE_MS, max: Date.UTC(2030, 0) / MINUTE_MS }),
  near: fc.boolean(),
  second: fc.integer({ min: 0, max: 59_999 }),
});

function placed(timeZone: string, { atMs, near, second }: { atMs: number; near: boolean; second: number }) {
  const startMs = atMs * MINUTE_MS + second;
  if (!near) return startMs;
  for (let day = 0; day < 200; day += 1) {
    const dayMs = startMs + day * 24 * HOUR_MS;
    if (wallMinute(timeZone, dayMs) !== wallMinute(timeZone, dayMs + 24 * HOUR_MS)) return dayMs;
  }
  return startMs;
}

describe('the end of quiet hours', () => {
  test('is the first time that is not quiet, in every zone, whenever clocks change', () => {
    fc.assert(
      fc.property(quietHours, time, (quiet, when) => {
        const nowMs = placed(quiet.timeZone, when);
        const endMs = quietUntilMs(quiet, nowMs);
        if (endMs === null) {
          expect(isQuiet(quiet, nowMs)).toBe(false);
          return;
        }
        expect(isQuiet(quiet, nowMs)).toBe(true);
        expect(endMs).toBeGreaterThan(nowMs);
        expect(endMs % MINUTE_MS).toBe(0);
        expect(isQuiet(quiet, endMs)).toBe(false);
        for (let atMs = nowMs; atMs < endMs; atMs += 5 * MINUTE_MS) expect(isQuiet(quiet, atMs)).toBe(true);
        expect(isQuiet(quiet, endMs - 1)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test('is the same at every time that has the same end', () => {
    fc.assert(
      fc.property(quietHours, time, fc.double({ min: 0, max: 0.999, noNaN: true }), (quiet, when, share) => {
        const nowMs = placed(quiet.timeZone, when);
        const endMs = quietUntilMs(quiet, nowMs);
        fc.pre(endMs !== null);
        expect(quietUntilMs(quiet, Math.floor(nowMs + share * (endMs - nowMs)))).toBe(endMs);
      }),
      { numRuns: 200 },
    );
  });
});

function at(hours: string, timeZone: string): QuietHours {
  const [from = '', to = ''] = hours.split('-');
  const minutes = (text: string) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3));
  return { fromMinute: minutes(from), toMinute: minutes(to), timeZone };
}

describe('quiet hours', () => {
  test.each([
    ['22:00-07:00', 'Europe/Paris', '2026-11-20T20:59:59.999Z', null],
    ['22:00-07:00', 'Europe/Paris', '2026-11-20T21:00:00.000Z', '2026-11-21T06:00:00.000Z'],
    ['22:00-07:00', 'Europe/Paris', '2026-11-21T05:59:59.999Z', '2026-11-21T06:00:00.000Z'],
    ['22:00-07:00', 'Europe/Paris', '2026-11-21T06:00:00.000Z', null],
    ['09:00-17:00', 'America/New_York', '2026-07-01T15:00:00.000Z', '2026-07-01T21:00:00.000Z'],
    // Clocks go forward from 02:00 to 03:00: the night is an hour shorter.
    ['22:00-07:00', 'Europe/Paris', '2026-03-28T21:00:00.000Z', '2026-03-29T05:00:00.000Z'],
    // The end is in the hour that does not exist.
    ['22:00-02:30', 'Europe/Paris', '2026-03-28T21:00:00.000Z', '2026-03-29T01:00:00.000Z'],
    // All of it is in that hour.
    ['02:10-02:50', 'Europe/Paris', '2026-03-29T01:00:00.000Z', null],
    // Clocks go back from 03:00 to 02:00: the night is an hour longer.
    ['22:00-07:00', 'Europe/Paris', '2026-10-24T20:00:00.000Z', '2026-10-25T06:00:00.000Z'],
    // The end comes twice.
    ['22:00-02:30', 'Europe/Paris', '2026-10-24T20:00:00.000Z', '2026-10-25T00:30:00.000Z'],
    ['22:00-02:30', 'Europe/Paris', '2026-10-25T00:30:00.000Z', null],
    ['22:00-02:30', 'Europe/Paris', '2026-10-25T01:00:00.000Z', '2026-10-25T01:30:00.000Z'],
    // Half an hour back at 02:00.
    ['22:00-01:45', 'Australia/Lord_Howe', '2026-04-04T15:10:00.000Z', '2026-04-04T15:15:00.000Z'],
  ])('%s %s at %s: until %s', (hours, timeZone, now, end) => {
    const endMs = quietUntilMs(at(hours, timeZone), Date.parse(now));
    expect(endMs === null ? null : new Date(endMs).toISOString()).toBe(end);
  });
});
