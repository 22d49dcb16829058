import { describe, expect, test } from 'vitest';
import { type DecideContext, decide } from '../../src/domain/changes/decide.ts';
import { formerAfter } from '../../src/domain/changes/former.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Snapshot, UpstreamRecord } from '../../src/domain/subjects/record.ts';
import { intentId } from '../../src/domain/subjects/subject.ts';

const INTENT = intentId('0xaa');
const NOW_MS = 1_763_638_260_000;
const TEN_MINUTES_MS = 600_000;

const EXACT: DecideContext = { nowMs: NOW_MS, exact: true, history: false, confirmAfterMs: TEN_MINUTES_MS };
const PAGE: DecideContext = { ...EXACT, exact: false };

/** An answer about an intent, with the members of an otherwise empty record. */
function answer(status: string, updatedAt: number | null, more: JsonObject = {}): UpstreamRecord {
  const raw = { id: 'intent:0xaa', type: 'intent', status, updatedAt, ...more };
  return { subject: INTENT, status, updatedAt, names: [], raw, unreadable: [] };
}

/** The snapshot after an answer, with one event. */
function snapshotOf(record: UpstreamRecord, more: Partial<Snapshot> = {}): Snapshot {
  const { status, updatedAt, raw } = record;
  return {
    version: 1,
    sequence: 1,
    epoch: 1,
    commit: 1,
    status,
    updatedAt,
    record: raw,
    observedAtMs: NOW_MS - 5_000,
    changedAtMs: NOW_MS - 5_000,
    pendingSince: null,
    flags: [],
    unconfirmed: null,
    ahead: null,
    former: [],
    emitted: [],
    reported: true,
    ...more,
  };
}

