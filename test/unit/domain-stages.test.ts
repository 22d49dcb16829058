import { describe, expect, test } from 'vitest';
import { isFinished, nextPoll } from '../../src/domain/cadence/next-poll.ts';
import { KNOWN_STATUSES, stageOf } from '../../src/domain/cadence/stages.ts';
import { EVENT_TYPES } from '../../src/domain/event-types.ts';
import type { HandedState } from '../../src/domain/handed-quote.ts';
import { type Step, stepBetween } from '../../src/domain/lifecycle.ts';
import { nextSnapshot, unseenSnapshot } from '../../src/domain/next-snapshot.ts';
import type { Snapshot } from '../../src/domain/record.ts';
import {
  asSubjectId,
  gaslessId,
  gatewayJobId,
  intentId,
  quoteId,
  type SubjectId,
  vaultId,
} from '../../src/domain/subject.ts';
import { type TimedContext, timedMoments } from '../../src/domain/timed.ts';
import { EXPECTED_LAW } from '../support/law.ts';

const INTENT = intentId('0xaa');
const DEPOSIT = asSubjectId('deposit-address:0xaa');
const QUOTE = quoteId('q');
const JOB = gaslessId('j');
const GATEWAY_JOB = gatewayJobId('g');
const VAULT = vaultId({ chainId: 1, address: '0xbb' });
const OTHER = asSubjectId('swap:1');

const NOW_MS = 1_763_638_260_000;
const NOW_SECONDS = NOW_MS / 1_000;
const DAY_MS = 86_400_000;

function snapshot(status: string, more: Partial<Snapshot> = {}): Snapshot {
  return {
    version: 4,
    sequence: 2,
    commit: 9,
    status,
    updatedAt: null,
    record: { status },
    observedAtMs: NOW_MS,
    changedAtMs: NOW_MS,
    pendingSince: null,
    flags: [],
    doubt: null,
    former: [],
    told: true,
    ...more,
  };
}

describe('a step', () => {
  test.each<[SubjectId, string, string, Step]>([
    [INTENT, 'pending', 'pending', 'same'],
    [INTENT, 'pending', 'PENDING', 'same'],
    [INTENT, 'pending', 'filled', 'forward'],
    [INTENT, 'Pending', 'FILLED', 'forward'],
    [INTENT, 'filled', 'settled', 'forward'],
    [INTENT, 'pending', 'settled', 'skipped'],
    [INTENT, 'pending', 'refundable', 'forward'],
    [INTENT, 'pending', 'expired', 'forward'],
    [INTENT, 'expired', 'refunded', 'skipped'],
    [INTENT, 'failed', 'refunded', 'skipped'],
    [INTENT, 'pending', 'refunded', 'skipped'],
    [INTENT, 'settled', 'pending', 'backward'],
    [INTENT, 'filled', 'pending', 'backward'],
    [INTENT, 'refunded', 'expired', 'backward'],
    [INTENT, 'filled', 'refunded', 'other'],
    [INTENT, 'filled', 'routing', 'other'],
    [INTENT, 'routing', 'filled', 'other'],
    [INTENT, 'unknown', 'pending', 'other'],
    [INTENT, 'constructor', 'pending', 'other'],
    [INTENT, 'pending', '__proto__', 'other'],
    [DEPOSIT, 'pending', 'settled', 'skipped'],
    [QUOTE, 'active', 'submitted', 'forward'],
    [QUOTE, 'submitted', 'active', 'backward'],
    [QUOTE, 'pending', 'filled', 'other'],
    [JOB, 'pending', 'published', 'skipped'],
    [JOB, 'submitted', 'published', 'forward'],
    [JOB, 'published', 'pending', 'backward'],
    [JOB, 'PENDING', 'COMPLETED', 'other'],
    [GATEWAY_JOB, 'PENDING', 'COMPLETED', 'forward'],
    [GATEWAY_JOB, 'PENDING', 'PERMIT_SENT', 'forward'],
    [GATEWAY_JOB, 'COMPLETED', 'PERMIT_SENT', 'backward'],
    [VAULT, 'PENDING', 'FUNDING_DETECTED', 'forward'],
    [VAULT, 'PENDING', 'PUBLISHED', 'skipped'],
    [VAULT, 'EXPIRED_UNFUNDED', 'REFUNDED_BY_USER', 'forward'],
    [VAULT, 'PUBLISHED', 'PENDING', 'backward'],
    [OTHER, 'pending', 'filled', 'other'],
  ])('of %s from %s to %s is %s', (subject, from, to, step) => {
    expect(stepBetween(subject, from, to)).toBe(step);
  });
});

