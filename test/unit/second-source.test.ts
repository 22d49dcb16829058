import { describe, expect, test } from 'vitest';
import { stageSinceMs } from '../../src/domain/cadence/next-poll.ts';
import { decide } from '../../src/domain/changes/decide.ts';
import {
  compareStatuses,
  isFollowed,
  joinAlone,
  joinOpen,
  joinV1,
} from '../../src/domain/changes/second-source.ts';
import type { Snapshot, UpstreamRecord } from '../../src/domain/subjects/record.ts';
import { intentId, walletId } from '../../src/domain/subjects/subject.ts';
import { snapshotOf } from '../support/snapshot.ts';

const INTENT = intentId('0x01');
const STATUSES = ['pending', 'filled', 'settled', 'expired', 'failed', 'refundable', 'refunded'];
const T = 1_763_638_259;
const NOW_MS = T * 1_000;

function record(status: string, updatedAt: number | null = T): UpstreamRecord {
  return { subject: INTENT, status, updatedAt, names: [], raw: { status, updatedAt }, unreadable: [] };
}

function openRecord(status: string): UpstreamRecord {
  return { ...record(status, null), raw: { status, open: { status: { Completed: status } } } };
}

function snapshot(status: string, ahead: string | null = null): Snapshot {
  return snapshotOf(NOW_MS)(status, {
    updatedAt: T,
    record: { status, sourceTx: { txHash: '0x02' } },
    ahead,
  });
}

const CONTEXT = { nowMs: NOW_MS, exact: true, history: false, confirmAfterMs: 600_000 };

describe('the comparison of both sources', () => {
  test.each([
    ['pending', 'pending', 'agrees'],
    ['PENDING', 'pending', 'agrees'],
    ['filled', 'filled', 'agrees'],
    ['settled', 'filled', 'agrees'],
    ['pending', 'filled', 'ahead'],
    ['pending', 'refunded', 'ahead'],
    ['expired', 'refundable', 'ahead'],
    ['failed', 'refundable', 'ahead'],
    ['refundable', 'refunded', 'ahead'],
    ['filled', 'pending', 'behind'],
    ['refunded', 'refundable', 'behind'],
    ['refundable', 'filled', 'differs'],
    ['settled', 'refunded', 'differs'],
    ['pending', 'Cancelled', 'differs'],
    ['bridging', 'filled', 'differs'],
  ])('v1 %s and open %s: %s', (v1, open, result) => {
    expect(compareStatuses(INTENT, v1, open)).toBe(result);
    const isAdded = joinOpen(snapshot(v1), openRecord(open)) !== null;
    expect(isAdded).toBe(result === 'ahead');
  });

  test('is made for transfers alone, as long as the open source may have a step', () => {
    const followed = STATUSES.filter((status) => isFollowed(INTENT, snapshot(status)));
    expect(followed).toEqual(['pending', 'expired', 'failed', 'refundable']);
    expect(isFollowed(INTENT, snapshot('filled', 'pending'))).toBe(true);
    expect(isFollowed(walletId('0x01'), snapshot('pending'))).toBe(false);
  });
});

describe('a step of the open source', () => {
  test('retains the members of v1, and has the original beside them', () => {
    expect(joinOpen(snapshot('pending'), openRecord('filled'))).toMatchObject({
      ahead: 'pending',
      record: {
        status: 'filled',
        raw: { status: 'filled', sourceTx: { txHash: '0x02' }, open: { status: { Completed: 'filled' } } },
      },
    });
  });

  test('may follow another: both are ahead of the same status of v1', () => {
    expect(joinOpen(snapshot('refundable', 'pending'), openRecord('refunded'))).toMatchObject({
      ahead: 'pending',
      record: { status: 'refunded' },
    });
  });

  test('that is withdrawn leads back to v1, as a regression once it is confirmed', () => {
    const before = snapshot('filled', 'pending');
    const joined = joinOpen(before, openRecord('pending'));
    expect(joined).toMatchObject({ ahead: null, record: { status: 'pending' } });
    if (joined === null) return;
    const first = decide(before, joined.record, CONTEXT);
    expect(first).toMatchObject({ outcome: 'stale', reason: 'backward' });
    const unconfirmed = first.outcome === 'stale' ? first.unconfirmed : null;
    const later = { ...CONTEXT, nowMs: NOW_MS + 600_000 };
    expect(decide({ ...before, unconfirmed }, joined.record, later)).toMatchObject({
      outcome: 'changed',
      accepted: { record: { sourceTx: { txHash: '0x02' } } },
      transition: { type: 'intent.pending', previousStatus: 'filled', regression: true },
    });
  });
});

test.each(['Completed', 'Claimed'])('a word that is on no usual step, as %s, withdraws no step', (word) => {
  expect(joinOpen(snapshot('filled', 'pending'), openRecord(word))).toBeNull();
});

test('the age of a step of the open source begins when it was seen, not at the time of v1 before it', () => {
  const changedAtMs = NOW_MS + 8 * 86_400_000;
  expect(stageSinceMs({ ...snapshot('refunded', 'refundable'), changedAtMs })).toBe(changedAtMs);
  expect(stageSinceMs({ ...snapshot('refunded'), changedAtMs })).toBe(NOW_MS + 500);
});

describe('an answer of the open source alone', () => {
  test.each([
    ['settled', 'filled', 'settled'],
    ['expired', 'pending', 'expired'],
    ['expired', 'refundable', 'refundable'],
    ['filled', 'pending', 'pending'],
  ])('after %s of v1, its %s is %s', (stored, open, expected) => {
    const joined = joinAlone(snapshot(stored), openRecord(open));
    expect(joined).toMatchObject({ ahead: null, record: { status: expected, raw: { status: expected } } });
  });

  test('is itself where nothing is stored', () => {
    expect(joinAlone(null, openRecord('filled')).record.status).toBe('filled');
  });
});

describe('an answer of v1 behind the open source', () => {
  test.each([T, T + 1, null])('at %s is no step back', (updatedAt) => {
    const before = snapshot('filled', 'pending');
    const joined = joinV1(before, record('pending', updatedAt));
    expect(joined).toMatchObject({ ahead: 'pending', isBehind: true, record: { status: 'filled' } });
    expect(decide(before, joined.record, CONTEXT).outcome).toBe('unchanged');
  });

  test.each([
    ['filled', 'unchanged'],
    ['settled', 'changed'],
    ['refundable', 'changed'],
  ])('ends where v1 shows %s', (status, outcome) => {
    const before = snapshot('filled', 'pending');
    const joined = joinV1(before, record(status, T + 1));
    expect(joined).toMatchObject({ ahead: null, isBehind: false, record: { status } });
    const decision = decide(before, joined.record, CONTEXT);
    expect(decision.outcome).toBe(outcome);
    if (decision.outcome === 'changed') expect(decision.transition.regression).toBe(false);
  });

  test('is a step back where the open source is not ahead', () => {
    const joined = joinV1(snapshot('filled'), record('pending', T + 1));
    expect(joined).toMatchObject({ isBehind: false, record: { status: 'pending' } });
  });
});