describe('a stale answer', () => {
  const filled = answer('filled', 100, { destinationTx: { txHash: '0x01' } });

  test.each<[string, UpstreamRecord, string]>([
    ['an older time', answer('filled', 99), 'older'],
    ['an older time with a later status', answer('settled', 99), 'older'],
    ['an older time with an earlier status', answer('pending', 99), 'older'],
    ['unknown', answer('unknown', null), 'unknown'],
    ['unknown in capitals, even at a newer time', answer('UNKNOWN', 101), 'unknown'],
    ['a backward step at the same time', answer('pending', 100), 'backward'],
    ['a backward step without a time', answer('pending', null), 'backward'],
  ])('is neither stored nor reported: %s', (_, record, reason) => {
    expect(decide(snapshotOf(filled), record, PAGE)).toEqual({ outcome: 'stale', reason, unconfirmed: null });
    const unconfirmed = { key: `${record.status.toLowerCase()}@${record.updatedAt ?? ''}`, sinceMs: NOW_MS };
    expect(decide(snapshotOf(filled), record, EXACT)).toEqual({ outcome: 'stale', reason, unconfirmed });
  });

  test('retains the running clock while exact polls repeat it', () => {
    const sinceMs = NOW_MS - TEN_MINUTES_MS + 1;
    const snapshot = snapshotOf(filled, { unconfirmed: { key: 'filled@99', sinceMs } });
    expect(decide(snapshot, answer('filled', 99), EXACT)).toEqual({
      outcome: 'stale',
      reason: 'older',
      unconfirmed: { key: 'filled@99', sinceMs },
    });
  });

  test.each([
    ['another time', answer('filled', 98), 'filled@98'],
    ['another status', answer('pending', 99), 'pending@99'],
    ['unknown', answer('unknown', null), 'unknown@'],
  ])('starts the clock anew when it becomes %s', (_, record, key) => {
    const snapshot = snapshotOf(filled, { unconfirmed: { key: 'filled@99', sinceMs: 0 } });
    expect(decide(snapshot, record, EXACT)).toMatchObject({
      outcome: 'stale',
      unconfirmed: { key, sinceMs: NOW_MS },
    });
  });

  test('is accepted as a regression once exact polls have repeated it for ten minutes', () => {
    const unconfirmed = { key: 'pending@99', sinceMs: NOW_MS - TEN_MINUTES_MS };
    const record = answer('pending', 99);
    expect(decide(snapshotOf(filled, { unconfirmed }), record, EXACT)).toEqual({
      outcome: 'changed',
      accepted: { status: 'pending', updatedAt: 99, record: record.raw },
      transition: {
        type: 'intent.pending',
        status: 'pending',
        previousStatus: 'filled',
        changes: ['status'],
        skipped: false,
        regression: true,
      },
    });
  });

  test('that steps back is not confirmed by a value that was repeated beside another status', () => {
    const settled = (note: string): UpstreamRecord => answer('settled', 100, { note });
    const next = (before: Snapshot, record: UpstreamRecord, nowMs: number): Snapshot => {
      const decision = decide(before, record, { ...EXACT, nowMs });
      if (decision.outcome === 'stale') return { ...before, unconfirmed: decision.unconfirmed };
      const accepted = decision.accepted ?? before;
      return { ...before, ...accepted, former: formerAfter(before, accepted, INTENT), unconfirmed: null };
    };
    const changed = next(snapshotOf(settled('a')), settled('b'), NOW_MS);
    const returned = next(changed, settled('a'), NOW_MS);
    expect(returned.unconfirmed).toMatchObject({ sinceMs: NOW_MS });
    const laterMs = NOW_MS + TEN_MINUTES_MS;
    const back = answer('pending', null, { note: 'a' });
    const unconfirmed = { key: 'pending@', sinceMs: laterMs };
    expect(decide(returned, back, { ...EXACT, nowMs: laterMs })).toEqual({
      outcome: 'stale',
      reason: 'backward',
      unconfirmed,
    });
    const nowMs = laterMs + TEN_MINUTES_MS;
    expect(decide({ ...returned, unconfirmed }, back, { ...EXACT, nowMs })).toMatchObject({
      outcome: 'changed',
      transition: { regression: true },
    });
  });

  test('is never accepted from a page, however long it was repeated', () => {
    const unconfirmed = { key: 'pending@99', sinceMs: 0 };
    expect(decide(snapshotOf(filled, { unconfirmed }), answer('pending', 99), PAGE)).toEqual({
      outcome: 'stale',
      reason: 'older',
      unconfirmed: null,
    });
  });

  test('that confirms nothing but an older time accepts the time and makes no event', () => {
    const unconfirmed = { key: 'filled@99', sinceMs: 0 };
    const older = answer('filled', 99);
    expect(decide(snapshotOf(filled, { unconfirmed }), older, EXACT)).toEqual({
      outcome: 'unchanged',
      accepted: {
        status: 'filled',
        updatedAt: 99,
        record: { ...filled.raw, updatedAt: 99 },
        answered: older.raw,
      },
    });
  });

  test('that confirms other content at an older time is an update with regression', () => {
    const unconfirmed = { key: 'filled@99', sinceMs: 0 };
    const record = answer('filled', 99, { destinationTx: { txHash: '0x02' } });
    expect(decide(snapshotOf(filled, { unconfirmed }), record, EXACT)).toMatchObject({
      outcome: 'changed',
      accepted: { updatedAt: 99 },
      transition: { type: 'intent.updated', changes: ['destinationTx.txHash'], regression: true },
    });
  });

  test('that confirms unknown is reported as unknown, without regression', () => {
    const unconfirmed = { key: 'unknown@', sinceMs: NOW_MS - TEN_MINUTES_MS };
    expect(decide(snapshotOf(filled, { unconfirmed }), answer('unknown', null), EXACT)).toMatchObject({
      outcome: 'changed',
      accepted: { status: 'unknown', updatedAt: null },
      transition: { type: 'intent.unknown', previousStatus: 'filled', regression: false, skipped: false },
    });
  });
});

describe('after unknown was accepted', () => {
  const unknown = snapshotOf(answer('unknown', null));

  test.each([
    answer('pending', 1),
    answer('filled', 100),
    answer('pending', null),
  ])('the first known answer is a change, at any time', (record) => {
    for (const context of [EXACT, PAGE]) {
      expect(decide(unknown, record, context)).toMatchObject({
        outcome: 'changed',
        accepted: { status: record.status, updatedAt: record.updatedAt },
        transition: { type: `intent.${record.status}`, previousStatus: 'unknown', regression: false },
      });
    }
  });

  test('unknown again is unchanged', () => {
    expect(decide(unknown, answer('UNKNOWN', null), EXACT)).toEqual({ outcome: 'unchanged', accepted: null });
  });
});