describe('the next snapshot', () => {
  const accepted = { status: 'pending', updatedAt: 100, record: { status: 'pending', updatedAt: 100 } };

  test('begins with version 1, and with sequence 1 only where an event goes with it', () => {
    const context = { subject: INTENT, nowMs: NOW_MS };
    const first = nextSnapshot(null, accepted, { ...context, event: true });
    expect(first).toEqual({
      version: 1,
      sequence: 1,
      status: 'pending',
      updatedAt: 100,
      record: accepted.record,
      observedAtMs: NOW_MS,
      changedAtMs: NOW_MS,
      pendingSince: 100,
      flags: [],
      doubt: null,
      former: [],
    });
    expect(nextSnapshot(null, accepted, { ...context, event: false })).toEqual({ ...first, sequence: 0 });
  });

  test('counts every snapshot, and every event', () => {
    const next = (event: boolean) =>
      nextSnapshot(snapshot('pending'), accepted, { subject: INTENT, nowMs: NOW_MS, event });
    expect(next(false)).toMatchObject({ version: 5, sequence: 2 });
    expect(next(true)).toMatchObject({ version: 5, sequence: 3 });
  });

  test.each([
    'pending',
    'PENDING',
  ])('keeps stage, flags and age in the same status (%s), and ends a doubt', (status) => {
    const before = snapshot('pending', {
      pendingSince: 50,
      flags: ['overdue:1000'],
      changedAtMs: NOW_MS - 9,
      doubt: { key: 'x', sinceMs: 1 },
    });
    expect(
      nextSnapshot(before, { ...accepted, status }, { subject: INTENT, nowMs: NOW_MS, event: true }),
    ).toMatchObject({
      pendingSince: 50,
      flags: ['overdue:1000'],
      changedAtMs: NOW_MS - 9,
      observedAtMs: NOW_MS,
      doubt: null,
    });
  });

  test('clears flags and age when the status changes', () => {
    const before = snapshot('pending', {
      pendingSince: 50,
      flags: ['overdue:1000'],
      changedAtMs: NOW_MS - 9,
    });
    const filled = { status: 'filled', updatedAt: 120, record: {} };
    expect(nextSnapshot(before, filled, { subject: INTENT, nowMs: NOW_MS, event: true })).toMatchObject({
      pendingSince: null,
      flags: [],
      changedAtMs: NOW_MS,
    });
  });

  test('counts the age anew when something is pending again', () => {
    const next = nextSnapshot(snapshot('filled'), accepted, { subject: INTENT, nowMs: NOW_MS, event: true });
    expect(next.pendingSince).toBe(100);
  });

  test('goes on counting the age from one waiting status to the next', () => {
    const before = snapshot('pending', { pendingSince: 50 });
    const submitted = { status: 'submitted', updatedAt: 120, record: {} };
    const next = nextSnapshot(before, submitted, { subject: JOB, nowMs: NOW_MS, event: true });
    expect(next.pendingSince).toBe(50);
  });

  test('counts the age of what carries no time from when it was seen, in whole seconds', () => {
    const timeless = { status: 'FUNDING_DETECTED', updatedAt: null, record: {} };
    const context = { subject: VAULT, nowMs: NOW_MS + 999, event: true };
    expect(nextSnapshot(snapshot('PENDING'), timeless, context).pendingSince).toBe(NOW_SECONDS);
  });
});

/** What the clock is held against. */
function clock(overdueAfterMs: readonly number[], handed: HandedState | null = null): TimedContext {
  return { overdue: overdueAfterMs.map((ms) => ({ after: ms, ms })), handed };
}

