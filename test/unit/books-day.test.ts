import { describe, expect, test } from 'vitest';
import { mailMs } from '../../src/books/daily-report-mailer.ts';
import { dayAt, dayOf, NoSuchDayError } from '../../src/domain/books/day.ts';

const HOUR_MS = 3_600_000;

describe('a day of a zone', () => {
  test.each([
    ['2026-11-21', 'UTC', 24],
    ['2026-11-21', 'Europe/Paris', 24],
    ['2026-03-29', 'Europe/Paris', 23],
    ['2026-10-25', 'Europe/Paris', 25],
    ['2026-10-04', 'Australia/Lord_Howe', 23.5],
    ['2026-09-06', 'America/Santiago', 23],
  ])('%s in %s has %d hours', (day, zone, hours) => {
    const { fromMs, toMs } = dayOf(day, zone);
    expect((toMs - fromMs) / HOUR_MS).toBe(hours);
    expect(dayAt(fromMs, zone).day).toBe(day);
    expect(dayAt(toMs - 1, zone).day).toBe(day);
    expect(dayAt(toMs, zone).fromMs).toBe(toMs);
  });

  test.each([
    ['2026-02-30', 'UTC'],
    ['2026-13-01', 'UTC'],
    ['0000-00-00', 'UTC'],
    // The day after has a year of five digits.
    ['9999-12-31', 'UTC'],
    ['2026-11-21', 'Mars/Olympus'],
    ['2026-11-21', '+01:00'],
    // Samoa went from the 29th to the 31st.
    ['2011-12-30', 'Pacific/Apia'],
  ])('%s in %s is refused', (day, zone) => {
    expect(() => dayOf(day, zone)).toThrow(NoSuchDayError);
  });

  test.each([
    ['2026-11-21', '2026-11-22T06:00:00.000Z'],
    // The clocks change in the night before the mail.
    ['2026-10-24', '2026-10-25T06:00:00.000Z'],
    ['2026-03-28', '2026-03-29T05:00:00.000Z'],
  ])('the mail about %s is due at seven in Paris', (day, at) => {
    expect(new Date(mailMs(dayOf(day, 'Europe/Paris'), 7 * 60)).toISOString()).toBe(at);
  });
});
