import { describe, expect, test } from 'vitest';
import {
  type CadenceInput,
  isFinished,
  nextPoll,
  type PlannedPoll,
} from '../../src/domain/cadence/next-poll.ts';
import { type TimedContext, timedEvents } from '../../src/domain/cadence/timed.ts';
import { NARROW_STATUSES } from '../../src/domain/cadence/wait.ts';
import { nextSnapshot, unseenSnapshot } from '../../src/domain/changes/next-snapshot.ts';
import { EVENT_TYPES } from '../../src/domain/events/event-types.ts';
import type { ImportedState } from '../../src/domain/quotes/promised.ts';
import { kindStatuses } from '../../src/domain/subjects/kinds.ts';
import { type Snapshot, type Step, stageOf, stepBetween } from '../../src/domain/subjects/record.ts';
import {
  asSubjectId,
  gaslessId,
  gatewayJobId,
  intentId,
  quoteId,
  type SubjectId,
  subjectKind,
  vaultId,
} from '../../src/domain/subjects/subject.ts';
import { EXPECTED_MODEL } from '../support/expected-model.ts';
import { snapshotOf } from '../support/snapshot.ts';

const INTENT = intentId('0xaa');
const DEPOSIT = asSubjectId('deposit-address:0xaa');
const QUOTE = quoteId('q');
const JOB = gaslessId('j');
const GATEWAY_JOB = gatewayJobId('g');
const VAULT = vaultId({ chainId: 1, address: '0xbb' });
const OTHER = asSubjectId('swap:1');