describe('what the clock brings about', () => {
  const deadline = NOW_SECONDS + 60;
  const vault = snapshot('PENDING', { record: { state: 'PENDING', deadline } });

  test('is the end of an unfunded vault, once', () => {
    expect(timedMoments(VAULT, vault, clock([]))).toEqual([
      {
        atMs: deadline * 1_000,
        event: {
          flag: 'expired',
          overdueAfter: null,
          transition: {
            type: 'vault.expired',
            status: 'PENDING',
            previousStatus: 'PENDING',
            changes: [],
            skipped: false,
            regression: false,
          },
          said: {},
        },
      },
    ]);
    expect(timedMoments(VAULT, { ...vault, flags: ['expired'] }, clock([]))).toEqual([]);
  });

  test('reads a deadline that is written as text', () => {
    const text = { ...vault, record: { deadline: String(deadline) } };
    expect(timedMoments(VAULT, text, clock([])).map(({ atMs }) => atMs)).toEqual([deadline * 1_000]);
  });

  test.each([0, -5, 1.5, null, '', 'soon', [deadline]])('is nothing for a deadline of %j', (value) => {
    expect(timedMoments(VAULT, { ...vault, record: { deadline: value } }, clock([]))).toEqual([]);
  });

  test.each([
    'FUNDING_DETECTED',
    'PUBLISHED',
    'EXPIRED_UNFUNDED',
    'unknown',
  ])('is no end for a vault that is %s', (status) => {
    expect(timedMoments(VAULT, { ...vault, status }, clock([]))).toEqual([]);
  });

  test('is no end for anything but a vault', () => {
    expect(timedMoments(INTENT, snapshot('pending', { record: { deadline } }), clock([]))).toEqual([]);
  });

  test('is overdue once per configured time, counted from the first time seen as pending', () => {
    const pending = snapshot('pending', { pendingSince: 100, updatedAt: 500 });
    const moments = timedMoments(INTENT, pending, clock([60_000, 5_000, 60_000]));
    expect(
      moments.map(({ atMs, event }) => [atMs, event.flag, event.overdueAfter, event.transition.type]),
    ).toEqual([
      [160_000, 'overdue:60000', 60_000, 'intent.overdue'],
      [105_000, 'overdue:5000', 5_000, 'intent.overdue'],
    ]);
    const flagged = { ...pending, flags: ['overdue:60000'] };
    expect(timedMoments(INTENT, flagged, clock([60_000, 5_000])).map(({ event }) => event.flag)).toEqual([
      'overdue:5000',
    ]);
  });

  test('is overdue by what was learned as well, under a flag that does not move with what is learned', () => {
    const pending = snapshot('pending', { pendingSince: 100 });
    const learned = (ms: number) => ({ overdue: [{ after: 'learned' as const, ms }], handed: null });
    expect(timedMoments(INTENT, pending, learned(90_000))).toMatchObject([
      { atMs: 190_000, event: { flag: 'overdue:learned', overdueAfter: 'learned' } },
    ]);
    const told = { ...pending, flags: ['overdue:learned'] };
    expect(timedMoments(INTENT, told, learned(95_000))).toEqual([]);
  });

  test('is never overdue for what is not under way', () => {
    expect(timedMoments(INTENT, snapshot('filled', { pendingSince: 100 }), clock([1_000]))).toEqual([]);
    expect(timedMoments(QUOTE, snapshot('active', { pendingSince: 100 }), clock([1_000]))).toEqual([]);
    expect(timedMoments(INTENT, snapshot('pending'), clock([1_000]))).toEqual([]);
  });

  test('is of a type that is listed', () => {
    const types = [INTENT, JOB, GATEWAY_JOB].flatMap((subject) =>
      timedMoments(subject, snapshot('PENDING', { pendingSince: 1 }), clock([1])).map(
        ({ event }) => event.transition.type,
      ),
    );
    expect(types).toEqual(['intent.overdue', 'gasless.overdue', 'gasless.overdue']);
    expect(EVENT_TYPES).toEqual(expect.arrayContaining([...types, 'vault.expired']));
  });
});

