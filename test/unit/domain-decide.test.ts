import { describe, expect, test } from 'vitest';
import { type DecideContext, decide, eventType } from '../../src/domain/changes/decide.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { Snapshot, UpstreamRecord } from '../../src/domain/subjects/record.ts';
import { gatewayJobId, intentId, type SubjectId, vaultId } from '../../src/domain/subjects/subject.ts';

const INTENT = intentId('0xaa');
const VAULT = vaultId({ chainId: 8453, address: '0xbb' });
const JOB = gatewayJobId('job-1');
const NOW_MS = 1_763_638_260_000;
const TEN_MINUTES_MS = 600_000;

const EXACT: DecideContext = { nowMs: NOW_MS, exact: true, history: false, confirmAfterMs: TEN_MINUTES_MS };
const PAGE: DecideContext = { ...EXACT, exact: false };

/** An answer about an intent, with the members of an otherwise empty record. */
function answer(
  status: string,
  updatedAt: number | null,
  more: JsonObject = {},
  unreadable: string[] = [],
): UpstreamRecord {
  const raw = { id: 'intent:0xaa', type: 'intent', status, updatedAt, ...more };
  return { subject: INTENT, status, updatedAt, names: [], raw, unreadable };
}

function gateway(subject: SubjectId, raw: JsonObject): UpstreamRecord {
  const status = String(raw.state ?? raw.status);
  return { subject, status, updatedAt: null, names: [], raw, unreadable: [] };
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

describe('first sight', () => {
  test('is an event that lists all members but the time', () => {
    expect(decide(null, answer('pending', 100, { txHash: null }), EXACT)).toEqual({
      outcome: 'first',
      accepted: {
        status: 'pending',
        updatedAt: 100,
        record: { id: 'intent:0xaa', type: 'intent', status: 'pending', updatedAt: 100, txHash: null },
      },
      transition: {
        type: 'intent.pending',
        status: 'pending',
        previousStatus: null,
        changes: ['id', 'type', 'status', 'txHash'],
        skipped: false,
        regression: false,
      },
    });
  });

  test.each([EXACT, PAGE])('is stored without an event where it is history', (context) => {
    const record = answer('filled', 100);
    expect(decide(null, record, { ...context, history: true })).toEqual({
      outcome: 'history',
      accepted: { status: 'filled', updatedAt: 100, record: record.raw },
    });
  });

  test.each(['unknown', 'UNKNOWN'])('is nothing at all while the upstream answers %s', (word) => {
    for (const history of [true, false]) {
      expect(decide(null, answer(word, null), { ...EXACT, history })).toEqual({
        outcome: 'unchanged',
        accepted: null,
      });
    }
  });

  test('stores an unknown status as it is written', () => {
    const decision = decide(null, answer('Re-Routing Now!', 100), EXACT);
    expect(decision).toMatchObject({
      outcome: 'first',
      accepted: { status: 'Re-Routing Now!' },
      transition: { type: 'intent.re-routing-now-', status: 'Re-Routing Now!' },
    });
  });
});

describe('a state that was stored as history', () => {
  const history = snapshotOf(answer('pending', 100, { txHash: '0x01' }), { sequence: 0, reported: false });

  test('stays silent while it is history for everybody', () => {
    expect(decide(history, answer('pending', 100), { ...EXACT, history: true })).toEqual({
      outcome: 'unchanged',
      accepted: null,
    });
  });

  test('is reported as first sight to a subscription for which it is not, and an answer that omits a member removes none', () => {
    expect(decide(history, answer('pending', 100), EXACT)).toEqual({
      outcome: 'first',
      accepted: { status: 'pending', updatedAt: 100, record: history.record },
      transition: {
        type: 'intent.pending',
        status: 'pending',
        previousStatus: null,
        changes: ['id', 'type', 'status', 'txHash'],
        skipped: false,
        regression: false,
      },
    });
  });

  test('retains its time when the first sight has none', () => {
    expect(decide(history, answer('pending', null), EXACT)).toMatchObject({
      outcome: 'first',
      accepted: { updatedAt: 100, record: { updatedAt: 100 } },
    });
  });

  test('that has moved is a change, so that subscriptions to which it was history get it too', () => {
    expect(decide(history, answer('filled', 200), EXACT)).toMatchObject({
      outcome: 'changed',
      transition: { type: 'intent.filled', previousStatus: 'pending' },
    });
  });

  test('that has grown is a change under the name of its status, for the status was never reported', () => {
    expect(decide(history, answer('pending', 100, { destinationTx: { chainId: 1 } }), EXACT)).toMatchObject({
      outcome: 'changed',
      accepted: { record: { txHash: '0x01', destinationTx: { chainId: 1 } } },
      transition: { type: 'intent.pending', status: 'pending', changes: ['destinationTx'] },
    });
  });

  test('is not reported by an answer behind it', () => {
    expect(decide(history, answer('pending', 99), EXACT)).toMatchObject({
      outcome: 'stale',
      reason: 'older',
    });
    expect(decide(history, answer('unknown', null), EXACT)).toMatchObject({
      outcome: 'stale',
      reason: 'unknown',
    });
  });

  test('makes its first event of an ordinary change when all claims are served', () => {
    expect(decide(history, answer('filled', 200), { ...EXACT, history: true })).toMatchObject({
      outcome: 'changed',
      transition: { type: 'intent.filled', previousStatus: 'pending' },
    });
  });
});

describe('an answer without news', () => {
  const pending = answer('pending', 100, { txHash: '0xAB', steps: [], intentHashes: ['0x1', '0x2'] });

  test.each<[string, UpstreamRecord]>([
    ['the same answer', pending],
    ['omitted members', answer('pending', 100)],
    [
      'members null, empty or an empty list',
      answer('pending', 100, { txHash: null, intentHashes: [], steps: null }),
    ],
    ['an omitted time', answer('pending', null, { txHash: '0xAB' })],
    ['a set in another order', answer('pending', 100, { intentHashes: ['0x2', '0x1'] })],
    ['a part of a set', answer('pending', 100, { intentHashes: ['0x2'] })],
    ['hex in another case', answer('pending', 100, { txHash: '0xab' })],
    ['a member that cannot be read', answer('pending', 100, { txHash: 5 }, ['txHash'])],
  ])('is unchanged and stores nothing: %s', (_, record) => {
    expect(decide(snapshotOf(pending), record, EXACT)).toEqual({ outcome: 'unchanged', accepted: null });
    expect(decide(snapshotOf(pending), record, PAGE)).toEqual({ outcome: 'unchanged', accepted: null });
  });

  test('moves the stored time forward without an event', () => {
    const later = answer('pending', 101, { txHash: '0xAB' });
    expect(decide(snapshotOf(pending), later, EXACT)).toEqual({
      outcome: 'unchanged',
      accepted: {
        status: 'pending',
        updatedAt: 101,
        record: { ...pending.raw, updatedAt: 101 },
        answered: later.raw,
      },
    });
  });

  test('adds a missing time without an event', () => {
    expect(decide(snapshotOf(answer('pending', null)), answer('pending', 100), EXACT)).toMatchObject({
      outcome: 'unchanged',
      accepted: { updatedAt: 100, record: { updatedAt: 100 } },
    });
  });

  test.each([
    ['another case of the status', answer('PENDING', 100)],
    ['another case of the status at a newer time', answer('Pending', 101)],
    ['another spelling of the id', { ...answer('pending', 100, { id: 'intent:0xAA' }) }],
  ])('never makes an event of %s', (_, record) => {
    expect(decide(snapshotOf(answer('pending', 100)), record, EXACT)).toMatchObject({ outcome: 'unchanged' });
  });

  test('never makes an event of another case of a vault state', () => {
    const vault = gateway(VAULT, { vaultAddress: '0xbb', state: 'PENDING' });
    const again = gateway(VAULT, { vaultAddress: '0xBB', state: 'pending' });
    expect(decide(snapshotOf(vault), again, EXACT).outcome).toBe('unchanged');
  });
});

describe('a change', () => {
  const pending = answer('pending', 100, { sourceTx: { txHash: '0x01' }, intentHashes: ['0x1'] });

  test('of the status at a newer time stores the whole answer', () => {
    const record = answer('filled', 101, { destinationTx: { txHash: '0x02' } });
    expect(decide(snapshotOf(pending), record, EXACT)).toEqual({
      outcome: 'changed',
      accepted: { status: 'filled', updatedAt: 101, record: record.raw },
      transition: {
        type: 'intent.filled',
        status: 'filled',
        previousStatus: 'pending',
        changes: ['status', 'destinationTx'],
        skipped: false,
        regression: false,
      },
    });
  });

  test.each([100, null])('of the status forward at the time %s retains known members', (updatedAt) => {
    expect(decide(snapshotOf(pending), answer('filled', updatedAt), EXACT)).toMatchObject({
      outcome: 'changed',
      accepted: { status: 'filled', updatedAt: 100, record: { ...pending.raw, status: 'filled' } },
      transition: { type: 'intent.filled', changes: ['status'], regression: false },
    });
  });

  test('comes from a page as well as from an exact poll', () => {
    expect(decide(snapshotOf(pending), answer('filled', 101), PAGE)).toMatchObject({ outcome: 'changed' });
  });

  test.each([
    ['pending', 'settled', 'intent.settled'],
    ['pending', 'refunded', 'intent.refunded'],
    ['expired', 'refunded', 'intent.refunded'],
  ])('from %s to %s is marked as skipped', (before, after, type) => {
    expect(decide(snapshotOf(answer(before, 100)), answer(after, 101), EXACT)).toMatchObject({
      outcome: 'changed',
      transition: { type, skipped: true, regression: false },
    });
  });

  test('backward at a newer time is reported at once, as a regression', () => {
    expect(decide(snapshotOf(answer('settled', 100)), answer('pending', 101), PAGE)).toMatchObject({
      outcome: 'changed',
      transition: { type: 'intent.pending', previousStatus: 'settled', regression: true, skipped: false },
    });
  });

  test.each([100, 101])('to and from an unknown status is a change like any other, at %s', (updatedAt) => {
    expect(decide(snapshotOf(pending), answer('Routing', updatedAt), EXACT)).toMatchObject({
      outcome: 'changed',
      transition: { type: 'intent.routing', status: 'Routing', skipped: false, regression: false },
    });
    expect(decide(snapshotOf(answer('Routing', 100)), answer('constructor', updatedAt), EXACT).outcome).toBe(
      'changed',
    );
    expect(decide(snapshotOf(answer('Routing', 100)), answer('filled', updatedAt), EXACT)).toMatchObject({
      transition: { previousStatus: 'Routing', regression: false },
    });
  });

  test('of anything else is an update with its paths', () => {
    expect(
      decide(
        snapshotOf(pending),
        answer('pending', 101, { sourceTx: { txHash: '0x09' }, mood: 'good' }),
        EXACT,
      ),
    ).toMatchObject({
      outcome: 'changed',
      accepted: { updatedAt: 101 },
      transition: {
        type: 'intent.updated',
        status: 'pending',
        previousStatus: 'pending',
        changes: ['sourceTx.txHash', 'mood'],
      },
    });
  });

  test('never comes of a member that an answer at a newer time omits', () => {
    const later = answer('pending', 101);
    expect(decide(snapshotOf(pending), later, EXACT)).toEqual({
      outcome: 'unchanged',
      accepted: {
        status: 'pending',
        updatedAt: 101,
        record: { ...pending.raw, updatedAt: 101 },
        answered: later.raw,
      },
    });
  });

  test('comes of a member that is null at a newer time, and of a set that lost an element', () => {
    const record = answer('pending', 101, { sourceTx: null, intentHashes: [] });
    expect(decide(snapshotOf(pending), record, EXACT)).toMatchObject({
      outcome: 'changed',
      accepted: { record: { sourceTx: null, intentHashes: [] } },
      transition: { type: 'intent.updated', changes: ['sourceTx', 'intentHashes'] },
    });
  });

  test('at the same time shows more and is reported once', () => {
    const more = answer('pending', 100, { intentHashes: ['0x2'] });
    const decision = decide(snapshotOf(pending), more, EXACT);
    expect(decision).toMatchObject({
      outcome: 'changed',
      accepted: { updatedAt: 100, record: { sourceTx: { txHash: '0x01' }, intentHashes: ['0x2', '0x1'] } },
      transition: { type: 'intent.updated', changes: ['intentHashes'] },
    });
  });
});

describe('a subject whose answers carry no time', () => {
  test('moves forward by its states, and a step back waits for confirmation', () => {
    const pending = gateway(VAULT, { vaultAddress: '0xbb', state: 'PENDING', amount: '5' });
    const published = gateway(VAULT, { vaultAddress: '0xbb', state: 'PUBLISHED' });
    expect(decide(snapshotOf(pending), published, EXACT)).toMatchObject({
      outcome: 'changed',
      accepted: { status: 'PUBLISHED', updatedAt: null, record: { amount: '5', state: 'PUBLISHED' } },
      transition: { type: 'vault.published', skipped: true, changes: ['state'] },
    });
    expect(decide(snapshotOf(published), pending, EXACT)).toMatchObject({
      outcome: 'stale',
      reason: 'backward',
      unconfirmed: { key: 'pending@' },
    });
  });

  test('grows by its answers and never shrinks', () => {
    const job = gateway(JOB, { id: 'job-1', status: 'PENDING', permitTxHash: '0x1' });
    const more = gateway(JOB, { id: 'job-1', status: 'PENDING', permitTxHash: null, transferTxHash: '0x2' });
    expect(decide(snapshotOf(job), more, EXACT)).toMatchObject({
      outcome: 'changed',
      accepted: { record: { permitTxHash: '0x1', transferTxHash: '0x2' } },
      transition: { type: 'gasless.updated', changes: ['transferTxHash'] },
    });
  });
});

describe('an event type', () => {
  test.each<[SubjectId, string, string]>([
    [INTENT, 'FILLED', 'intent.filled'],
    [VAULT, 'EXPIRED_UNFUNDED', 'vault.expired_unfunded'],
    [JOB, 'PERMIT_SENT', 'gasless.permit_sent'],
    [INTENT, 'två ord / 2', 'intent.tv-ord-2'],
  ])('of %s in the status %s is %s', (subject, status, type) => {
    expect(eventType(subject, status)).toBe(type);
  });
});