const NOW_MS = 1_763_638_260_000;
const snapshot = snapshotOf(NOW_MS);
const NOW_SECONDS = NOW_MS / 1_000;
const DAY_MS = 86_400_000;

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
      epoch: 1,
      status: 'pending',
      updatedAt: 100,
      record: accepted.record,
      observedAtMs: NOW_MS,
      changedAtMs: NOW_MS,
      pendingSince: 100,
      flags: [],
      unconfirmed: null,
      ahead: null,
      former: [],
      emitted: [],
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
  ])('retains stage, flags and age in the same status (%s), and confirms the unconfirmed state', (status) => {
    const before = snapshot('pending', {
      pendingSince: 50,
      flags: ['overdue:1000'],
      changedAtMs: NOW_MS - 9,
      unconfirmed: { key: 'x', sinceMs: 1 },
    });
    expect(
      nextSnapshot(before, { ...accepted, status }, { subject: INTENT, nowMs: NOW_MS, event: true }),
    ).toMatchObject({
      pendingSince: 50,
      flags: ['overdue:1000'],
      changedAtMs: NOW_MS - 9,
      observedAtMs: NOW_MS,
      unconfirmed: null,
    });
  });

  test('clears flags when the status changes, and retains the start of its pending time', () => {
    const before = snapshot('pending', {
      pendingSince: 50,
      flags: ['overdue:1000'],
      changedAtMs: NOW_MS - 9,
    });
    const filled = { status: 'filled', updatedAt: 120, record: {} };
    expect(nextSnapshot(before, filled, { subject: INTENT, nowMs: NOW_MS, event: true })).toMatchObject({
      pendingSince: 50,
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

  test('counts the age of a record without a time from its observation, in whole seconds', () => {
    const timeless = { status: 'FUNDING_DETECTED', updatedAt: null, record: {} };
    const context = { subject: VAULT, nowMs: NOW_MS + 999, event: true };
    expect(nextSnapshot(snapshot('PENDING'), timeless, context).pendingSince).toBe(NOW_SECONDS);
  });
});

function clock(
  overdueAfterMs: readonly number[],
  imported: ImportedState | null = null,
  warnBeforeMs: readonly number[] = [],
): TimedContext {
  return { overdue: overdueAfterMs.map((ms) => ({ after: ms, ms })), warnBeforeMs, imported };
}

describe('an event of the clock', () => {
  const deadline = NOW_SECONDS + 60;
  const vault = snapshot('PENDING', { record: { state: 'PENDING', deadline } });

  test('is the end of an unfunded vault, once', () => {
    expect(timedEvents(VAULT, vault, clock([]))).toEqual([
      {
        atMs: deadline * 1_000,
        event: {
          flag: 'expired',
          overdueAfter: null,
          warnBeforeMs: null,
          untilMs: null,
          transition: {
            type: 'vault.expired',
            status: 'PENDING',
            previousStatus: 'PENDING',
            changes: [],
            skipped: false,
            regression: false,
          },
          raw: {},
        },
      },
    ]);
    expect(timedEvents(VAULT, { ...vault, flags: ['expired'] }, clock([]))).toEqual([]);
  });

  test('is a warning before that end, once per configured time and as long as there is something to warn of', () => {
    const warned = clock([], null, [30_000, 20_000, 30_000]);
    const events = timedEvents(VAULT, vault, warned);
    const end = deadline * 1_000;
    expect(events.map(({ atMs, event }) => [atMs, event.flag, event.warnBeforeMs, event.untilMs])).toEqual([
      [end - 30_000, 'expiring:30000', 30_000, end],
      [end - 20_000, 'expiring:20000', 20_000, end],
      [end, 'expired', null, null],
    ]);
    expect(events[0]?.event.transition.type).toBe('vault.expiring');
    const reported = timedEvents(VAULT, { ...vault, flags: ['expiring:30000'] }, warned);
    expect(reported.map(({ event }) => event.flag)).toEqual(['expiring:20000', 'expired']);
    expect(timedEvents(VAULT, { ...vault, status: 'FUNDING_DETECTED' }, warned)).toEqual([]);
  });

  test('reads a deadline that is written as text', () => {
    const text = { ...vault, record: { deadline: String(deadline) } };
    expect(timedEvents(VAULT, text, clock([])).map(({ atMs }) => atMs)).toEqual([deadline * 1_000]);
  });

  test.each([0, -5, 1.5, null, '', 'soon', [deadline]])('is nothing for a deadline of %j', (value) => {
    expect(timedEvents(VAULT, { ...vault, record: { deadline: value } }, clock([]))).toEqual([]);
  });

  test.each([
    'FUNDING_DETECTED',
    'PUBLISHED',
    'EXPIRED_UNFUNDED',
    'unknown',
  ])('is no end for a vault that is %s', (status) => {
    expect(timedEvents(VAULT, { ...vault, status }, clock([]))).toEqual([]);
  });

  test('is no end for anything but a vault', () => {
    expect(timedEvents(INTENT, snapshot('pending', { record: { deadline } }), clock([]))).toEqual([]);
  });

  test('is overdue once per configured time, counted from the first time seen as pending', () => {
    const pending = snapshot('pending', { pendingSince: 100, updatedAt: 500 });
    const events = timedEvents(INTENT, pending, clock([60_000, 5_000, 60_000]));
    expect(
      events.map(({ atMs, event }) => [atMs, event.flag, event.overdueAfter, event.transition.type]),
    ).toEqual([
      [160_000, 'overdue:60000', 60_000, 'intent.overdue'],
      [105_000, 'overdue:5000', 5_000, 'intent.overdue'],
    ]);
    const flagged = { ...pending, flags: ['overdue:60000'] };
    expect(timedEvents(INTENT, flagged, clock([60_000, 5_000])).map(({ event }) => event.flag)).toEqual([
      'overdue:5000',
    ]);
  });

  test('is overdue by the learned times as well, under a flag that does not change with them', () => {
    const pending = snapshot('pending', { pendingSince: 100 });
    const learned = (ms: number) => ({ ...clock([]), overdue: [{ after: 'learned' as const, ms }] });
    expect(timedEvents(INTENT, pending, learned(90_000))).toMatchObject([
      { atMs: 190_000, event: { flag: 'overdue:learned', overdueAfter: 'learned' } },
    ]);
    const reported = { ...pending, flags: ['overdue:learned'] };
    expect(timedEvents(INTENT, reported, learned(95_000))).toEqual([]);
  });

  test('is never overdue for a subject that is not under way', () => {
    expect(timedEvents(INTENT, snapshot('filled', { pendingSince: 100 }), clock([1_000]))).toEqual([]);
    expect(timedEvents(QUOTE, snapshot('active', { pendingSince: 100 }), clock([1_000]))).toEqual([]);
    expect(timedEvents(INTENT, snapshot('pending'), clock([1_000]))).toEqual([]);
  });

  test('is of a type that is listed', () => {
    const types = [INTENT, JOB, GATEWAY_JOB].flatMap((subject) =>
      timedEvents(subject, snapshot('PENDING', { pendingSince: 1 }), clock([1])).map(
        ({ event }) => event.transition.type,
      ),
    );
    expect(types).toEqual(['intent.overdue', 'gasless.overdue', 'gasless.overdue']);
    expect(EVENT_TYPES).toEqual(expect.arrayContaining([...types, 'vault.expired']));
  });
});

describe('the end of an imported quote', () => {
  const quote = { subject: QUOTE, raw: { id: QUOTE, expiresAt: NOW_SECONDS + 60 } };
  const valid = clock([], { quote, verdict: 'valid' });
  const events = (found: Snapshot, context = valid): [number, string][] =>
    timedEvents(QUOTE, found, context).map(({ atMs, event }) => [atMs, event.transition.type]);
  const expired: [number, string][] = [[(NOW_SECONDS + 60) * 1_000, 'quote.expired']];

  test('is the time in the quote itself, while it is not funded or was never shown', () => {
    expect(events(snapshot('active'))).toEqual(expired);
    expect(events(snapshot('Active'))).toEqual(expired);
    expect(events(unseenSnapshot(NOW_MS))).toEqual(expired);
    const [time] = timedEvents(QUOTE, snapshot('active'), valid);
    expect(time?.event.raw).toEqual({ id: QUOTE, expiresAt: NOW_SECONDS + 60 });
  });

  test('is warned of before, once in its life', () => {
    const warned = clock([], { quote, verdict: 'valid' }, [30_000]);
    const early: [number, string] = [(NOW_SECONDS + 30) * 1_000, 'quote.expiring'];
    expect(events(unseenSnapshot(NOW_MS), warned)).toEqual([early, ...expired]);
    const reported = { ...unseenSnapshot(NOW_MS), flags: ['quote:expiring:30000'] };
    const shown = { status: 'active', updatedAt: NOW_SECONDS, record: {} };
    const next = nextSnapshot(reported, shown, { subject: QUOTE, nowMs: NOW_MS, event: true });
    expect(events({ ...next, commit: 2, reported: true }, warned)).toEqual(expired);
    const invalid = clock([], { quote, verdict: 'invalid' }, [30_000]);
    expect(events(snapshot('active'), invalid)).toEqual([]);
  });

  test('comes once in its life, in any reported status', () => {
    const reported = { ...unseenSnapshot(NOW_MS), flags: ['quote:expired'] };
    expect(events(reported)).toEqual([]);
    const shown = { status: 'active', updatedAt: NOW_SECONDS, record: {} };
    const next = nextSnapshot(reported, shown, { subject: QUOTE, nowMs: NOW_MS, event: true });
    expect(events({ ...next, commit: 2, reported: true })).toEqual([]);
  });

  test.each([
    'submitted',
    'refilled',
  ])('does not come once it was seen %s, after any later answer', (status) => {
    expect(events(snapshot(status))).toEqual([]);
    const context = { subject: QUOTE, nowMs: NOW_MS, event: true };
    const funded = nextSnapshot(snapshot('active'), { status, updatedAt: NOW_SECONDS, record: {} }, context);
    for (const later of ['active', 'unknown']) {
      const accepted = { status: later, updatedAt: NOW_SECONDS + 1, record: {} };
      const next = nextSnapshot({ ...funded, commit: 2, reported: true }, accepted, context);
      expect(events({ ...next, commit: 3, reported: true })).toEqual([]);
    }
  });

  test.each(['invalid', null] as const)('is not believed while its signature is %s', (verdict) => {
    expect(events(snapshot('active'), clock([], { quote, verdict }))).toEqual([]);
  });

  test('is unknown for a quote that is named by its id alone', () => {
    expect(events(snapshot('active'), clock([]))).toEqual([]);
  });
});

describe('the next poll', () => {
  const base: Omit<CadenceInput, 'snapshot'> = {
    subject: INTENT,
    nowMs: NOW_MS,
    namedAtMs: NOW_MS,
    price: 1,
    model: EXPECTED_MODEL,
    finished: {},
    alarmsMs: [],
  };
  const next = (input: Partial<CadenceInput> & { snapshot: Snapshot | null }): PlannedPoll => {
    const planned = nextPoll({ ...base, ...input });
    if (planned.next === 'finish') throw new Error('finished');
    return planned;
  };

  test.each(['settled', 'SETTLED', 'refunded'])('of an intent that is %s never comes', (status) => {
    expect(nextPoll({ ...base, snapshot: snapshot(status) })).toEqual({ next: 'finish' });
  });

  test.each([
    ['refundable', 60, 30],
    ['routing', 30, 6],
    ['constructor', 30, 6],
  ])('of an intent that is %s is worth its request after %d s at a price of 1, and allowed after %d', (status, everySeconds, leastSeconds) => {
    const planned = next({ snapshot: snapshot(status) });
    expect(planned.virtualSeconds).toBeCloseTo(everySeconds, 6);
    expect(planned).toMatchObject({
      restMs: 1_000 * leastSeconds,
      latestMs: 6_000 * everySeconds,
      alarmMs: null,
    });
  });

  test('of something under way comes when its end is likely, and after 30 s at most while it is young', () => {
    const pending = (ageMs: number, price = 1) =>
      next({ snapshot: snapshot('pending', { changedAtMs: NOW_MS - ageMs }), price });
    expect(pending(20_000).virtualSeconds).toBeLessThan(pending(0).virtualSeconds);
    expect(pending(20_000).virtualSeconds).toBeLessThan(15);
    expect(pending(0)).toMatchObject({ restMs: 1_000, latestMs: 30_000 });
    expect(pending(250_000)).toMatchObject({ restMs: 1_000, latestMs: 30_000 });
    expect(pending(3_000_000)).toMatchObject({ restMs: 1_000, latestMs: 300_000 });
    expect(pending(30 * DAY_MS)).toMatchObject({ restMs: 1_000, latestMs: 600_000 });
  });

  test('of something filled comes five times as rarely at most, and after ten minutes at least while it is young', () => {
    const filled = (ageMs: number) => next({ snapshot: snapshot('filled', { changedAtMs: NOW_MS - ageMs }) });
    expect(filled(0)).toMatchObject({ restMs: 5_000, latestMs: 600_000 });
    expect(filled(6 * DAY_MS)).toMatchObject({ restMs: 5_000, latestMs: 3_600_000 });
  });

  test('of a gasless job and of a funded vault goes by a model of their own', () => {
    const of = (subject: SubjectId, status: string) =>
      next({ subject, snapshot: snapshot(status, { changedAtMs: NOW_MS - 10_000 }) });
    expect(of(JOB, 'submitted').virtualSeconds).toBeLessThan(of(INTENT, 'pending').virtualSeconds);
    expect(of(GATEWAY_JOB, 'PERMIT_SENT')).toEqual(of(JOB, 'submitted'));
    expect(of(VAULT, 'FUNDING_DETECTED').latestMs).toBe(30_000);
  });

  test('of a subject that the upstream has not shown comes soon, and more rarely the longer nothing is shown', () => {
    const unseen = (ageMs: number) => next({ snapshot: null, namedAtMs: NOW_MS - ageMs });
    expect(unseen(0).virtualSeconds).toBeCloseTo(5, 6);
    expect(unseen(0)).toMatchObject({ latestMs: null, unseen: true });
    expect(unseen(0).restMs).toBeCloseTo(5_000, 3);
    expect(unseen(DAY_MS).restMs).toBeCloseTo(600_000, 3);
    expect(unseen(DAY_MS).virtualSeconds).toBeCloseTo(600, 6);
    // The clock that named it has gone back since.
    expect(unseen(-3_600_000)).toEqual(unseen(0));
  });

  test('gets rarer with the age of a stage without a model, to ten minutes at most', () => {
    const aged = (ageMs: number) =>
      next({ snapshot: snapshot('refundable', { changedAtMs: NOW_MS - ageMs }) }).virtualSeconds;
    expect(aged(60_000)).toBeCloseTo(60, 6);
    expect(aged(3_000_000)).toBeCloseTo(100, 6);
    expect(aged(6 * DAY_MS)).toBeCloseTo(600, 6);
  });

  test('takes the age from the upstream, and never below zero', () => {
    const at = (updatedAt: number) =>
      next({ snapshot: snapshot('refundable', { updatedAt }) }).virtualSeconds;
    // A thirtieth of 3,000 s, less the mean rounding of half a second.
    expect(at(NOW_SECONDS - 3_000)).toBeCloseTo(2_999.5 / 30, 6);
    expect(at(NOW_SECONDS + 3_000)).toBeCloseTo(60, 6);
  });

  test('of a stage without a model is the same in virtual time at any price', () => {
    for (const price of [0.01, 1, 100]) {
      expect(next({ snapshot: snapshot('refundable'), price }).virtualSeconds).toBeCloseTo(60, 6);
    }
  });

  test('is made a second after the next event of the clock; a past one counts no more', () => {
    const at = (...alarmsMs: number[]) => next({ snapshot: snapshot('refundable'), alarmsMs }).alarmMs;
    expect(at(NOW_MS + 3_000, NOW_MS + 8_000)).toBe(4_000);
    expect(at(NOW_MS + 90_000)).toBe(91_000);
    expect(at(NOW_MS, NOW_MS - 1)).toBeNull();
    expect(at()).toBeNull();
  });

  test('while unconfirmed is requested soon, and never finishes', () => {
    const unconfirmed = { key: 'pending@99', sinceMs: NOW_MS };
    expect(next({ snapshot: snapshot('settled', { unconfirmed }) }).alarmMs).toBe(16_000);
    expect(next({ snapshot: snapshot('filled', { unconfirmed }) }).alarmMs).toBe(16_000);
    expect(next({ snapshot: snapshot('filled', { unconfirmed }), alarmsMs: [NOW_MS + 5_000] }).alarmMs).toBe(
      6_000,
    );
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

  test('ends at the statuses of the config, in place of the built-in statuses of that kind alone', () => {
    expect(ended('FILLED', 0, { intent: ['filled'] })).toBe(true);
    expect(ended('settled', 0, { intent: ['filled'] })).toBe(false);
    expect(ended('settled', 7 * DAY_MS, { intent: ['filled'] })).toBe(true);
    expect(ended('settled', 0, { vault: ['published'] })).toBe(true);
  });

  test('has a stage for every status that is known, and every stage has usable numbers', () => {
    for (const subject of [INTENT, DEPOSIT, QUOTE, JOB, VAULT]) {
      const statuses = kindStatuses(subjectKind(subject));
      expect(statuses.length).toBeGreaterThan(1);
      for (const status of [...statuses, 'constructor', '__proto__']) {
        const stage = stageOf(subject, status);
        if (stage.watch === null) expect(stage.everyMs).toBeGreaterThan(0);
        else expect(EXPECTED_MODEL.rules[stage.watch].weight).toBeGreaterThan(0);
      }
    }
  });
});

test('a wallet can be narrowed to every status in which a transfer is watched, and to no other', () => {
  const watched = kindStatuses('intent').filter((status) => stageOf(INTENT, status).finishAfterMs !== 0);
  expect([...NARROW_STATUSES].toSorted()).toEqual(watched.toSorted());
});