describe('the end of a quote that was handed over', () => {
  const quote = { subject: QUOTE, said: { id: QUOTE, expiresAt: NOW_SECONDS + 60 } };
  const valid = clock([], { quote, verdict: 'valid' });
  const moments = (found: Snapshot, context = valid): [number, string][] =>
    timedMoments(QUOTE, found, context).map(({ atMs, event }) => [atMs, event.transition.type]);
  const expired: [number, string][] = [[(NOW_SECONDS + 60) * 1_000, 'quote.expired']];

  test('is the moment that it says itself, while it is not funded or was never shown', () => {
    expect(moments(snapshot('active'))).toEqual(expired);
    expect(moments(snapshot('Active'))).toEqual(expired);
    expect(moments(unseenSnapshot(NOW_MS))).toEqual(expired);
    const [moment] = timedMoments(QUOTE, snapshot('active'), valid);
    expect(moment?.event.said).toEqual({ id: QUOTE, expiresAt: NOW_SECONDS + 60 });
  });

  test('comes once in its life, in whatever status it was told', () => {
    const told = { ...unseenSnapshot(NOW_MS), flags: ['quote:expired'] };
    expect(moments(told)).toEqual([]);
    const shown = { status: 'active', updatedAt: NOW_SECONDS, record: {} };
    const next = nextSnapshot(told, shown, { subject: QUOTE, nowMs: NOW_MS, event: true });
    expect(moments({ ...next, commit: 2, told: true })).toEqual([]);
  });

  test.each([
    'submitted',
    'refilled',
  ])('does not come once it was seen %s, whatever is said later', (status) => {
    expect(moments(snapshot(status))).toEqual([]);
    const context = { subject: QUOTE, nowMs: NOW_MS, event: true };
    const funded = nextSnapshot(snapshot('active'), { status, updatedAt: NOW_SECONDS, record: {} }, context);
    for (const later of ['active', 'unknown']) {
      const accepted = { status: later, updatedAt: NOW_SECONDS + 1, record: {} };
      const next = nextSnapshot({ ...funded, commit: 2, told: true }, accepted, context);
      expect(moments({ ...next, commit: 3, told: true })).toEqual([]);
    }
  });

  test.each(['invalid', null] as const)('is not believed while its signature is %s', (verdict) => {
    expect(moments(snapshot('active'), clock([], { quote, verdict }))).toEqual([]);
  });

  test('is unknown for a quote that is named by its id alone', () => {
    expect(moments(snapshot('active'), clock([]))).toEqual([]);
  });
});

describe('the next poll', () => {
  const base = {
    subject: INTENT,
    nowMs: NOW_MS,
    shown: false,
    price: 1,
    law: EXPECTED_LAW,
    finished: {},
    deadlinesMs: [],
  };
  const afterMs = (input: Partial<Parameters<typeof nextPoll>[0]> & { snapshot: Snapshot | null }) => {
    const next = nextPoll({ ...base, ...input });
    return next.next === 'poll' ? next.afterMs : next.next;
  };

  test.each([
    ['settled', 'finish'],
    ['SETTLED', 'finish'],
    ['refunded', 'finish'],
    ['refundable', 60_000],
    ['routing', 30_000],
    ['constructor', 30_000],
  ])('of an intent that is %s is: %s', (status, expected) => {
    expect(afterMs({ snapshot: snapshot(status) })).toBe(expected);
  });

  test('of something under way comes when its end is likely, and after 30 s at most while it is young', () => {
    const pending = (ageMs: number, price = 1) =>
      Number(afterMs({ snapshot: snapshot('pending', { changedAtMs: NOW_MS - ageMs }), price }));
    expect(pending(20_000)).toBeLessThan(pending(0));
    expect(pending(20_000)).toBeLessThan(15_000);
    expect(pending(250_000)).toBeLessThanOrEqual(30_000);
    expect(pending(3_000_000)).toBeGreaterThan(30_000);
    expect(pending(3_000_000)).toBeLessThanOrEqual(300_000);
    expect(pending(30 * DAY_MS)).toBe(600_000);
    expect(pending(20_000, 0.1)).toBeLessThan(pending(20_000));
    expect(pending(20_000, 0.000_001)).toBe(500);
  });

  test('of a gasless job and of a funded vault goes by a law of their own', () => {
    const of = (subject: SubjectId, status: string) =>
      Number(afterMs({ subject, snapshot: snapshot(status, { changedAtMs: NOW_MS - 10_000 }) }));
    expect(of(JOB, 'submitted')).toBeLessThan(of(INTENT, 'pending'));
    expect(of(GATEWAY_JOB, 'PERMIT_SENT')).toBe(of(JOB, 'submitted'));
    expect(of(VAULT, 'FUNDING_DETECTED')).toBeLessThanOrEqual(30_000);
  });

  test('of what a page has just shown comes twice as late, so that the next page comes before it', () => {
    for (const known of [null, snapshot('pending'), snapshot('refundable')]) {
      const alone = Number(afterMs({ snapshot: known }));
      expect(Math.abs(Number(afterMs({ snapshot: known, shown: true })) - 2 * alone)).toBeLessThanOrEqual(1);
    }
  });

  test('gets rarer with the age of a stage without law, to ten minutes at most', () => {
    const aged = (ageMs: number) =>
      afterMs({ snapshot: snapshot('refundable', { changedAtMs: NOW_MS - ageMs }) });
    expect(aged(60_000)).toBe(60_000);
    expect(aged(3_000_000)).toBe(100_000);
    expect(aged(6 * DAY_MS)).toBe(600_000);
  });

  test('takes the age from the upstream, and never below zero', () => {
    const at = (updatedAt: number) => afterMs({ snapshot: snapshot('refundable', { updatedAt }) });
    // A thirtieth of 3,000 s, less the half second by which a whole second is early.
    expect(at(NOW_SECONDS - 3_000)).toBe(Math.round(2_999_500 / 30));
    expect(at(NOW_SECONDS + 3_000)).toBe(60_000);
  });

  test('goes with the square root of the price, and not below a fifth of its interval', () => {
    expect(afterMs({ snapshot: snapshot('refundable'), price: 9 })).toBe(180_000);
    expect(afterMs({ snapshot: snapshot('refundable'), price: 0.25 })).toBe(30_000);
    expect(afterMs({ snapshot: snapshot('refundable'), price: 0.01 })).toBe(12_000);
  });

  test('adds to the demand the rate that it would have at a price of 1, whatever the price', () => {
    for (const price of [0.25, 1, 100]) {
      const next = nextPoll({ ...base, snapshot: snapshot('refundable'), price });
      expect(next.next === 'poll' ? next.demand : null).toBeCloseTo(1 / 60, 12);
    }
  });

  test('comes a second after a deadline, if that is sooner; a deadline that has passed counts no more', () => {
    const at = (...deadlinesMs: number[]) => afterMs({ snapshot: snapshot('refundable'), deadlinesMs });
    expect(at(NOW_MS + 3_000, NOW_MS + 8_000)).toBe(4_000);
    expect(at(NOW_MS + 90_000)).toBe(60_000);
    expect(at(NOW_MS, NOW_MS - 1)).toBe(60_000);
  });

  test('in doubt comes soon, and never finishes', () => {
    const doubt = { key: 'pending@99', sinceMs: NOW_MS };
    expect(afterMs({ snapshot: snapshot('settled', { doubt }) })).toBe(15_000);
    expect(Number(afterMs({ snapshot: snapshot('filled', { doubt }) }))).toBeLessThanOrEqual(15_000);
  });
});

