import { expect, inject, test } from 'vitest';
import { unseenSnapshot } from '../../src/domain/changes/next-snapshot.ts';
import type { Snapshot } from '../../src/domain/subjects/record.ts';
import { asSubjectId } from '../../src/domain/subjects/subject.ts';
import { planOf } from '../../src/queues/polls/plan-subject.ts';
import { connect, disconnect } from '../../src/store/connection.ts';
import { Keys } from '../../src/store/keys.ts';
import { PlanStore } from '../../src/store/plan.ts';
import { SubjectStore } from '../../src/store/subjects.ts';
import { commitDeps } from '../support/commit-deps.ts';
import { testPrefix } from '../support/daemon.ts';
import { firstEpoch } from '../support/epoch.ts';
import { opening } from '../support/opening.ts';

const { later } = opening();

const SEEN_MS = Date.parse('2026-11-20T12:00:00Z');
const DAY_MS = 86_400_000;
const WISHES = { overdueAfterMs: 1_800_000, warnBeforeMs: null };

/** The plan of a subject that reached a status long ago by the clock, where the clocks agree or not. */
function planned(id: string, status: string, { agree }: { agree: boolean }) {
  const redis = connect({ kind: 'server', url: inject('redisUrl') });
  later(() => disconnect(redis));
  const keys = new Keys(testPrefix());
  const options = { retentionMs: DAY_MS, epoch: firstEpoch(redis, keys), onForeign: () => undefined };
  const stores = { subjects: new SubjectStore(redis, keys, options), plan: new PlanStore(redis, keys) };
  const deps = commitDeps(redis, keys, stores);
  const clocks = agree ? deps.clocks : { mayActAt: () => false, certainMs: () => SEEN_MS + 1_000 };
  const subject = asSubjectId(id);
  const updatedAt = SEEN_MS / 1_000;
  const snapshot: Snapshot = {
    ...unseenSnapshot(SEEN_MS),
    status,
    updatedAt,
    pendingSince: updatedAt,
    reported: true,
  };
  const claim = { key: `s|${subject}`, atMs: SEEN_MS, historyBefore: null, served: true };
  return planOf(
    { ...deps, clocks },
    { subject, snapshot, claims: [claim] },
    {
      nowMs: SEEN_MS + 31 * DAY_MS,
      price: 1,
      subscriptions: new Map([['s', WISHES]]),
      imported: null,
      unseenUntilMs: null,
      route: null,
    },
  );
}

test('a reminder is due, or waits and is checked again soon', () => {
  const intent = `intent:0x${'1'.padStart(64, '0')}`;
  expect(planned(intent, 'pending', { agree: true }).due).toHaveLength(1);
  const waiting = planned(intent, 'pending', { agree: false });
  expect(waiting).toMatchObject({ due: [], alarmMs: 30_000, isOver: false });
  expect(waiting.next()?.alarmMs).toBeLessThanOrEqual(30_000);
});

test('tracking ends, but by no time that is not certain', () => {
  expect(planned('quote:q-1', 'active', { agree: true })).toMatchObject({ isOver: true });
  expect(planned('quote:q-1', 'active', { agree: true }).next()).toBeNull();
  expect(planned('quote:q-1', 'active', { agree: false })).toMatchObject({ isOver: false });
  expect(planned('quote:q-1', 'active', { agree: false }).next()).not.toBeNull();
});
