import { describe, expect, test } from 'vitest';
import { type PlanContext, planSubject } from '../../src/domain/cadence/subject-plan.ts';
import { intentId, vaultId } from '../../src/domain/subjects/subject.ts';
import { EXPECTED_MODEL } from '../support/expected-model.ts';
import { snapshotOf } from '../support/snapshot.ts';

const INTENT = intentId('0xaa');
const VAULT = vaultId({ chainId: 1, address: '0xbb' });
const NOW_MS = 1_763_638_260_000;
const snapshot = snapshotOf(NOW_MS);
const NOW = NOW_MS / 1_000;

const WISHES = new Map([
  ['quick', { overdueAfterMs: 60_000, warnBeforeMs: 30_000 }],
  ['slow', { overdueAfterMs: 600_000, warnBeforeMs: null }],
  ['learned', { overdueAfterMs: 'learned' as const, warnBeforeMs: null }],
  ['none', { overdueAfterMs: null, warnBeforeMs: null }],
]);
const CLAIMS = [...WISHES.keys()].map((name) => ({
  key: `${name}|${INTENT}`,
  atMs: NOW_MS - 500_000,
  historyBefore: null,
  served: true,
}));
const CLAIM_KEYS = Object.fromEntries(CLAIMS.map(({ key }) => [key.slice(0, key.indexOf('|')), key]));

function context(more: Partial<PlanContext> = {}): PlanContext {
  return {
    nowMs: NOW_MS,
    price: 1,
    model: EXPECTED_MODEL,
    finished: {},
    learnedMs: null,
    subscriptions: WISHES,
    imported: null,
    unseenUntilMs: null,
    route: null,
    ...more,
  };
}

describe('the plan of a transfer that has been pending for two minutes', () => {
  const pending = {
    subject: INTENT,
    snapshot: snapshot('pending', { pendingSince: NOW - 120 }),
    claims: CLAIMS,
  };

  test('has the overdue event due only for subscriptions that wanted it by now', () => {
    const { due, alarmMs, isOver } = planSubject(pending, context());
    expect(due).toMatchObject([{ event: { flag: 'overdue:60000' }, claimKeys: [CLAIM_KEYS.quick] }]);
    expect({ alarmMs, isOver }).toEqual({ alarmMs: 0, isOver: false });
  });

  test('is overdue for those that go by the learned times once they are known', () => {
    expect(planSubject(pending, context({ learnedMs: 119_000 })).due).toMatchObject([
      { event: { flag: 'overdue:60000' }, claimKeys: [CLAIM_KEYS.quick] },
      { event: { flag: 'overdue:learned' }, claimKeys: [CLAIM_KEYS.learned] },
    ]);
  });

  test('is next polled no later than just after the next time', () => {
    const reported = { ...pending, snapshot: { ...pending.snapshot, flags: ['overdue:60000'] } };
    const { due, alarmMs, next } = planSubject(reported, context());
    expect(due).toEqual([]);
    expect(alarmMs).toBe(481_000);
    expect(next()?.alarmMs).toBe(481_000);
  });
});

describe('the plan of a vault that is not funded', () => {
  const vault = (deadline: number) => ({
    subject: VAULT,
    snapshot: snapshot('PENDING', { record: { state: 'PENDING', deadline } }),
    claims: CLAIMS,
  });

  test('warns those that want it before its deadline', () => {
    expect(planSubject(vault(NOW + 20), context()).due).toMatchObject([
      { event: { flag: 'expiring:30000' }, claimKeys: [CLAIM_KEYS.quick] },
    ]);
  });

  test('gives no warning of a deadline that has passed, which is reported to all', () => {
    expect(planSubject(vault(NOW - 1), context()).due).toMatchObject([
      { event: { flag: 'expired' }, claimKeys: null },
    ]);
    const reported = vault(NOW - 1);
    const { due, alarmMs } = planSubject(
      { ...reported, snapshot: { ...reported.snapshot, flags: ['expired'] } },
      context(),
    );
    expect({ due, alarmMs }).toEqual({ due: [], alarmMs: null });
  });
});

test('a transfer that has settled is over, and is polled no more', () => {
  const { isOver, next } = planSubject(
    { subject: INTENT, snapshot: snapshot('settled'), claims: CLAIMS },
    context(),
  );
  expect(isOver).toBe(true);
  expect(next()).toBeNull();
});

describe('the plan of a vault that no response has shown', () => {
  const vault = { subject: VAULT, snapshot: null, claims: CLAIMS };
  const END = NOW_MS + 60_000;
  test.each<[string, number | null, number, 'polled' | 'over']>([
    ['goes on where it is named itself', null, NOW_MS, 'polled'],
    ['goes on until its end', END, END - 1, 'polled'],
    ['is over from its end', END, END, 'over'],
  ])('%s', (_, unseenUntilMs, nowMs, expected) => {
    const plan = planSubject(vault, context({ unseenUntilMs, nowMs }));
    expect(plan.isOver).toBe(expected === 'over');
    expect(plan.next() === null).toBe(expected === 'over');
  });

  test('has a poll right after its end', () => {
    const next = planSubject(vault, context({ unseenUntilMs: END })).next();
    expect(next?.alarmMs).toBe(END - NOW_MS + 1_000);
  });

  test('goes on past its end once it was shown', () => {
    const shown = { ...vault, snapshot: snapshot('PENDING') };
    expect(planSubject(shown, context({ unseenUntilMs: END, nowMs: END + 1 })).isOver).toBe(false);
  });
});