describe('tracking', () => {
  const ended = (status: string, ageMs: number, finished: { [kind: string]: string[] } = {}) =>
    isFinished({
      subject: INTENT,
      snapshot: snapshot(status, { changedAtMs: NOW_MS - ageMs }),
      nowMs: NOW_MS,
      finished,
    });

  test('never ends before the upstream has shown the subject', () => {
    expect(isFinished({ subject: INTENT, snapshot: null, nowMs: NOW_MS, finished: {} })).toBe(false);
  });

  test.each<[string, number, boolean]>([
    ['settled', 0, true],
    ['filled', 7 * DAY_MS - 1, false],
    ['filled', 7 * DAY_MS, true],
    ['pending', 4_000 * DAY_MS, false],
    ['refundable', 29 * DAY_MS, false],
    ['failed', DAY_MS, false],
    ['routing', 29 * DAY_MS, false],
    ['routing', 30 * DAY_MS, true],
  ])('of an intent that has been %s for %i ms has ended: %s', (status, ageMs, expected) => {
    expect(ended(status, ageMs)).toBe(expected);
  });

  test('ends where the config says, in place of the built-in statuses of that kind alone', () => {
    expect(ended('FILLED', 0, { intent: ['filled'] })).toBe(true);
    expect(ended('settled', 0, { intent: ['filled'] })).toBe(false);
    expect(ended('settled', 7 * DAY_MS, { intent: ['filled'] })).toBe(true);
    expect(ended('settled', 0, { vault: ['published'] })).toBe(true);
  });

  test('has a stage for every status that is known, and every stage has usable numbers', () => {
    const subjects = { intent: INTENT, 'deposit-address': DEPOSIT, quote: QUOTE, gasless: JOB, vault: VAULT };
    for (const [kind, subject] of Object.entries(subjects)) {
      const statuses = Object.entries(KNOWN_STATUSES).find(([name]) => name === kind)?.[1] ?? [];
      expect(statuses.length).toBeGreaterThan(1);
      for (const status of [...statuses, 'constructor', '__proto__']) {
        const stage = stageOf(subject, status);
        if (stage.watch === null) expect(stage.everyMs).toBeGreaterThan(0);
        else expect(EXPECTED_LAW.rules[stage.watch].weight).toBeGreaterThan(0);
      }
    }
  });
});
